import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { existsSync, readFileSync } from 'node:fs';
import { createHarness, singleNode, stopwatch, type Harness } from '.';
import { Caller, Download, ErrorItems, Flaky, Patient, Suspender, Talker, Thrower } from './sample.nodes';

/* n8n's behavior around a node. The package relies on it, so a new n8n that differs must fail here. */

let harness: Harness;

beforeAll(async () => {
	harness = await createHarness({
		package: false,
		nodes: [Caller, Download, ErrorItems, Flaky, Patient, Suspender, Talker, Thrower],
	});
});

afterAll(async () => await harness.close());

const taskItem = { json: { i: 0 } };

test('an error of Node itself is an Error, but not an instance of another class', () => {
	expect.assertions(3);
	expect(AbortSignal.abort().reason).toBeInstanceOf(Error);
	try {
		readFileSync('/nowhere');
	} catch (error) {
		expect(error).toBeInstanceOf(Error);
		expect(error).not.toBeInstanceOf(TypeError);
	}
});

describe('binary data', () => {
	const picture = Buffer.alloc(300_000, 7);
	const png = Buffer.from(
		'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg',
		'base64',
	);
	const server = createServer((request, response) => {
		response.setHeader('content-type', 'image/png');
		response.end(request.url === '/png' ? png : picture);
	});
	let url: string;

	beforeAll(async () => {
		await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
		url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
	});

	afterAll(() => server.close());

	test('a stream is written to the file store and read back; the input file is stored there too', async () => {
		const run = await harness.run({
			workflow: singleNode({ type: 'harness.download', parameters: { url, mimeType: 'image/png' } }),
			items: [
				{ binary: { data: { data: Buffer.from('an input'), fileName: 'in.txt', mimeType: 'text/plain' } } },
			],
		});
		const [item] = run.output('Node');

		expect(run.error).toBeUndefined();
		expect(item?.json).toEqual({ inputBytes: 8 });
		expect(item?.binary?.data).toMatchObject({
			data: 'filesystem-v2',
			fileName: 'result.png',
			mimeType: 'image/png',
			bytes: picture.length,
		});
		expect(item?.binary?.data?.id).toContain(`executions/${run.executionId}/binary_data/`);
		expect(picture.equals(await run.binary(item))).toBe(true);
		expect((await run.binary(run.output('Trigger')[0])).toString()).toBe('an input');
	});

	const typeOf = async (parameters: Record<string, string>) => {
		const run = await harness.run({
			workflow: singleNode({ type: 'harness.download', parameters: { url: `${url}/png`, ...parameters } }),
		});
		expect(run.error).toBeUndefined();
		return run.output('Node')[0]?.binary?.data?.mimeType;
	};

	test("a stream without a MIME type is stored as text, whatever the server's content type", async () => {
		expect(await typeOf({ encoding: 'stream' })).toBe('text/plain');
	});
});

describe('retries', () => {
	const flaky = (failures: number, over = {}) =>
		singleNode({ type: 'harness.flaky', parameters: { failures, by: 'throw' }, ...over });
	const retryOnFail = { retryOnFail: true, maxTries: 3, waitBetweenTries: 1 };

	test('Retry On Fail runs the node again and keeps its context; one run is recorded', async () => {
		const run = await harness.run({ workflow: flaky(2, retryOnFail) });

		expect(run.status).toBe('success');
		expect(run.output('Node')[0]?.json).toEqual({ tries: 3 });
		expect(run.runs('Node')).toHaveLength(1);
		expect(run.contextData).toEqual({ 'node:Node': { tries: 3 } });
	});

	test('Retry On Fail also runs again after a normal return whose first item has json.error', async () => {
		const parameters = { failures: 1, by: 'item' };
		const run = await harness.run({ workflow: flaky(1, { ...retryOnFail, parameters }) });

		expect(run.output('Node')[0]?.json).toEqual({ tries: 2 });
	});

	test('Retry execution continues from the failed node with the context that the failed run left', async () => {
		const failed = await harness.run({ workflow: flaky(2), items: [taskItem] });
		expect(failed.status).toBe('error');
		expect(failed.error).toMatchObject({ message: 'Try 1 failed', description: 'Try again' });
		expect(failed.contextData).toEqual({ 'node:Node': { tries: 1 } });

		const again = await harness.retry(failed);
		expect(again.error).toMatchObject({ message: 'Try 2 failed' });
		expect(again.runs('Node')).toHaveLength(1);

		const third = await harness.retry(again);
		expect(third.status).toBe('success');
		expect(third.output('Node')[0]?.json).toEqual({ tries: 3 });
		expect(third.raw.mode).toBe('retry');
		expect(new Set([failed, again, third].map(({ executionId }) => executionId)).size).toBe(3);
		await expect(harness.retry(third)).rejects.toThrow('cannot be retried');
	});

	test('Retry with the edited workflow uses the new parameters and the old context', async () => {
		const failed = await harness.run({ workflow: flaky(100) });
		const fixed = await harness.retry(failed, { workflow: flaky(1) });

		expect(fixed.output('Node')[0]?.json).toEqual({ tries: 2 });
	});
});

describe('error items', () => {
	const errorItems = (onError: 'continueErrorOutput' | 'continueRegularOutput') =>
		singleNode({ type: 'harness.errorItems', onError, outputs: [['Good'], ['Bad']] });

	test('only json with error, message and details reaches the error output unchanged', async () => {
		const run = await harness.run({ workflow: errorItems('continueErrorOutput'), items: [taskItem] });
		const details = { taskId: 't-42', status: 4 };

		expect(run.output('Bad').map(({ json }) => json)).toEqual([
			{ i: 0, error: 'Task t-42 failed', message: 'Look at it', details },
			// This item is paired by a number, not by { item }, so n8n does not merge it into the input's json.
			{ error: 'Task t-41 failed' },
			// This item had `error` set: n8n routed it and then replaced its json, so the task ID is gone.
			{ error: 'Task t-42 failed' },
		]);
		expect(run.output('Good').map(({ json }) => json)).toEqual([
			{ error: 'Task t-42 failed', taskId: 't-42' },
			{ taskId: 't-43' },
		]);
	});

	test('item.error replaces the json even without an error output', async () => {
		const run = await harness.run({ workflow: errorItems('continueRegularOutput'), items: [taskItem] });

		expect(run.output('Node').map(({ json }) => json)).toContainEqual({ error: 'Task t-42 failed' });
		expect(run.output('Node')).toHaveLength(5);
	});

	test('a thrown error outputs the input at the first output as if it had succeeded', async () => {
		const workflow = singleNode({
			type: 'harness.thrower',
			onError: 'continueErrorOutput',
			outputs: [['Good'], ['Bad']],
		});
		const run = await harness.run({ workflow, items: [taskItem] });

		expect(run.status).toBe('success');
		expect(run.output('Good').map(({ json }) => json)).toEqual([{ i: 0 }]);
		expect(run.output('Bad')).toEqual([]);
	});
});

describe('cancel', () => {
	test('the node ends within a second; what it returns is dropped, what it logs is not', async () => {
		const live = await harness.start({
			workflow: singleNode({ type: 'harness.patient', outputs: [['After']] }),
		});
		const isRunning = () => live.said.logs.some(({ message }) => message === 'Task t-1 submitted');
		while (!isRunning()) await new Promise((resolve) => setTimeout(resolve, 5));
		const sinceCancel = stopwatch();
		live.cancel();
		const run = await live.done;

		expect(sinceCancel.stop()).toBeLessThan(1000);
		expect(run.status).toBe('canceled');
		expect(run.runs('Node')).toEqual([]);
		expect(run.runs('After')).toEqual([]);
		// The late result is in memory, but n8n does not store it.
		expect(run.raw.data.resultData.runData.Node).toHaveLength(1);
		const lines = run.logs.filter(({ level }) => level === 'info').map(({ message }) => message);
		expect(lines).toEqual(['Task t-1 submitted', 'Task t-1 left behind, aborted: true']);
	});

	test('a timeout of the workflow cancels in the same way', async () => {
		const workflow = singleNode({ type: 'harness.patient', settings: { executionTimeout: 0.1 } });
		const run = await harness.run({ workflow });

		expect(run.status).toBe('canceled');
		expect(run.runs('Node')).toEqual([]);
	});
});

describe('suspending', () => {
	const suspender = (outputs: string[][]) =>
		singleNode({ type: 'harness.suspender', parameters: { looks: 2 }, outputs });

	test('on resume, the node is not run and its input is output at its first output', async () => {
		const run = await harness.run({ workflow: suspender([['Again'], ['Done']]), items: [taskItem] });
		expect(run.status).toBe('waiting');
		expect(run.stored.waitTill).toBeInstanceOf(Date);
		expect(run.runs('Again')).toEqual([]);

		const resumed = await harness.resume(run);
		expect(resumed.status).toBe('success');
		expect(resumed.executionId).toBe(run.executionId);
		expect(resumed.contextData).toEqual({ 'node:Node': { looks: 1 } });
		expect(resumed.output('Again').map(({ json }) => json)).toEqual([{ i: 0 }]);
		expect(resumed.output('Done')).toEqual([]);
	});

	test('a node connected back to itself polls again and ends with its second output', async () => {
		const workflow = suspender([['Node'], ['Done']]);
		workflow.nodes = workflow.nodes.filter(
			({ name }, index, all) => all.findIndex((n) => n.name === name) === index,
		);
		let run = await harness.run({ workflow, items: [taskItem] });
		let resumptions = 0;
		while (run.status === 'waiting') {
			run = await harness.resume(run);
			resumptions += 1;
		}

		expect(resumptions).toBe(2);
		expect(run.status).toBe('success');
		expect(run.output('Done').map(({ json }) => json)).toEqual([{ i: 0 }]);
		await expect(harness.resume(run)).rejects.toThrow('not "waiting"');
	});
});

describe('messages of a node', () => {
	const talker = singleNode({ type: 'harness.talker' });

	test('hints, log lines and, in manual mode, messages to the UI are captured', async () => {
		const run = await harness.run({ workflow: talker, mode: 'manual' });

		expect(run.hints('Node')).toEqual([
			{ message: '37 done, 2 failed', type: 'warning', location: 'outputPane' },
		]);
		expect(run.logs).toContainEqual({
			level: 'info',
			message: 'A line',
			metadata: {
				error: expect.objectContaining({
					message: 'inner',
					cause: expect.objectContaining({ message: 'root' }),
				}),
			},
		});
		expect(run.logs).toContainEqual(expect.objectContaining({ level: 'ui', message: '8 %' }));
	});

	test('a production run sends nothing to the UI', async () => {
		const run = await harness.run({ workflow: talker });

		expect(run.logs.some(({ level }) => level === 'ui')).toBe(false);
	});

	test('chunks are sent only if n8n streams', async () => {
		const plain = await harness.run({ workflow: talker, mode: 'webhook' });
		expect(plain.output('Node')[0]?.json).toEqual({ streaming: false });

		const run = await harness.run({ workflow: talker, mode: 'webhook', streaming: true });
		expect(run.output('Node')[0]?.json).toEqual({ streaming: true });
		expect(run.chunks.map(({ type, content }) => [type, content])).toEqual([
			['begin', undefined],
			['item', 'Hello'],
			['end', undefined],
		]);
	});

	test('simultaneous runs keep their log lines apart', async () => {
		const runs = await Promise.all([1, 2, 3].map(async () => await harness.run({ workflow: talker })));

		for (const { logs } of runs) expect(logs.filter(({ message }) => message === 'A line')).toHaveLength(1);
	});
});

describe('workflows', () => {
	test('an If node connected back to an earlier node loops, with a run per iteration', async () => {
		const main = (...nodes: string[]) => nodes.map((node) => ({ node, type: 'main' as const, index: 0 }));
		const run = await harness.run({
			workflow: {
				nodes: [
					{ name: 'Start', type: 'n8n-nodes-base.manualTrigger' },
					{ name: 'Add', type: 'harness.set', parameters: { json: '={{ { n: $json.n + 1 } }}' } },
					{ name: 'Again?', type: 'harness.if', parameters: { condition: '={{ $json.n < 3 }}' } },
					{ name: 'End', type: 'n8n-nodes-base.noOp' },
				],
				connections: {
					Start: { main: [main('Add')] },
					Add: { main: [main('Again?')] },
					'Again?': { main: [main('Add'), main('End')] },
				},
			},
			items: [{ json: { n: 0 } }],
		});

		expect(run.error).toBeUndefined();
		expect(run.runs('Add')).toHaveLength(3);
		expect(run.output('Add', 0, 0)[0]?.json).toEqual({ n: 1 });
		expect(run.output('End')[0]?.json).toEqual({ n: 3 });
	});

	test('an inline sub-workflow is an execution of its own', async () => {
		const run = await harness.run({ workflow: singleNode({ type: 'harness.caller' }), items: [taskItem] });

		expect(run.error).toBeUndefined();
		expect(run.output('Node')[0]?.json).toEqual({ i: 0, seen: true });
		expect(run.subExecutions.map(({ status, raw }) => [status, raw.mode])).toEqual([
			['success', 'integrated'],
		]);
	});

	test('executeWorkflow can be replaced', async () => {
		const run = await harness.run({
			workflow: singleNode({ type: 'harness.caller' }),
			executeWorkflow: async () => ({ executionId: 'x', data: [[{ json: { from: 'hook' } }]] }),
		});

		expect(run.output('Node')[0]?.json).toEqual({ from: 'hook' });
	});

	test('n8n refuses a workflow with an unknown node type', async () => {
		await expect(harness.run({ workflow: singleNode({ type: 'nobody.knows' }) })).rejects.toThrow(
			'Unrecognized',
		);
	});
});

test('close() removes the temporary folder', async () => {
	const second = await createHarness({ package: false });
	await second.close();
	// The first harness still runs on the same host.
	expect(existsSync(process.env.N8N_USER_FOLDER ?? '')).toBe(true);
});
