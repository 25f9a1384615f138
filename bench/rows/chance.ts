// How long many refusals at random, which say nothing about a limit, hold up a batch, in virtual time: on a real n8n, 20
// runs of each case would take an hour.
import { randomly, runWorld, UNTOLD, type World } from '../../test/unit/shared/retry/limitedPlatform';
import { atMost, median, told, type Figure } from '../figures';
import type { Row } from '../stage';

const ITEMS = 300;
const SEEDS = 20;
const SHARES = [0.2, 0.4] as const;
/** The median, × the ideal. */
const LONGEST = 1.25;

/** A submit takes 0.2 to 0.3 s, so that 16 at once can just send 60 a second. */
const LINE = { items: ITEMS, latencyMs: [200, 300], jitterMs: 20 } as const;
const REQUESTS_PER_SECOND = [20, 60] as const;

/** HTTP 503 without `Retry-After` says nothing of load: a submit it answers is not sent again, so it is not refused here. */
const REFUSALS = [
	['HTTP 429', UNTOLD],
	['HTTP 503 with Retry-After: 1', () => 1_000],
] as const;

type Refusing = Pick<World, 'requestsPerSecond' | 'retryAfter'>;

async function secondsOf(share: number, world: Refusing): Promise<number[]> {
	const runs = Array.from({ length: SEEDS }, async (_, seed) => {
		return await runWorld({ ...LINE, ...world, limit: (random) => randomly(share, random) }, seed + 1);
	});
	return (await Promise.all(runs)).map(({ seconds }) => seconds);
}

async function figuresOf(share: number, refusal: string, world: Refusing): Promise<Figure[]> {
	// Each try takes a turn, so this is what a client takes that never slows down.
	const idealSeconds = median(await secondsOf(0, world)) / (1 - share);
	const ratios = (await secondsOf(share, world)).map((seconds) => seconds / idealSeconds);
	const name = `${ITEMS} tasks at ${world.requestsPerSecond} a second, ${share * 100} % refused at random by ${refusal}`;
	return [
		atMost(LONGEST, median(ratios), {
			...{ what: `${name}: submits ÷ ideal`, kind: 'time', unit: ' ×' },
			runs: ratios,
		}),
		told(Math.max(...ratios), `${name}: the worst of ${SEEDS}`, ' ×'),
	];
}

export const chance: Row = {
	name: 'chance',
	async measure() {
		const figures: Figure[] = [];
		for (const requestsPerSecond of REQUESTS_PER_SECOND) {
			for (const share of SHARES) {
				for (const [refusal, retryAfter] of REFUSALS) {
					figures.push(...(await figuresOf(share, refusal, { requestsPerSecond, retryAfter })));
				}
			}
		}
		return figures;
	},
};
