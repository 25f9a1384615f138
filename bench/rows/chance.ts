// How long many refusals at random, which say nothing about a limit, hold up a batch, in virtual time: on a real n8n, 20
// runs of each case would take an hour.
import { randomly, runWorld, seeded, type World } from '../../test/unit/shared/retry/limitedPlatform';
import { atMost, median, told, type Figure } from '../figures';
import type { Row } from '../stage';

const ITEMS = 300;
const SEEDS = Array.from({ length: 20 }, (_, index) => index + 1);
const SHARES = [0.2, 0.4] as const;
/** The median, × the ideal. */
const LONGEST = 1.25;

/** A submit takes 0.2 to 0.3 s, so that 16 at once can just send 60 a second. */
const LEAST_MS = 200;
const MOST_MS = 300;
const JITTER_MS = 20;
const REQUESTS_PER_SECOND = [20, 60] as const;

/** HTTP 503 without `Retry-After` says nothing of load: a submit it answers is not sent again, so it is not refused here. */
const REFUSALS = [
	['HTTP 429', 0],
	['HTTP 503 with Retry-After: 1', 1_000],
] as const;

interface Refusing {
	readonly share: number;
	/** The pause that each refused submit is asked for. */
	readonly pauseMs: number;
	readonly requestsPerSecond: number;
}

async function secondsOf({ share, pauseMs, requestsPerSecond }: Refusing): Promise<number[]> {
	const runs = SEEDS.map(async (seed) => {
		const world: World = {
			...{ items: ITEMS, jitterMs: JITTER_MS, requestsPerSecond },
			latencyMs: [LEAST_MS, MOST_MS],
			limit: (random) => randomly(share, random),
			retryAfter: () => pauseMs,
		};
		return await runWorld(world, seed);
	});
	return (await Promise.all(runs)).map(({ seconds }) => seconds);
}

/**
 * The time, in seconds, of a client that knows that refusals are chance: it sends in every turn, what was refused before
 * what is new, and never before the pause is over that it was asked for.
 */
function idealSeconds({ share, pauseMs, requestsPerSecond }: Refusing, seed: number): number {
	const random = seeded(seed);
	const limit = randomly(share, random);
	const between = (least: number, most: number) => least + random() * (most - least);
	/** When each refused submit may be sent again, the earliest first. */
	const againMs: number[] = [];
	let unsent = ITEMS;
	let endMs = 0;
	for (let turnMs = 0; unsent > 0 || againMs.length > 0; turnMs += 1_000 / requestsPerSecond) {
		const [nextMs] = againMs;
		if (nextMs !== undefined && (unsent === 0 || nextMs <= turnMs)) {
			turnMs = Math.max(turnMs, nextMs);
			againMs.shift();
		} else {
			unsent--;
		}
		const arrivesMs = turnMs + between(0, JITTER_MS);
		if (limit.admit(arrivesMs, 0)) {
			endMs = Math.max(endMs, arrivesMs + between(LEAST_MS, MOST_MS));
		} else {
			againMs.push(arrivesMs + pauseMs);
			againMs.sort((one, other) => one - other);
		}
	}
	return endMs / 1_000;
}

async function figuresOf(refusal: string, refusing: Refusing): Promise<Figure[]> {
	const ideal = median(SEEDS.map((seed) => idealSeconds(refusing, seed)));
	const ratios = (await secondsOf(refusing)).map((seconds) => seconds / ideal);
	const { share, requestsPerSecond } = refusing;
	const name = `${ITEMS} tasks at ${requestsPerSecond} a second, ${share * 100} % refused at random by ${refusal}`;
	return [
		atMost(LONGEST, median(ratios), {
			...{ what: `${name}: submits ÷ ideal`, kind: 'time', unit: ' ×' },
			runs: ratios,
		}),
		told(Math.max(...ratios), `${name}: the worst of ${SEEDS.length}`, ' ×'),
	];
}

export const chance: Row = {
	name: 'chance',
	async measure() {
		const figures: Figure[] = [];
		for (const requestsPerSecond of REQUESTS_PER_SECOND) {
			for (const share of SHARES) {
				for (const [refusal, pauseMs] of REFUSALS) {
					figures.push(...(await figuresOf(refusal, { share, pauseMs, requestsPerSecond })));
				}
			}
		}
		return figures;
	},
};
