import type { INodeParameters } from 'n8n-workflow';
import type { IncomingMessage, ServerResponse } from 'node:http';

import { until } from '../../until';
import { NODE_NAME, type HarnessRun, type LiveRun } from '../harness';
import { everythingSaid, RETRY, sharedStage, type NodeSettings } from '../harness/stage';
import { bodyOf, openServer, type TestServer } from '../harness/server';
import { CONTINUE, openStage, prompts, text } from './flowTask.fixture';

/* Tests the node against platforms that do not keep to the interface. */

const stage = sharedStage(openStage);

interface Script {
	submit?(count: number, response: ServerResponse): unknown;
	info?(ids: string[], response: ServerResponse): unknown;
	file?(response: ServerResponse): unknown;
}

let server: TestServer;
let submits: number;
let polls: number;
let script: Script;
beforeEach(async () => {
	submits = 0;
	polls = 0;
	script = {};
	server = await openServer((request, response) => void answer(request, response));
});
afterEach(async () => await server.close());

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
	const body = await bodyOf(request);
	if (request.url?.endsWith('/prompt')) {
		const id = `t${++submits}`;
		if (!script.submit?.(submits, response)) send(response, { prompt_id: id });
	} else if (request.url?.endsWith('/get_task_info')) {
		polls++;
		const ids = (JSON.parse(body) as { flow_task_ids: string[] }).flow_task_ids;
		if (!script.info?.(ids, response)) send(response, { flow_task_info: ids.map((id) => done(id)) });
	} else if (!script.file?.(response)) {
		response.setHeader('content-type', 'image/png').end(Buffer.from('89504e470d0a1a0a', 'hex'));
	}
}

function send(response: ServerResponse, data: unknown, before = ''): true {
	response.end(`${before}${JSON.stringify({ code: 0, msg: 'Success', data })}`);
	return true;
}

function done(id: string, more: object = {}): object {
	return {
		flow_task_id: id,
		status: 3,
		progress_num: 100,
		final_files: [`${server.url}/f/${id}.png`],
		...more,
	};
}

async function start(
	count: number,
	parameters: INodeParameters = {},
	settings: NodeSettings = {},
): Promise<LiveRun> {
	const account = { apiKey: KEY, baseUrl: server.url, wsBaseUrl: '' };
	return await stage.start(prompts(count), { workflowId: 'wf', ...parameters }, { account, ...settings });
}

const run = async (...of: Parameters<typeof start>): Promise<HarnessRun> => await (await start(...of)).done;

const KEY = 'sk-0123456789abcdef';
const POLLING = { limits: { progressChannel: 'polling' } };

test("a suspended wait that fails is sent to the output 'Done', and does not loop", async () => {
	const options = { timeoutMinutes: "={{ 'abc' }}" };
	const parameters = { operation: 'wait', waitMode: 'suspend', taskIds: 't1', options };
	const outputs = [[NODE_NAME], ['Finished']];
	const result = await run(1, parameters, { onError: 'continueRegularOutput', outputs });
	expect(result.runs(NODE_NAME)).toHaveLength(1);
	expect(text(result.output('Finished')[0]?.json.error)).toContain('Timeout (Minutes)');
});

test.each<[string, number, object]>([
	['an error code', 200, { code: 1003, msg: 'queue is long', data: { prompt_id: 'odd-1' } }],
	['its own code for success', 200, { code: 200, msg: 'Success', data: { prompt_id: 'odd-1' } }],
	['no code', 200, { prompt_id: 'odd-1' }],
	['the HTTP status of too many requests', 429, { code: 0, msg: 'Success', data: { prompt_id: 'odd-1' } }],
	['the HTTP status of an outage', 502, { code: 0, msg: 'Success', data: { prompt_id: 'odd-1' } }],
])('a submit answered with an ID and %s is sent once, and retries keep the ID', async (_n, status, body) => {
	script.submit = (_count, response) => {
		response.statusCode = status;
		return response.end(JSON.stringify(body));
	};
	const result = await run(1, POLLING, { ...CONTINUE, ...RETRY });
	expect(submits).toBe(1);
	expect(result.jsons(1)[0]).toMatchObject({
		error: expect.stringMatching(/^Task odd-1 may have been created/),
		details: { taskId: 'odd-1', mayExist: true },
	});
});

test.each([[''], ['  '], [null], [0], ['0'], ['00000000-0000-0000-0000-000000000000']])(
	'a refusal whose ID is %j still counts as a refusal',
	async (id) => {
		script.submit = (_count, response) =>
			response.end(JSON.stringify({ code: 1003, msg: 'no such workflow', data: { prompt_id: id } }));
		const result = await run(1, POLLING, CONTINUE);
		expect(result.jsons(1)[0]).toMatchObject({
			error: expect.stringContaining('no such workflow'),
			message: expect.stringContaining('No task was created'),
		});
	},
);

test('retries do not submit again because the index is late', async () => {
	const startedAt = Date.now();
	script.info = (_ids, response) => Date.now() - startedAt < 13_000 && send(response, { flow_task_info: [] });
	const result = await run(2, POLLING, RETRY);
	expect(result.status).toBe('success');
	expect(submits).toBe(2);
});

test('a task with thousands of links returns one thousand of them, and a hint', async () => {
	const final_files = Array.from({ length: 5_000 }, (_, index) => `${server.url}/f/${index}.png`);
	script.info = (ids, response) =>
		send(response, { flow_task_info: ids.map((id) => done(id, { final_files })) });
	const result = await run(1, { ...POLLING, output: 'urls' });
	expect(result.jsons()[0]?.otherUrls).toHaveLength(999);
	expect(result.hints()).toContainEqual(expect.stringContaining('1 task(s) list more than 1000 files'));
});

test.each([
	['submitted', {}, (response: ServerResponse) => send(response, { prompt_id: 'x'.repeat(5_000_000) })],
	['waited for', { operation: 'wait', taskIds: `={{ 'x'.repeat(5000000) }}` }, undefined],
])('an ID of 5 MB is reported in a short sentence if it is %s', async (_name, parameters, submit) => {
	if (submit) script.submit = (_count, response) => submit(response);
	const result = await run(1, { ...parameters, ...POLLING }, CONTINUE);
	const [failed] = result.items(1);
	expect(text(failed?.json.error)).toMatch(/no usable "prompt_id"|longer than 1000 characters/);
	expect(everythingSaid(result).length).toBeLessThan(200_000);
});

test('the last error of a retry names the tasks of the earlier tries', async () => {
	script.submit = (count, response) => count === 3 && response.destroy();
	const result = await run(3, POLLING, { ...RETRY, maxTries: 2 });
	expect(result.error?.message).toContain('A task may have been created');
	const known = (result.error?.context.tasks ?? []) as Array<{ taskId: string }>;
	expect(known.map(({ taskId }) => taskId).sort()).toEqual(['t1', 't2']);
});

test('the timeout also ends the wait for a permit', async () => {
	const options = { timeoutMinutes: 0.05 };
	const limits = { requestsPerSecond: 0.5, progressChannel: 'polling' };
	const result = await run(10, { options, limits }, CONTINUE);
	expect(submits).toBeLessThan(5);
	expect(result.items().length + result.items(1).length).toBe(10);
});

test('broken tokens and byte order marks are tolerated', async () => {
	script.submit = (count, response) =>
		send(response, { prompt_id: `t${count}`, prompt_token: '\ud800x' }, '\uFEFF');
	const result = await run(25);
	expect(result.items()).toHaveLength(25);
});

test('neither a repeated prompt token nor a key in a link reaches an item', async () => {
	script.submit = (count, response) =>
		send(response, { prompt_id: `t${count}`, prompt_token: 'PTOKEN-1234567' });
	script.info = (ids, response) =>
		send(response, {
			flow_task_info: ids.map((id) =>
				done(id, {
					prompt_token: 'PTOKEN-1234567',
					errMsg: 'token PTOKEN-1234567 is fine',
					final_files: [`${server.url}/f/x.png?k=${KEY}&token=signed`],
				}),
			),
		});
	const result = await run(1, { simplify: false, output: 'urls' });
	const [item] = result.items();
	expect(everythingSaid(result)).not.toContain('PTOKEN');
	expect(everythingSaid(result)).not.toContain(KEY);
	// A link is useless unless its signature is unchanged.
	expect(item?.json.finalFiles).toEqual([`${server.url}/f/x.png?k=[hidden]&token=signed`]);
});

test('a task that succeeded without any file is polled again, and fails unless its workflow saves none', async () => {
	const errMsg = `content was flagged for ${KEY}`;
	script.info = (ids, response) =>
		send(response, {
			flow_task_info: ids.map((id) => done(id, { files: null, final_files: [null, 3], errMsg })),
		});
	const result = await run(1, POLLING, CONTINUE);
	expect(polls).toBe(2);
	expect(result.jsons(1)).toMatchObject([
		{
			error: 'Task t1 succeeded without any file, with the message "content was flagged for [hidden]"',
			details: { taskId: 't1', status: 'succeeded' },
		},
	]);
	const captioner = { '6': { class_type: 'Caption', inputs: { text: 'a fox' } } };
	const empty = await run(1, { ...POLLING, workflowDefinition: JSON.stringify(captioner) });
	expect(empty.jsons(0)).toMatchObject([{ status: 'succeeded' }]);
	expect(empty.hints()[0]).toContain('succeeded without any file');
});

test('a key in the link of a file appears neither in its item nor in its name', async () => {
	const url = `${server.url}/f/x.png?k=${KEY}&token=signed`;
	script.info = (ids, response) =>
		send(response, { flow_task_info: ids.map((id) => done(id, { final_files: [url] })) });
	const result = await run(1, { ...POLLING, output: 'filePerItem', simplify: false });
	expect(result.jsons()).toMatchObject([{ file: { url: `${server.url}/f/x.png?k=[hidden]&token=signed` } }]);
	expect(everythingSaid(result)).not.toContain(KEY);
});

test.each([
	['7001', 3],
	['', 1],
])(
	'with the busy codes "%s", a submit that is answered with 7001 is sent %d times',
	async (busyCodes, sent) => {
		const account = { apiKey: KEY, baseUrl: server.url, wsBaseUrl: '', busyCodes };
		script.submit = (count, response) => {
			if (count > 2) return false;
			response.end(JSON.stringify({ code: 7001, msg: 'later', data: null }));
			return true;
		};
		const result = await run(1, POLLING, { account });
		expect(submits).toBe(sent);
		expect(result.status).toBe(sent === 3 ? 'success' : 'error');
	},
);

test('a retry after a task without any file continues with it, and does not pay again', async () => {
	script.info = (ids, response) =>
		send(response, { flow_task_info: ids.map((id) => done(id, { final_files: [] })) });
	const result = await run(1, POLLING, RETRY);
	expect(result.error?.message).toContain('Task t1 succeeded without any file');
	expect(submits).toBe(1);
});

test.each([503, 200])(
	'a task whose files nobody has seen does not count as done (HTTP %d)',
	async (status) => {
		script.info = (ids, response) => {
			const bare = ids.map((id) => done(id, { final_files: [] }));
			if (polls > 1) response.statusCode = status;
			return send(response, { flow_task_info: polls > 1 ? [] : bare });
		};
		const result = await run(1, POLLING, CONTINUE);
		expect(result.jsons(1)[0]).toMatchObject({
			error: 'Task t1 succeeded, but the platform did not return the links to its files',
			details: { taskId: 't1', status: 'succeeded' },
		});
	},
);

test('a failure that ends the run is not hidden by a task whose links were being read', async () => {
	let isReading = false;
	script.info = (ids, response) => {
		if (polls > 1 && ids.includes('t1')) return (isReading = true);
		const reports = ids.map((id) =>
			id === 't1' ? done(id, { final_files: [] }) : done(id, { status: isReading ? 4 : 2 }),
		);
		return send(response, { flow_task_info: reports });
	};
	const result = await run(2, POLLING);
	expect(isReading).toBe(true);
	expect(result.error?.message).toMatch(/^Task t2 failed on the platform/);
});

test('Get says of a task whose call failed what to do about that failure, and keeps the other tasks', async () => {
	script.info = (ids, response) => {
		if (!ids.includes('x100')) return false;
		response.statusCode = 401;
		return send(response, null);
	};
	const taskIds = Array.from({ length: 101 }, (_, index) => `x${index}`).join();
	const result = await run(1, { operation: 'get', taskIds }, CONTINUE);
	expect(result.jsons()).toHaveLength(100);
	expect(result.jsons(1)).toMatchObject([
		{
			error: expect.stringMatching(/^The state of task x100 cannot be read\. .* API key/),
			message: expect.stringContaining('Check that the key in the FlowPlatform credential'),
		},
	]);
});

test('the ID in an answer to a submit is kept even if the connection breaks after it', async () => {
	script.submit = (_count, response) => {
		response.writeHead(200, { 'content-length': '1000' });
		response.write('{"code":0,"msg":"Success","data":{"prompt_id":"t1"}}', () => response.destroy());
		return true;
	};
	const result = await run(1, POLLING);
	expect(result.error?.message).toMatch(/^Task t1 may have been created\. .* connection broke/);
	expect(result.error?.context).toMatchObject({ taskId: 't1', mayExist: true });
	expect(submits).toBe(1);
});

test.each<[keyof Script, RegExp]>([
	['submit', /^A task may have been created.*: no answer came in time$/],
	['file', /^The file at .* could not be downloaded/],
])('a %s that is answered with another protocol does not hold up the run', async (call, error) => {
	// n8n's client never reports such an answer, not even by its timeout.
	script[call] = (...of: unknown[]) =>
		(of.at(-1) as ServerResponse).socket?.write(
			'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n',
		);
	const result = await run(1, POLLING, CONTINUE);
	expect(result.jsons(1)[0]?.error).toMatch(error);
	expect(submits).toBe(1);
});

test('a stop during submits logs that they may have created tasks', async () => {
	script.submit = () => true;
	const live = await start(3);
	await until(() => submits === 3);
	live.cancel();
	const { logs } = await live.done;
	const line = await until(() => logs.find(({ message }) => message.includes('was stopped')));
	expect(line.message).toContain('3 submit(s) had no answer yet');
});
