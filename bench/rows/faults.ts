// The same images while a tenth of all requests fails: what each way loses, and what is billed twice.
import { setTimeout as sleep } from 'node:timers/promises';
import { stringify } from 'flatted';
import { none, sum, told, type Figure } from '../figures';
import { flowTaskFlow, FLOW_TASK, rivalFlow, runFlow, type FlowTaskRun } from '../flow';
import type { Row, Stage } from '../stage';
import { outputItems, type Item, type WorkflowDocument } from '../../test/e2e/runner';
import type { BenchPlatform } from '../platform';

const ITEMS = 100;
const FAULT_RATE = 0.1;
const RUNS = 1;
/** A run needs a tenth of this time, but a rival may wait forever for the rest of an answer that was cut off. */
const PATIENCE_MS = 40_000;
/** How long n8n takes to save an execution that it stopped. */
const STOPPING_MS = 1_000;

/** The names of the rival's nodes that cost money and that fetch the images. */
const SUBMIT = 'Submit';
const DOWNLOAD = 'Download';
const HTTP_REQUEST = 'n8n-nodes-base.httpRequest';
/** The most tries that n8n allows. */
const MOST_TRIES = 5;

type Build = (run: FlowTaskRun) => Promise<WorkflowDocument>;

interface Way {
	readonly name: string;
	readonly build: Build;
	/** The node that outputs the images. */
	readonly lastNode: string;
}

/** What became of the items of one run. */
interface Toll {
	readonly failed: number;
	readonly images: number;
	readonly paid: number;
	readonly paidTwice: number;
	/** Tasks that were paid for and fully answered, but whose ID cannot be found. */
	readonly lost: number;
}

const WAYS: readonly Way[] = [
	{ name: 'all at once', build: expert, lastNode: DOWNLOAD },
	{ name: 'all at once, Retry On Fail', build: expertWithRetries, lastNode: DOWNLOAD },
	{ name: 'all at once, failed submits once more', build: carefulExpert, lastNode: DOWNLOAD },
	{ name: 'FlowTask, On Error: Continue', build: flowTaskThatContinues, lastNode: FLOW_TASK },
];

async function expert(run: FlowTaskRun): Promise<WorkflowDocument> {
	return await rivalFlow('all-at-once.json', run);
}

async function expertWithRetries(run: FlowTaskRun): Promise<WorkflowDocument> {
	const flow = await expert(run);
	for (const node of flow.nodes.filter(({ type }) => type === HTTP_REQUEST)) retrying(node);
	return flow;
}

/**
 * The most careful version: only failed submits are sent again, through an error output that leads back to the node.
 * Reads keep Retry On Fail. (With an error output, *Download* waits forever for the rest of a file that was cut off.)
 */
async function carefulExpert(run: FlowTaskRun): Promise<WorkflowDocument> {
	const flow = await expertWithRetries(run);
	for (const node of flow.nodes.filter(({ name }) => name === SUBMIT)) {
		node.retryOnFail = false;
		node.onError = 'continueErrorOutput';
		// Otherwise this node waits forever, too.
		node.parameters.options = { response: { response: { responseFormat: 'json' } } };
	}
	const { main } = flow.connections[SUBMIT] as { main: unknown[] };
	flow.connections[SUBMIT] = { main: [main[0], [{ node: SUBMIT, type: 'main', index: 0 }]] };
	return flow;
}

async function flowTaskThatContinues(run: FlowTaskRun): Promise<WorkflowDocument> {
	const flow = await flowTaskFlow(run);
	for (const node of flow.nodes.filter(({ name }) => name === FLOW_TASK)) {
		node.onError = 'continueRegularOutput';
		retrying(node);
	}
	return flow;
}

function retrying(node: Record<string, unknown>): void {
	node.retryOnFail = true;
	node.maxTries = MOST_TRIES;
	node.waitBetweenTries = 1_000;
}

export const faults: Row = {
	name: 'faults',
	isQuick: true,
	async measure(stage) {
		return await stage.withPlatform({ runners: 32, taskMs: 300 }, async (platform) => {
			const figures: Figure[] = [];
			for (const way of WAYS) {
				const tolls: Toll[] = [];
				for (let seed = 1; seed <= stage.times(RUNS); seed++) {
					tolls.push(await play(stage, platform, way, seed));
				}
				figures.push(...figuresOf(way, tolls));
			}
			return figures;
		});
	},
};

async function play(stage: Stage, platform: BenchPlatform, way: Way, seed: number): Promise<Toll> {
	const n8n = await stage.n8n();
	const customer = await platform.customer();
	const label = `faults ${way.name} ${seed}`;
	const flow = await way.build({ n8n, platform, customer, count: ITEMS, label });
	await platform.resetBooks();
	await platform.failSomeRequests(FAULT_RATE, seed);
	const { executionId, status } = await runFlow(n8n, flow, PATIENCE_MS);
	if (status === 'canceled') await sleep(STOPPING_MS);
	await platform.failNone();
	const execution = await n8n.client.getExecution(executionId);
	const { tasks, duplicates } = await platform.books();
	const items = outputItems(execution, way.lastNode);
	// For the rivals, anything counts that a person could find in the execution.
	const traces =
		way.lastNode === FLOW_TASK ? [items, execution.data?.resultData.error ?? ''] : execution.data;
	// n8n's own errors contain the socket, which refers back to them.
	const said = stringify(traces);
	const lost = tasks.filter(({ answer, taskId }) => answer === 'whole' && !said.includes(taskId)).length;
	return {
		failed: status === 'success' ? 0 : 1,
		images: items.filter(hasImage).length,
		paid: tasks.length,
		paidTwice: duplicates,
		lost,
	};
}

const hasImage = ({ binary }: Item): boolean => Object.keys(binary ?? {}).length > 0;

function figuresOf({ name, lastNode }: Way, tolls: readonly Toll[]): Figure[] {
	const wanted = ITEMS * tolls.length;
	const total = (of: (toll: Toll) => number): number => sum(tolls.map(of));
	const isOurs = lastNode === FLOW_TASK;
	const what = (thing: string): string => `${name}: ${thing}`;
	const counted = (count: number, thing: string): Figure =>
		isOurs ? none(count, what(thing)) : told(count, what(thing));
	return [
		counted(
			total(({ failed }) => failed),
			`executions failed or hung, of ${tolls.length}`,
		),
		told(
			total(({ images }) => images),
			what(`images, of ${wanted}`),
		),
		told(
			total(({ paid }) => paid),
			what('tasks paid for'),
		),
		counted(
			total(({ paidTwice }) => paidTwice),
			'paid for twice',
		),
		counted(
			total(({ lost }) => lost),
			'paid for and lost',
		),
	];
}
