// Queue mode: n8n's main process and two workers that share Redis and PostgreSQL, but no folder.
import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPlatform, type LocalPlatform } from '../platform';
import textToImage from '../platform/workflows/text-to-image.json';
import { until } from '../until';
import { askAgent, callsOfFewKeys, splitSessions, type AgentItem } from './agentWorkflows';
import { batchService, flowTask, pictures, type BatchService } from './batchService';
import { answers, bridgeInbox, REPLY, thinks } from './bridgeWorkflows';
import { asks, chatCompletion, expectLiveWords, inARow, modelById, webhook } from './chatWorkflows';
import { dataTableRows, type Row } from './databases';
import { ownDatabase, postgresIsThere, queueMode } from './ledger/postgres';
import { packedTarball } from './packOnce';
import { outputItems, startN8n, startWorker } from './runner';
import { noteSecrets, refuseSecretsIn } from './runner/secretHunt';
import type { Execution, RunningN8n, SavedCredential, SavedWorkflow, WorkflowDocument } from './runner';
import { platformAccount } from './stage';

type Worker = Awaited<ReturnType<typeof startWorker>>;

/** The tests wait for results, not for times; these deadlines only end a test that hangs. */
const START_DEADLINE_MS = 300_000;
const DEADLINE_MS = 300_000;
const PATIENCE = { withinMs: DEADLINE_MS / 2, everyMs: 300 };
/** A name that no other run on the same Redis and PostgreSQL uses. */
const NAME = `flowtask_queue_${process.pid}_${Date.now().toString(36)}`;
const LEDGER = 'flow_task_ledger';
const TASKS = 40;
const AT_ONCE = 200;
/** How many frames are sent over the bridge. */
const FRAMES = 300;

/** The log message of a worker that starts an execution. */
const STARTED = /^Worker started execution (?<execution>\d+) /;

// A person may have neither PostgreSQL nor Redis; CI must have both.
const onQueue = process.env.CI || postgresIsThere() ? describe : describe.skip;

onQueue('main and two workers', () => {
	const folder = mkdtempSync(join(tmpdir(), 'flowtask-queue-'));
	/** All workers, including those that were killed. */
	const workers: Worker[] = [];
	let database: Awaited<ReturnType<typeof ownDatabase>> | undefined;
	let env: Record<string, string> = {};
	let platform: LocalPlatform;
	let n8n: RunningN8n;
	let account: SavedCredential;
	let agent: SavedCredential;
	let workflowId: string;
	/** An execution that sleeps in the database while the first tests run, because n8n resumes none within a minute. */
	let sleeper: string;

	beforeAll(async () => {
		platform = await startPlatform({ runners: 50, taskMs: 100, images: 'prepared' });
		({ workflowId } = await platform.hostWorkflow(textToImage));
		database = await ownDatabase(NAME);
		env = queueMode(NAME, database);
		n8n = await startN8n({ userFolder: join(folder, 'main'), tarball: packedTarball(), env });
		await Promise.all([addWorker(), addWorker()]);
		account = await platformAccount({ platform, n8n });
		agent = await n8n.client.createCredential('flowAgentApi', 'FlowAgent account', {
			agentToken: platform.agentToken,
			baseUrl: platform.apiUrl,
		});
	}, START_DEADLINE_MS);

	afterAll(async () => {
		await Promise.all(workers.map((worker) => worker.kill()));
		// A graceful stop would wait half a minute for the killed workers' executions, because n8n takes longer than that
		// to give up on them.
		await n8n?.kill();
		await database?.drop();
		await platform?.close();
		rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
	}, 120_000);

	/** Adds a worker with its own folder, in which the package is installed, as if it ran on another machine. */
	async function addWorker(): Promise<void> {
		const userFolder = mkdtempSync(join(folder, 'worker-'));
		const packages = join('.n8n', 'nodes');
		cpSync(join(folder, 'main', packages), join(userFolder, packages), { recursive: true });
		workers.push(await startWorker({ userFolder, env }));
	}

	async function publish(document: WorkflowDocument): Promise<SavedWorkflow> {
		const workflow = await n8n.client.createWorkflow(document);
		await n8n.client.activate(workflow);
		return workflow;
	}

	/** A FlowTask step, whose prompt contains the item's key. */
	const images = (name: string, parameters: Record<string, unknown>) =>
		pictures(name, account, workflowId, parameters);

	/** Starts a batch service that answers at once. */
	async function startBatch(workflow: SavedWorkflow, path: string, keys: string[]): Promise<string> {
		const before = await n8n.client.listExecutions(workflow);
		const response = await n8n.client.callWebhook(path, { keys });
		expect(response.status).toBe(200);
		return await until(
			async () => {
				const executions = await n8n.client.listExecutions(workflow);
				return executions.find(({ id }) => before.every((earlier) => earlier.id !== id))?.id;
			},
			'an execution',
			PATIENCE,
		);
	}

	/** The executions that each worker, dead or alive, has started, once for each start. */
	function takenUp(): string[][] {
		return workers.map(({ log }) =>
			log.lines.flatMap(({ message }) => STARTED.exec(message)?.groups?.execution ?? []),
		);
	}

	/** Waits for the log message, which may arrive after the effect of what the worker did. */
	async function untilTakenUp(execution: string | undefined, times: number): Promise<void> {
		await until(
			() => {
				const starts = takenUp().flat();
				return starts.filter((id) => id === execution).length >= times;
			},
			`execution ${execution} to be started ${times} times`,
			PATIENCE,
		);
	}

	/** Finds the worker that is running an execution. */
	async function workerOf(execution: string): Promise<Worker> {
		return await until(
			() => {
				return workers[takenUp().findIndex((executions) => executions.includes(execution))];
			},
			'a worker to start',
			PATIENCE,
		);
	}

	async function finished(execution: string): Promise<Execution> {
		const ended = await n8n.client.waitForExecution(execution, { timeoutMs: DEADLINE_MS });
		expect(ended.status).toBe('success');
		return ended;
	}

	test(
		'a suspended wait occupies no worker',
		async () => {
			const path = `${NAME}_sleep`;
			const submit = images('Submit', { operation: 'submit' });
			const wait = flowTask('Wait', account, { operation: 'wait', waitMode: 'suspend' });
			const collected: WorkflowDocument['nodes'][number] = {
				...{ id: 'collected', name: 'Collected', type: 'n8n-nodes-base.noOp', typeVersion: 1 },
				...{ position: [900, 0], parameters: {} },
			};
			const workflow = await publish(
				batchService({
					...{ path, answers: 'onReceived', loopsOn: 'Wait' },
					steps: [submit, wait, collected],
				}),
			);
			// On a busy machine, other tasks would have ended before the first poll.
			sleeper = await startBatch(workflow, path, keysOf('dream [takes:5000]', 3));
			await until(
				async () => {
					const { status } = await n8n.client.getExecution(sleeper);
					return status === 'waiting';
				},
				'the wait to sleep',
				PATIENCE,
			);
			await untilTakenUp(sleeper, 1);
		},
		DEADLINE_MS,
	);

	test(
		`a batch of ${TASKS} ends with its images, which the main process shows, and a file that it was sent reaches a worker`,
		async () => {
			platform.resetBooks();
			const path = `${NAME}_batch`;
			const batch: BatchService = { path, answers: 'onReceived', steps: [images('Flow Task', {})] };
			const workflow = await publish(batchService(batch));
			const execution = await startBatch(workflow, path, keysOf('picture', TASKS));
			const items = outputItems(await finished(execution), 'Flow Task');

			await untilTakenUp(execution, 1);
			expect(new Set(items.map(({ json }) => json.taskId)).size).toBe(TASKS);
			expect([platform.books().tasksMade, platform.books().duplicates]).toEqual([TASKS, 0]);
			const files = items.flatMap(({ binary }) => binary?.data ?? []);
			expect(files).toHaveLength(TASKS);
			const [first, last] = [files[0], files[TASKS - 1]];
			if (!first || !last) throw new Error('no file');
			const bytes = [await n8n.client.download(first), await n8n.client.download(last)];
			expect(bytes.map((image) => image.toString('latin1', 1, 4))).toEqual(['PNG', 'PNG']);

			// The main process receives the webhook's file, and a worker uploads it.
			const upload = { ...flowTask('Upload', account, { resource: 'image', operation: 'upload' }) };
			const sent = `${NAME}_photo`;
			await publish(inARow('Takes a photo', [webhook(sent, 'lastNode'), upload]));
			const body = new FormData();
			body.append('data', new Blob([bytes[0] ?? ''], { type: 'image/png' }), 'photo.png');
			const response = await fetch(`${n8n.url}/webhook/${sent}`, { method: 'POST', body });
			expect(await response.json()).toMatchObject({ imageId: expect.any(String) });
			const sha256 = createHash('sha256')
				.update(bytes[0] ?? '')
				.digest('hex');
			expect(platform.books().uploads).toEqual([expect.objectContaining({ sha256 })]);
		},
		DEADLINE_MS,
	);

	test(
		'a chat that a worker runs is streamed while the model is still talking',
		async () => {
			const path = `${NAME}_talk`;
			const talk = chatCompletion(account, {
				model: modelById('plain-1'),
				messages: asks('={{ $json.body.question }}'),
				options: {},
			});
			const workflow = await publish(inARow('Talks while it thinks', [webhook(path, 'streaming'), talk]));

			await expectLiveWords(n8n, path, platform);
			const [execution] = await n8n.client.listExecutions(workflow);
			await untilTakenUp(execution?.id, 1);
		},
		DEADLINE_MS,
	);

	test.each([
		['in the order of their arrival', {}],
		['strictly one after the other', { turnOrder: 'strict' }],
	])(
		'100 parallel calls with 20 keys over both workers use 20 sessions, one per key, %s',
		async (order, options) => {
			platform.resetBooks();
			const path = `${NAME}_keys_${Object.keys(options).length}`;
			await publish(askAgent(path, agent, { options }));
			const calls = callsOfFewKeys(100, 20, order);
			const answers = await Promise.all(
				calls.map(async (call) => {
					const response = await n8n.client.callWebhook(path, call, DEADLINE_MS);
					return (await response.json()) as AgentItem;
				}),
			);
			const { sessions, invocations, concurrentPerSession } = platform.books();
			expect(splitSessions(calls, sessions)).toEqual([]);
			expect([sessions.length, invocations.length]).toEqual([20, 100]);
			expect(new Set(answers.map(({ session }) => `${session.key} ${session.id}`)).size).toBe(20);
			if (order !== 'in the order of their arrival') expect(concurrentPerSession).toBe(1);
			const rows = await dataTableRows(n8n.client, 'flow_agent_sessions');
			expect(rows.filter(({ sessionId }) => !sessionId)).toEqual([]);
		},
		DEADLINE_MS,
	);

	test(
		`an account with one connection: workers hand ${FRAMES} frames to the trigger, and Reply says that it cannot`,
		async () => {
			platform.resetBooks();
			const channel = platform.createChannel({ oneSocket: true });
			const bridge = await n8n.client.createCredential('flowBridgeApi', 'FlowBridge account', {
				channelToken: channel.token,
				wsBaseUrl: platform.wsUrl,
			});
			const send = answers(bridge, { useTriggerConnection: true });
			const inbox = await publish(bridgeInbox('Inbox', bridge, {}, [send]));
			await until(() => channel.open === 1 || undefined, 'the trigger', PATIENCE);
			const ids = channel.pushBurst(FRAMES);
			const received = () => platform.books().bridge.received.map(({ frame }) => frame.reply_to);
			await until(() => received().length >= FRAMES || undefined, 'all answers', PATIENCE);
			expect(received()).toEqual(ids);
			expect(platform.books().bridge).toMatchObject({ maxOpen: 1, connections: [{ closeCode: null }] });
			await n8n.client.deactivate(inbox);
			await until(() => channel.open === 0 || undefined, 'its end', PATIENCE);

			const replying = await publish(bridgeInbox('Replies', bridge, { reply: REPLY }, [thinks()]));
			await until(() => channel.open === 1 || undefined, 'the trigger', PATIENCE);
			const said = (): string[] =>
				n8n.log.lines.map(({ message }) => message).filter((line) => line.includes('queue mode. Send'));
			channel.push({ text: 'one' });
			await until(() => said().length > 0 || undefined, 'the warning', PATIENCE);
			channel.push({ text: 'two' });
			await until(
				async () => {
					const executions = await n8n.client.listExecutions(replying);
					return executions.filter(({ status }) => status === 'success').length === 2;
				},
				'both executions',
				PATIENCE,
			);
			expect(said()).toHaveLength(1);
			expect(received()).toHaveLength(FRAMES);
			await n8n.client.deactivate(replying);
		},
		DEADLINE_MS,
	);

	test(
		`${AT_ONCE} executions at once over both workers: none is lost, none runs twice`,
		async () => {
			platform.resetBooks();
			const path = `${NAME}_many`;
			const steps = [images('Flow Task', { options: { output: 'urls' } })];
			await publish(batchService({ path, answers: 'lastNode', steps }));
			const keys = keysOf('order', AT_ONCE);
			const before = takenUp().flat();

			const answers = await Promise.all(
				keys.map(async (key) => {
					const response = await n8n.client.callWebhook(path, { keys: [key] }, DEADLINE_MS);
					return (await response.json()) as Array<{ taskId?: string; status?: string }>;
				}),
			);

			const { tasks, duplicates } = platform.books();
			expect(answers.map((items) => items.map(({ status }) => status))).toEqual(
				keys.map(() => ['succeeded']),
			);
			expect(tasks.map(({ prompt }) => JSON.stringify(prompt)).sort()).toEqual(keys.map(promptOf).sort());
			const made = new Map(tasks.map(({ taskId, prompt }) => [taskId, JSON.stringify(prompt)]));
			expect(answers.map(([item]) => made.get(item?.taskId ?? ''))).toEqual(keys.map(promptOf));
			expect(duplicates).toBe(0);
			const earlier = new Set(before);
			const taken = await until(
				() => {
					const started = takenUp().map((executions) => executions.filter((id) => !earlier.has(id)));
					return started.flat().length >= AT_ONCE ? started : undefined;
				},
				'all starts',
				PATIENCE,
			);
			expect(new Set(taken.flat()).size).toBe(AT_ONCE);
			expect([taken.flat().length, taken.every(({ length }) => length > 0)]).toEqual([AT_ONCE, true]);
		},
		DEADLINE_MS,
	);

	// This test runs before any worker is killed, because that worker could be running the execution.
	test(
		'a suspended wait is resumed and collects on a worker',
		async () => {
			const items = outputItems(await finished(sleeper), 'Collected');
			expect(new Set(items.map(({ json }) => json.taskId)).size).toBe(3);
			expect(items.every(({ binary }) => binary?.data)).toBe(true);
			await untilTakenUp(sleeper, 2);
		},
		DEADLINE_MS,
	);

	describe('a worker is killed and the workflow is started again with the same items', () => {
		const path = `${NAME}_orders`;
		let workflow: SavedWorkflow;

		beforeAll(async () => {
			const steps = [images('Flow Task', { limits: { idempotencyKey: '={{ $json.key }}' } })];
			workflow = await publish(batchService({ path, answers: 'onReceived', steps }));
		}, DEADLINE_MS);

		beforeEach(() => {
			platform.resetBooks();
		});

		/** Starts a batch, and kills its worker as soon as the ledger knows this many of its tasks. */
		async function killAt(tasks: number, keys: string[]): Promise<Row[]> {
			const broken = await startBatch(workflow, path, keys);
			const rows = await until(
				async () => {
					const all = await dataTableRows(n8n.client, LEDGER);
					const ofBatch = all.filter(({ executionId }) => executionId === broken);
					// The row of a task that has ended says so instead.
					const made = ofBatch.filter(({ reference }) => reference);
					return made.length === tasks ? ofBatch : undefined;
				},
				`the ledger to know ${tasks} tasks`,
				PATIENCE,
			);
			await (await workerOf(broken)).kill();
			expect((await n8n.client.getExecution(broken)).status).toBe('running');
			return rows;
		}

		/** Starts the workflow again and expects one task and one image for each key. */
		async function startAgain(keys: string[]): Promise<unknown[]> {
			const again = await startBatch(workflow, path, keys);
			const items = outputItems(await finished(again), 'Flow Task');
			const { tasks, duplicates } = platform.books();
			expect([tasks.length, duplicates]).toEqual([keys.length, 0]);
			const made = new Map(tasks.map(({ taskId, prompt }) => [taskId, JSON.stringify(prompt)]));
			expect(items.map(({ json }) => made.get(String(json.taskId)))).toEqual(keys.map(promptOf));
			expect(items.every(({ binary }) => binary?.data)).toBe(true);
			return items.map(({ json }) => json.reused);
		}

		test(
			'while its tasks are running: no task is created twice, and every item gets the one it had',
			async () => {
				const keys = keysOf('order', TASKS);
				// No task is seen to end before the worker is killed.
				const held = platform.faults.add({ on: 'info', kind: 'noProgress' });
				await killAt(TASKS, keys);
				held.remove();

				const [reused] = await Promise.all([startAgain(keys), addWorker()]);

				expect(reused).toEqual(keys.map(() => true));
			},
			DEADLINE_MS,
		);

		test(
			'while it submits: the tasks it had claimed are created once its claims are removed',
			async () => {
				const keys = keysOf('late order', TASKS);
				const submitted = TASKS / 2;
				const held = platform.faults.add({ on: 'submit', kind: 'hang', skip: submitted });
				const rows = await killAt(submitted, keys);
				held.remove();
				// The docs advise this: check which tasks exist on the platform, and free the keys of the others.
				expect(platform.books().tasksMade).toBe(submitted);
				const known = new Set(rows.filter(({ reference }) => reference).map(({ keyText }) => keyText));
				const claimed = keys.filter((key) => !known.has(key));
				expect(claimed).toHaveLength(TASKS - submitted);
				await freeKeys(claimed);

				const reused = await startAgain(keys);

				expect(reused).toEqual(keys.map((key) => (known.has(key) ? true : undefined)));
			},
			DEADLINE_MS,
		);

		/** Frees keys by deleting their rows, as a person does in n8n. */
		async function freeKeys(keys: string[]): Promise<void> {
			const project = await n8n.client.call<{ id: string }>('GET', '/rest/projects/personal');
			const tables = `/rest/projects/${project.id}/data-tables`;
			const found = await n8n.client.call<{ data: Array<{ id: string; name: string }> }>('GET', tables);
			const ledger = found.data.find(({ name }) => name === LEDGER);
			const filters = keys.map((value) => ({ columnName: 'keyText', condition: 'eq', value }));
			const filter = encodeURIComponent(JSON.stringify({ type: 'or', filters }));
			await n8n.client.call('DELETE', `${tables}/${ledger?.id}/rows?filter=${filter}`);
		}
	});

	test(
		'neither the database nor the files of the processes contain a key or token in plain text',
		async () => {
			await Promise.all([n8n, ...workers].map(async (process) => await process.kill()));
			const { apiKey, agentToken } = platform;
			expect(await database?.find([apiKey, agentToken, 'late order 1'])).toEqual(['late order 1']);
			noteSecrets(folder, { apiKey, agentToken });
			await refuseSecretsIn(folder);
		},
		DEADLINE_MS,
	);
});

/** Makes the keys `word 0`, `word 1`, … */
function keysOf(word: string, count: number): string[] {
	return Array.from({ length: count }, (_, index) => `${word} ${index}`);
}

/** The prompt that is sent to the platform for a key. */
function promptOf(key: string): string {
	return JSON.stringify({ '6': { inputs: { text: key } } });
}
