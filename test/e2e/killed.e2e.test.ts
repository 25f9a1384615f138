// n8n is killed while it submits: the next execution with the same idempotency keys submits what was never sent, finds
// what was, and asks about no more keys than requests were under way. Without keys, every ID is in the table.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { HandWoundTime, startPlatform, type LocalPlatform } from '../platform';
import textToImage from '../platform/workflows/text-to-image.json';
import { until } from '../until';
import { batchService, flowTask, pictures } from './batchService';
import { dataTableRows, type Row } from './databases';
import type { SavedCredential, SavedWorkflow } from './runner';
import { serviceStage } from './stage';

const START_DEADLINE_MS = 300_000;
/** A claim of a dead holder is waited for up to 100 s; fetch waits 300 s for an answer. */
const ASK_DEADLINE_MS = 290_000;
const TEST_DEADLINE_MS = 12 * 60_000;
const PATIENCE = { withinMs: 120_000 };
/** Leaves most of a minute for which claims of a dead process are waited for. */
const AGED_MS = 150_000;
const KEYS = 60;
const UNDER_WAY = 16;
const ANSWERED = 20;

interface Told {
	taskId?: string;
	reused?: boolean;
	error?: string;
}

const stage = serviceStage('flowtask-killed-', { runners: 50, taskMs: 100, images: 'prepared' });
let platform: LocalPlatform;

beforeAll(async () => {
	const { account, n8n } = stage;
	({ platform } = stage);
	const { workflowId } = await platform.hostWorkflow(textToImage);
	const limits = { idempotencyKey: '={{ $json.key }}', requestsPerSecond: 0 };
	const step = pictures('Flow Task', account, workflowId, { options: { output: 'urls' }, limits });
	const service = batchService({
		...{ path: 'orders', answers: 'lastNode' },
		steps: [{ ...step, onError: 'continueRegularOutput' }],
	});
	await n8n.client.activate(await n8n.client.createWorkflow(service));
});

const keysOf = (word: string): string[] => Array.from({ length: KEYS }, (_, index) => `${word} ${index}`);

async function ask(keys: string[]): Promise<Told[]> {
	const response = await stage.n8n.client.callWebhook('orders', { keys }, ASK_DEADLINE_MS);
	const answer: unknown = JSON.parse(await response.text());
	if (!Array.isArray(answer)) throw new Error(`no items: ${JSON.stringify(answer).slice(0, 500)}`);
	return answer as Told[];
}

/** Starts an execution that will be killed before it answers. */
function askInVain(keys: string[]): void {
	void ask(keys).catch(() => undefined);
}

/** The tasks that the platform has created for a key. */
function madeFor(key: string): string[] {
	const { tasks } = platform.books();
	const text = JSON.stringify(key);
	return tasks.flatMap(({ taskId, prompt }) => (JSON.stringify(prompt).includes(text) ? taskId : []));
}

/** @returns how many keys the second execution asks about; each of the others has one task, which was reported */
function unclearOf(keys: string[], told: Told[]): number {
	expect(told).toHaveLength(keys.length);
	const unclear = keys.filter((_, index) => told[index]?.error !== undefined);
	for (const [index, key] of keys.entries()) {
		const { error, taskId } = told[index] ?? {};
		const made = madeFor(key);
		if (error === undefined) expect([key, made]).toEqual([key, [taskId]]);
		else {
			expect(error).toContain(`A task may have been created for the idempotency key "${key}"`);
			expect(made.length).toBeLessThanOrEqual(1);
		}
	}
	return unclear.length;
}

/** Makes all claims older while n8n is down, so that a part of the time for which they count as alive has passed. */
function ageClaims(): void {
	const database = new DatabaseSync(join(stage.userFolder, '.n8n', 'database.sqlite'));
	const { id } = database.prepare(`SELECT id FROM data_table WHERE name = 'flow_task_ledger'`).get() ?? {};
	database.exec(`UPDATE "data_table_user_${String(id)}" SET "atMs" = "atMs" - ${AGED_MS}`);
	database.close();
}

test(
	`of ${KEYS} keys, at most ${UNDER_WAY} are unclear, and each of the others has exactly one task`,
	async () => {
		// In one batch, some requests get no answer although their tasks are created; the other is killed while submitting.
		const [held, flowing] = [keysOf('held'), keysOf('flowing')];
		platform.faults.add({ on: 'submit', kind: 'hang', afterWork: true, match: '"held ', skip: ANSWERED });
		askInVain(held);
		await until(
			() => platform.books().tasksMade >= ANSWERED + UNDER_WAY,
			'requests without an answer',
			PATIENCE,
		);
		askInVain(flowing);
		await until(() => platform.books().tasksMade >= 2 * ANSWERED + UNDER_WAY, 'the other batch', PATIENCE);
		await stage.n8n.kill();
		const made = platform.books().tasksMade;
		expect(made).toBeLessThan(2 * KEYS);

		platform.faults.clear();
		ageClaims();
		await stage.startAgain();
		const [ofHeld, ofFlowing] = await Promise.all([ask(held), ask(flowing)]);

		const unclear = [unclearOf(held, ofHeld), unclearOf(flowing, ofFlowing)];
		expect(unclear[0]).toBe(UNDER_WAY);
		expect(unclear[1]).toBeLessThanOrEqual(UNDER_WAY);
		const reused = ofHeld.filter(({ reused: isReused }) => isReused === true);
		expect(reused).toHaveLength(ANSWERED);
		expect(platform.books().duplicates).toBe(0);
	},
	TEST_DEADLINE_MS,
);

const TASKS = 40;
/** A row is written at most two seconds after its ID is known. */
const WRITTEN_MS = 2_500;
const N8N_TIMEOUT_S = 5;

describe('without idempotency keys', () => {
	const time = new HandWoundTime();
	/** A platform on which no task ends before the test says so. */
	let slow: LocalPlatform;
	let account: SavedCredential;
	let batch: SavedWorkflow;
	let timed: SavedWorkflow;

	beforeAll(async () => {
		slow = await startPlatform({ runners: 4, taskMs: 60_000, images: 'prepared', time });
		account = await stage.n8n.client.createCredential('flowPlatformApi', 'Slow platform', {
			apiKey: slow.apiKey,
			baseUrl: slow.apiUrl,
			wsBaseUrl: slow.wsUrl,
		});
		const { workflowId } = await slow.hostWorkflow(textToImage);
		const make = pictures('Flow Task', account, workflowId);
		batch = await serve('batch', 'onReceived', make);
		timed = await serve('timed', 'onReceived', make, { executionTimeout: N8N_TIMEOUT_S });
		const collect = flowTask('Collect', account, {
			...{ operation: 'wait', taskSource: 'execution', executionId: '={{ $json.key }}' },
			options: { output: 'urls', expert: { recordTasks: 'always' } },
		});
		await serve('collect', 'lastNode', collect);
	}, START_DEADLINE_MS);

	afterAll(async () => await slow?.close());

	beforeEach(() => {
		slow.faults.clear();
		slow.resetBooks();
	});

	async function serve(
		path: string,
		answers: 'lastNode' | 'onReceived',
		step: ReturnType<typeof flowTask>,
		settings: Record<string, unknown> = {},
	): Promise<SavedWorkflow> {
		const saved = await stage.n8n.client.createWorkflow({
			...batchService({ path, answers, steps: [step] }),
			settings,
		});
		await stage.n8n.client.activate(saved);
		return saved;
	}

	const made = (): string[] => slow.books().tasks.map(({ taskId }) => taskId);

	async function rowsOfMade(): Promise<Row[]> {
		const ids = new Set<unknown>(made());
		return (await dataTableRows(stage.n8n.client, 'flow_task_runs')).filter(({ taskId }) => ids.has(taskId));
	}

	async function startBatch(count: number): Promise<void> {
		const keys = Array.from({ length: count }, (_, index) => `picture ${index}`);
		await stage.n8n.client.callWebhook('batch', { keys });
		await until(() => made().length === count, 'all tasks', PATIENCE);
	}

	/** Waits in another execution for the tasks of `executionId`, which end meanwhile. */
	async function collected(executionId: string): Promise<Told[]> {
		const response = stage.n8n.client.callWebhook('collect', { keys: [executionId] }, ASK_DEADLINE_MS);
		const seen = slow.books().polls.length;
		await until(() => slow.books().polls.length > seen, 'a poll', PATIENCE);
		time.pass(60_000 * TASKS);
		return JSON.parse(await (await response).text()) as Told[];
	}

	test(
		'after SIGKILL every ID of a batch is in the table, and another execution collects the images',
		async () => {
			await startBatch(TASKS);
			await sleep(WRITTEN_MS);
			await stage.n8n.kill();
			await stage.startAgain();

			const rows = await rowsOfMade();
			expect(rows.map(({ item }) => item).sort((a, b) => Number(a) - Number(b))).toEqual(
				Array.from({ length: TASKS }, (_, index) => index + 1),
			);
			expect(new Set(rows.map(({ taskId }) => taskId))).toEqual(new Set(made()));
			const [executionId, ...others] = new Set(rows.map((row) => String(row.executionId)));
			expect(others).toEqual([]);

			const images = await collected(executionId ?? '');
			expect(images.map(({ taskId }) => taskId)).toEqual(
				rows.sort((a, b) => Number(a.item) - Number(b.item)).map(({ taskId }) => taskId),
			);
			const after = await rowsOfMade();
			expect(after).toHaveLength(TASKS);
			expect(new Set(after.map(({ status, progress }) => `${String(status)} ${String(progress)}`))).toEqual(
				new Set(['succeeded 100']),
			);
			expect(slow.books().tasksMade).toBe(TASKS);
		},
		TEST_DEADLINE_MS,
	);

	test(
		'when an execution is stopped, the answers to submits under way are still read, and no more are sent',
		async () => {
			slow.faults.add({ on: 'submit', kind: 'slowBody', ms: 1_500 });
			const keys = Array.from({ length: TASKS }, (_, index) => `stopped ${index}`);
			await stage.n8n.client.callWebhook('batch', { keys });
			await until(() => made().length >= UNDER_WAY, 'submits', PATIENCE);
			const [running] = (await stage.n8n.client.listExecutions(batch)).filter(
				({ status }) => status === 'running',
			);
			await stage.n8n.client.stopExecution(running?.id ?? '');
			const sent = slow.books().requests.submit;
			await until(async () => (await rowsOfMade()).length === made().length, 'the rows', PATIENCE);
			const rows = await dataTableRows(stage.n8n.client, 'flow_task_runs');
			const own = rows.filter(({ executionId }) => executionId === running?.id);
			expect(own.filter(({ status }) => status === 'unclear')).toEqual([]);
			expect(slow.books().requests.submit).toBe(sent);
			expect(made()).toHaveLength(sent);
		},
		TEST_DEADLINE_MS,
	);

	test(
		"an execution that n8n's timeout ends while it is submitting leaves every ID in the table",
		async () => {
			// More answers are sent than fit into the time, so that some arrive after its end.
			slow.faults.add({ on: 'submit', kind: 'slowBody', ms: 1_500 });
			const keys = Array.from({ length: 2 * TASKS }, (_, index) => `timed ${index}`);
			await stage.n8n.client.callWebhook('timed', { keys });
			const ended = async () => (await stage.n8n.client.listExecutions(timed))[0]?.status === 'canceled';
			await until(ended, 'the timeout', PATIENCE);
			await until(async () => (await rowsOfMade()).length === made().length, 'the rows', PATIENCE);
			expect(made().length).toBeGreaterThan(UNDER_WAY);
			expect(made().length).toBeLessThan(keys.length);
			const rows = await dataTableRows(stage.n8n.client, 'flow_task_runs');
			const own = rows.filter(({ executionId }) => executionId === rows.at(-1)?.executionId);
			expect(new Set(own.map(({ taskId }) => taskId))).toEqual(new Set(made()));
			expect(own.filter(({ status }) => status === 'unclear')).toEqual([]);
		},
		TEST_DEADLINE_MS,
	);
});
