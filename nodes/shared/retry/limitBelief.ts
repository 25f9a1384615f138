/** The limits considered, in requests per second: from one in five seconds in steps of a twentieth; the last is none. */
const LEAST = 0.2;
const STEP = 1.05;
const FINITE = 175;
const LIMITS = Float64Array.from({ length: FINITE + 1 }, (_, step) =>
	step < FINITE ? LEAST * STEP ** step : Infinity,
);
const LOGARITHMS = LIMITS.map((limit) => Math.log(limit));
const OUTAGE_SHARE = 0.97;
/** Shares of requests that may be refused whatever the rate, with their prior probabilities. */
const CHANCES = [
	{ share: 0.01, prior: 0.72 },
	{ share: 0.05, prior: 0.05 },
	{ share: 0.1, prior: 0.05 },
	{ share: 0.2, prior: 0.04 },
	{ share: 0.35, prior: 0.03 },
	{ share: 0.5, prior: 0.05 },
	{ share: OUTAGE_SHARE, prior: 0.05 },
];
/** From this share on, a limit looks much the same at any one rate. */
const LARGE_SHARE = 0.35;
/** How likely it must be that a large share is refused by chance, for the rate to put that to the test. */
const WORTH_TESTING = 0.3;
/** The prior probability that an account has no limit: at first, and after a limit has changed. */
const UNLIMITED_AT_FIRST = 0.85;
const UNLIMITED_LATER = 0.2;
/** The share that passes even far above a limit, because limits let bursts through. */
const LEAST_PASSING = 0.05;
/** The model assumes that limits and the share of chance refusals change about once in this many seconds. */
const CHANGES_EVERY_S = 20;
/**
 * The weight of the share that is refused, relative to the logarithm of what is accepted: less if refusals say how long to
 * wait, because the pauses slow down as well.
 */
const PRICE_OF_REFUSAL = 1.8;
const PRICE_WITH_PAUSE = 1.6;

const AT_FIRST = priorOfLimits(UNLIMITED_AT_FIRST);
const LATER = priorOfLimits(UNLIMITED_LATER);

function priorOfLimits(unlimited: number): Float64Array {
	return LIMITS.map((limit) => (limit === Infinity ? unlimited : (1 - unlimited) / FINITE));
}

/**
 * What is believed about an account's limit, by Bayes' rule: the joint probability of each limit and each share of
 * requests that is refused regardless of the rate. Above a limit the surplus is refused, so refusals due to a limit
 * vary with the rate; those by chance do not.
 *
 * Each request of an account is judged, so this must take only microseconds: hence the loops over numbers.
 */
export class LimitBelief {
	private readonly hypotheses = CHANCES.map(({ share, prior }) => ({
		share,
		prior,
		/** The joint probability of the share and each limit. */
		joint: AT_FIRST.map((limit) => prior * limit),
	}));
	/** How likely each limit is, whatever share is refused by chance. */
	private limits = Float64Array.from(AT_FIRST);
	/** Reused for each request: arrays of its own would be as large as the request itself. */
	private nextLimits = new Float64Array(LIMITS.length);
	private readonly passing = new Float64Array(LIMITS.length);
	/** How likely it is that the latest refusal was due neither to a limit nor to an outage. */
	private chance = 0;
	/** How likely it is that a large share of requests is refused whatever the rate, except in an outage. */
	private largeShare = 0;

	/** Whether the latest refusal says nothing about the requests that follow. */
	get wasByChance(): boolean {
		return this.chance > 0.5;
	}

	/** Whether it may well be that a large share is refused whatever the rate, so that a higher rate costs nothing. */
	get mayBeMostlyChance(): boolean {
		return this.largeShare > WORTH_TESTING;
	}

	/**
	 * Learns from a request that was accepted or refused.
	 * @param perSecond the rate at which it was sent
	 * @param sinceS the seconds since the previous request
	 */
	observe(perSecond: number, isRefused: boolean, sinceS: number): void {
		const changed = 1 - Math.exp(-sinceS / CHANGES_EVERY_S);
		const { passing, nextLimits: limits } = this;
		for (let step = 0; step < LIMITS.length; step++) {
			const limit = LIMITS[step] ?? Infinity;
			passing[step] = limit < perSecond ? LEAST_PASSING + (1 - LEAST_PASSING) * (limit / perSecond) : 1;
		}
		limits.fill(0);
		let all = 0;
		let byChance = 0;
		let largeShare = 0;
		for (const { share, prior, joint } of this.hypotheses) {
			const chanceChanged = (changed / 2) * prior;
			const limitChanged = (changed / 2) * sum(joint);
			for (let step = 0; step < LIMITS.length; step++) {
				const afterChange = chanceChanged * (this.limits[step] ?? 0) + limitChanged * (LATER[step] ?? 0);
				const passes = (1 - share) * (passing[step] ?? 0);
				const before = (1 - changed) * (joint[step] ?? 0) + afterChange;
				const now = before * (isRefused ? 1 - passes : passes);
				joint[step] = now;
				limits[step] = (limits[step] ?? 0) + now;
				all += now;
				if (share >= LARGE_SHARE && share !== OUTAGE_SHARE) largeShare += now;
				if (share !== OUTAGE_SHARE) byChance += before * share;
			}
		}
		if (isRefused) this.chance = byChance / all;
		this.largeShare = largeShare / all;
		for (const shares of [limits, ...this.hypotheses.map(({ joint }) => joint)]) {
			for (let step = 0; step < shares.length; step++) shares[step] = (shares[step] ?? 0) / all;
		}
		[this.limits, this.nextLimits] = [limits, this.limits];
	}

	/**
	 * The rate with the best prospect: the expected logarithm of what is accepted, so that a doubling counts the same at
	 * any rate, less the price of the share that a limit is expected to refuse.
	 * @param hasPauses whether refusals say how long to wait
	 */
	bestRate(mostPerSecond: number, hasPauses: boolean): number {
		const price = hasPauses ? PRICE_WITH_PAUSE : PRICE_OF_REFUSAL;
		let best = Math.min(LEAST, mostPerSecond);
		let bestProspect = -Infinity;
		// Sums over the limits below the rate: of probability, probability times limit, and probability times log limit.
		let probabilityBelow = 0;
		let limitsBelow = 0;
		let logsBelow = 0;
		for (let step = 0; step < LIMITS.length; step++) {
			const limit = LIMITS[step] ?? Infinity;
			const isMost = limit >= mostPerSecond;
			const rate = isMost ? mostPerSecond : limit;
			const log = isMost ? Math.log(rate) : (LOGARITHMS[step] ?? 0);
			const taken = logsBelow + (1 - probabilityBelow) * log;
			const prospect = taken - price * (probabilityBelow - limitsBelow / rate);
			if (prospect > bestProspect) {
				best = rate;
				bestProspect = prospect;
			}
			if (isMost) break;
			const probability = this.limits[step] ?? 0;
			probabilityBelow += probability;
			limitsBelow += probability * limit;
			logsBelow += probability * log;
		}
		return best;
	}
}

function sum(numbers: Float64Array): number {
	let total = 0;
	for (const one of numbers) total += one;
	return total;
}
