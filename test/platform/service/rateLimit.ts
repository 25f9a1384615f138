import type { Agenda } from '../agenda';
import type { PlatformOptions } from '../contract';

const WINDOW_MS = 1000;

/** The use of a key: with `bucket`, what is saved up; with a window, the time of each request. */
interface Usage {
	tokens: number;
	atMs: number;
	admittedMs: number[];
}

type Limits = Pick<PlatformOptions, 'requestsPerSecond' | 'limitCounts' | 'limitIsShared'>;

/** The request-frequency limit of each API key, or of all keys together. */
export class RateLimit {
	readonly #usages = new Map<string, Usage>();
	readonly #perSecond: number;

	constructor(
		private readonly limits: Limits,
		private readonly agenda: Agenda,
	) {
		this.#perSecond = limits.requestsPerSecond ?? 0;
	}

	/** Returns 0 if the request may pass, otherwise the seconds until one may. */
	secondsToWait(apiKey: string): number {
		if (this.#perSecond === 0) return 0;
		const { limitCounts = 'bucket', limitIsShared } = this.limits;
		const key = limitIsShared ? '' : apiKey;
		const now = this.agenda.now();
		const usage = this.#usages.get(key) ?? { tokens: this.#most, atMs: now, admittedMs: [] };
		this.#usages.set(key, usage);
		return Math.ceil(
			limitCounts === 'bucket'
				? this.#secondsByBucket(usage, now)
				: this.#secondsByWindow(usage, now, limitCounts === 'fixedWindow'),
		);
	}

	get #most(): number {
		return Math.max(1, this.#perSecond);
	}

	#secondsByWindow(usage: Usage, now: number, isFixed: boolean): number {
		const startMs = isFixed ? now - (now % WINDOW_MS) : now - WINDOW_MS + 1;
		usage.admittedMs = usage.admittedMs.filter((atMs) => atMs >= startMs);
		const [oldestMs = now] = usage.admittedMs;
		if (usage.admittedMs.length < this.#perSecond) {
			usage.admittedMs.push(now);
			return 0;
		}
		return ((isFixed ? startMs : oldestMs) + WINDOW_MS - now) / 1000;
	}

	#secondsByBucket(usage: Usage, now: number): number {
		usage.tokens = Math.min(this.#most, usage.tokens + ((now - usage.atMs) / 1000) * this.#perSecond);
		usage.atMs = now;
		if (usage.tokens < 1) return (1 - usage.tokens) / this.#perSecond;
		usage.tokens--;
		return 0;
	}
}
