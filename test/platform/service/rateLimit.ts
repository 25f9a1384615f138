import type { Agenda } from '../agenda';

interface Bucket {
	tokens: number;
	atMs: number;
}

/** The request-frequency limit: so many requests a second for each API key, saved up for one second at most. */
export class RateLimit {
	readonly #buckets = new Map<string, Bucket>();

	constructor(
		private readonly perSecond: number,
		private readonly agenda: Agenda,
	) {}

	/** 0 where the request may pass, else the seconds until one may. */
	secondsToWait(apiKey: string): number {
		if (this.perSecond <= 0) return 0;
		const now = this.agenda.now();
		const most = Math.max(1, this.perSecond);
		const bucket = this.#buckets.get(apiKey) ?? { tokens: most, atMs: now };
		bucket.tokens = Math.min(most, bucket.tokens + ((now - bucket.atMs) / 1000) * this.perSecond);
		bucket.atMs = now;
		this.#buckets.set(apiKey, bucket);
		if (bucket.tokens < 1) return Math.ceil((1 - bucket.tokens) / this.perSecond);
		bucket.tokens--;
		return 0;
	}
}
