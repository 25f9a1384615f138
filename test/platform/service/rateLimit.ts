import type { ServerResponse } from 'node:http';
import type { Agenda } from '../agenda';
import type { PlatformOptions } from '../contract';

/** The use of a key: with `bucket`, what is saved up; with a window, the time of each request. */
interface Usage {
	tokens: number;
	atMs: number;
	admittedMs: number[];
	underWay: number;
}

type Limits = Pick<
	PlatformOptions,
	'requestsPerSecond' | 'limitCounts' | 'limitWindowSeconds' | 'requestsAtOnce' | 'limitIsShared'
>;

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
	secondsToWait(apiKey: string, response: ServerResponse): number {
		const { requestsAtOnce = Infinity, limitIsShared } = this.limits;
		const key = limitIsShared ? '' : apiKey;
		const now = this.agenda.now();
		const most = Math.max(1, this.#perSecond);
		const usage = this.#usages.get(key) ?? { tokens: most, atMs: now, admittedMs: [], underWay: 0 };
		this.#usages.set(key, usage);
		if (usage.underWay >= requestsAtOnce) return 1;
		const seconds = this.#perSecond > 0 ? this.#secondsBy(usage, now) : 0;
		if (seconds > 0) return Math.ceil(seconds);
		usage.underWay++;
		response.once('close', () => usage.underWay--);
		return 0;
	}

	#secondsBy(usage: Usage, now: number): number {
		const { limitCounts = 'bucket', limitWindowSeconds = 1 } = this.limits;
		if (limitCounts === 'bucket') return this.#secondsByBucket(usage, now);
		const windowMs = limitWindowSeconds * 1000;
		const startMs = limitCounts === 'fixedWindow' ? now - (now % windowMs) : now - windowMs + 1;
		usage.admittedMs = usage.admittedMs.filter((atMs) => atMs >= startMs);
		const [oldestMs = now] = usage.admittedMs;
		if (usage.admittedMs.length < this.#perSecond * limitWindowSeconds) {
			usage.admittedMs.push(now);
			return 0;
		}
		return ((limitCounts === 'fixedWindow' ? startMs : oldestMs) + windowMs - now) / 1000;
	}

	#secondsByBucket(usage: Usage, now: number): number {
		const most = Math.max(1, this.#perSecond);
		usage.tokens = Math.min(most, usage.tokens + ((now - usage.atMs) / 1000) * this.#perSecond);
		usage.atMs = now;
		if (usage.tokens < 1) return (1 - usage.tokens) / this.#perSecond;
		usage.tokens--;
		return 0;
	}
}
