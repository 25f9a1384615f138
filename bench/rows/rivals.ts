// The same images, made by the workflow that most people build, by the one an expert builds, and by FlowTask.
import { callsOf, pollsIn } from '../books';
import { atLeast, atMost, median, none, sum, told, type Figure } from '../figures';
import { flowTaskFlow, rivalFlow, runWell, type FlowTaskRun } from '../flow';
import type { Row, Stage } from '../stage';
import type { WorkflowDocument } from '../../test/e2e/runner';
import type { BenchPlatform } from '../platform';

const ITEMS = 50;
const RUNNERS = 16;
/** A short time for an image; the longer an image takes, the more calls and time the loop costs. */
const TASK_MS = 3_000;
const RUNS = 5;

const FASTER_THAN_LOOP = 5;
const FEWER_CALLS_THAN_LOOP = 3;
const TIME_OF_EXPERT = 1.02;

interface Score {
	readonly wallMs: number;
	readonly calls: number;
	readonly polls: number;
	readonly unmade: number;
}

type Build = (run: FlowTaskRun) => Promise<WorkflowDocument>;

const FLOWS = {
	loop: async (run) => await rivalFlow('one-at-a-time.json', run),
	expert: async (run) => await rivalFlow('all-at-once.json', run),
	flowTask: flowTaskFlow,
} satisfies Record<string, Build>;

export const rivals: Row = {
	name: 'rivals',
	async measure(stage) {
		return await stage.withPlatform({ runners: RUNNERS, taskMs: TASK_MS }, async (platform) => {
			const times = stage.times(RUNS);
			const numbers = Array.from({ length: times }, (_, index) => index + 1);
			const expert: Score[] = [];
			const flowTask: Score[] = [];
			// The two take turns, so that any other load on the machine affects both.
			for (const number of numbers) {
				expert.push(await play(stage, platform, FLOWS.expert, `expert ${number}`));
				flowTask.push(await play(stage, platform, FLOWS.flowTask, `flowTask ${number}`));
			}
			// A run takes minutes, in which it mostly waits for one task, so five runs do not disturb each other.
			const loop = await Promise.all(
				numbers.map((number) => play(stage, platform, FLOWS.loop, `loop ${number}`)),
			);
			const { downloads } = await platform.books();
			const files = [...loop, ...expert, ...flowTask].length * ITEMS;
			return [
				...againstLoop(loop, flowTask),
				...againstExpert(expert, flowTask),
				none(Math.abs(downloads - files), 'files too many or too few, all three'),
			];
		});
	},
};

/** Measures one run, whose own customer distinguishes its calls from those of other runs. */
async function play(stage: Stage, platform: BenchPlatform, build: Build, label: string): Promise<Score> {
	const n8n = await stage.n8n();
	const customer = await platform.newCustomer(label);
	const flow = await build({ n8n, platform, customer, count: ITEMS, label });
	const { wallMs } = await runWell(n8n, flow);
	const books = await platform.books();
	const polls = books.polls.filter(({ owner }) => owner === label);
	const made = books.tasks.filter(({ owner, status }) => owner === label && status === 3).length;
	return {
		wallMs,
		calls: callsOf(label, books),
		polls: pollsIn(polls).length,
		unmade: Math.abs(ITEMS - made),
	};
}

const wallOf = (scores: readonly Score[]): number => median(scores.map(({ wallMs }) => wallMs));
const callsIn = (scores: readonly Score[]): number => median(scores.map(({ calls }) => calls));
const secondsOf = (scores: readonly Score[]): number[] => scores.map(({ wallMs }) => wallMs / 1000);

function againstLoop(loop: readonly Score[], flowTask: readonly Score[]): Figure[] {
	const faster = loop.map(({ wallMs }) => wallMs / wallOf(flowTask));
	const fewer = callsIn(loop) / callsIn(flowTask);
	return [
		told(wallOf(loop) / 1000, `one at a time, ${ITEMS} items: wall time`, ' s', secondsOf(loop)),
		told(wallOf(flowTask) / 1000, `FlowTask, ${ITEMS} items: wall time`, ' s', secondsOf(flowTask)),
		told(callsIn(loop), `one at a time, ${ITEMS} items: HTTP calls`),
		told(callsIn(flowTask), `FlowTask, ${ITEMS} items: HTTP calls`),
		atLeast(FASTER_THAN_LOOP, median(faster), {
			...{ what: 'one at a time ÷ FlowTask: wall time', kind: 'time', unit: ' ×', runs: faster },
		}),
		atLeast(FEWER_CALLS_THAN_LOOP, fewer, {
			...{ what: 'one at a time ÷ FlowTask: HTTP calls', kind: 'count', unit: ' ×' },
		}),
		none(sum([...loop, ...flowTask].map(({ unmade }) => unmade)), 'images too many or too few'),
	];
}

function againstExpert(expert: readonly Score[], flowTask: readonly Score[]): Figure[] {
	const ratios = expert.map(({ wallMs }, index) => (flowTask[index]?.wallMs ?? Number.NaN) / wallMs);
	const allowed = median(expert.map(({ calls, polls }) => calls + polls * Math.ceil(ITEMS / 100)));
	return [
		told(wallOf(expert) / 1000, `all at once, ${ITEMS} items: wall time`, ' s', secondsOf(expert)),
		told(callsIn(expert), `all at once, ${ITEMS} items: HTTP calls`),
		atMost(TIME_OF_EXPERT, median(ratios), {
			...{ what: 'FlowTask ÷ all at once: wall time', kind: 'time', unit: ' ×', runs: ratios },
		}),
		atMost(allowed, callsIn(flowTask), {
			what: `FlowTask: HTTP calls, against all at once and ⌈n/100⌉ per poll`,
			kind: 'count',
		}),
	];
}
