/**
 * The limits that are considered, in requests per second: the lowest is one in five seconds, each is a twentieth higher
 * than the one before, and the last stands for no limit.
 */
const LEAST = 0.2;
const STEP = 1.05;
const FINITE = 175;
const LIMITS = Float64Array.from({ length: FINITE + 1 }, (_, step) =>
	step < FINITE ? LEAST * STEP ** step : Infinity,
);
const LOGARITHMS = LIMITS.map((limit) => Math.log(limit));
/**
 * Shares of requests that may be refused regardless of the rate, and the prior probability of each; the last is an
 * outage.
 */
const CHANCES = [
	{ share: 0.01, odds: 0.77 },
	{ share: 0.05, odds: 0.06 },
	{ share: 0.1, odds: 0.06 },
	{ share: 0.2, odds: 0.06 },
	{ share: 0.97, odds: 0.05 },
];
/**
 * The prior probability that an account has no limit: before anything is known about it, and after a limit has changed.
 */
const UNLIMITED_AT_FIRST = 0.85;
const UNLIMITED_LATER = 0.2;
/** The share that passes even far above a limit, because limits let bursts through. */
const LEAST_PASSING = 0.05;
/** The model assumes that limits and the share of chance refusals change about once in this many seconds. */
const CHANGES_EVERY_S = 20;
/** The weight of the share that is refused, relative to the logarithm of what is accepted. */
const PRICE_OF_REFUSAL = 1.6;

const AT_FIRST = oddsOfLimits(UNLIMITED_AT_FIRST);
const LATER = oddsOfLimits(UNLIMITED_LATER);

function oddsOfLimits(unlimited: number): Float64Array {
	return LIMITS.map((limit) => (limit === Infinity ? unlimited : (1 - unlimited) / FINITE));
}

/** A share of requests that may be refused by chance, and its joint probability with each limit. */
interface Hypothesis {
	readonly share: number;
	/** The prior probability of the share, used after a change. */
	readonly odds: number;
	readonly oddsOfLimit: Float64Array;
}

/**
 * What is believed about an account's limit, by Bayes' rule: the joint probability of each limit and each share of
 * requests that is refused regardless of the rate. Above a limit the surplus is refused, so refusals due to a limit
 * vary with the rate; those by chance do not.
 *
 * Each request of an account is judged, so this must take only microseconds: hence the loops over numbers.
 */
export class LimitBelief {
	private readonly hypotheses = CHANCES.map(({ share, odds }): Hypothesis => ({
		share,
		odds,
		oddsOfLimit: AT_FIRST.map((limit) => odds * limit),
	}));
	/** How likely each limit is, whatever share is refused by chance. */
	private limits = AT_FIRST;

	/**
	 * Learns from a request that was accepted or refused.
	 * @param perSecond the rate at which it was sent
	 * @param sinceS the seconds since the previous request
	 */
	observe(perSecond: number, isRefused: boolean, sinceS: number): void {
		const changed = 1 - Math.exp(-sinceS / CHANGES_EVERY_S);
		const passing = LIMITS.map((limit) =>
			limit < perSecond ? LEAST_PASSING + (1 - LEAST_PASSING) * (limit / perSecond) : 1,
		);
		const limits = new Float64Array(LIMITS.length);
		let all = 0;
		for (const { share, odds, oddsOfLimit } of this.hypotheses) {
			const chanceOdds = (changed / 2) * odds;
			const limitOdds = (changed / 2) * sum(oddsOfLimit);
			for (let step = 0; step < LIMITS.length; step++) {
				const changedOdds = chanceOdds * (this.limits[step] ?? 0) + limitOdds * (LATER[step] ?? 0);
				const passes = (1 - share) * (passing[step] ?? 0);
				const before = (1 - changed) * (oddsOfLimit[step] ?? 0) + changedOdds;
				const now = before * (isRefused ? 1 - passes : passes);
				oddsOfLimit[step] = now;
				limits[step] = (limits[step] ?? 0) + now;
				all += now;
			}
		}
		this.limits = limits.map((one) => one / all);
		for (const { oddsOfLimit } of this.hypotheses) {
			for (let step = 0; step < LIMITS.length; step++) oddsOfLimit[step] = (oddsOfLimit[step] ?? 0) / all;
		}
	}

	/**
	 * The rate with the best prospect: the expected logarithm of what is accepted, so that a doubling counts the same at
	 * any rate, less the price of the share that a limit is expected to refuse.
	 */
	bestRate(mostPerSecond: number): number {
		let best = Math.min(LEAST, mostPerSecond);
		let bestProspect = -Infinity;
		// For the limits below the rate: the sum of their odds, and of the odds times the limit and times its logarithm.
		let oddsBelow = 0;
		let limitsBelow = 0;
		let logsBelow = 0;
		for (let step = 0; step < LIMITS.length; step++) {
			const limit = LIMITS[step] ?? Infinity;
			const isMost = limit >= mostPerSecond;
			const rate = isMost ? mostPerSecond : limit;
			const log = isMost ? Math.log(rate) : (LOGARITHMS[step] ?? 0);
			const taken = logsBelow + (1 - oddsBelow) * log;
			const prospect = taken - PRICE_OF_REFUSAL * (oddsBelow - limitsBelow / rate);
			if (prospect > bestProspect) {
				best = rate;
				bestProspect = prospect;
			}
			if (isMost) break;
			const odds = this.limits[step] ?? 0;
			oddsBelow += odds;
			limitsBelow += odds * limit;
			logsBelow += odds * log;
		}
		return best;
	}
}

function sum(numbers: Float64Array): number {
	let total = 0;
	for (const one of numbers) total += one;
	return total;
}
