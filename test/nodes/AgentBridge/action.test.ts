import type { INodeParameters } from 'n8n-workflow';

import { until } from '../../until';
import { stopwatch, toolOf, type HarnessRun } from '../harness';
import { everythingSaid, freshStage, RETRY } from '../harness/stage';
import { CORRELATED, inOptions, openStage, type Stage } from './agentBridge.fixture';

const stage = freshStage(openStage);

const CONTINUE = { onError: 'continueErrorOutput' } as const;
const texts = (...all: string[]): Array<{ json: { text: string } }> =>
	all.map((text) => ({ json: { text } }));
const jsonOf = (run: HarnessRun, output = 0): Array<Record<string, unknown>> => run.jsons(output);
/** The platform learns of a close a moment later than the node. */
const closed = async (): Promise<unknown> => await until(() => bridge().open === 0);
const bridge = (): ReturnType<Stage['platform']['books']>['bridge'] => stage.platform.books().bridge;

describe('request', () => {
	test('several items share one connection, and replies come in order, paired, with the frames that preceded them', async () => {
		const run = await stage.run(texts('one', 'two [tool]', 'three [interrupt]'), {
			options: { answerPath: 'text' },
		});
		expect(jsonOf(run)).toMatchObject([
			{ event: 'message', answer: 'Agent: one', collected: [] },
			{ answer: 'Agent: two [tool]', collected: [{ status: 'started' }, { status: 'finished' }] },
			{ event: 'interrupt', reply: { question: 'May I refund this order?' } },
		]);
		expect(run.items().map(({ pairedItem }) => pairedItem)).toEqual([0, 1, 2].map((item) => ({ item })));
		await closed();
		expect(bridge().connections).toMatchObject([
			{ auth: 'subprotocol', closeCode: 1000, closedBy: 'client' },
		]);
		expect(bridge().received.map(({ frame }) => frame.text)).toEqual([
			'one',
			'two [tool]',
			'three [interrupt]',
		]);
	});

	test.each(['request', 'send'])(
		'an item of %s is not failed by the heartbeat of a connection that is already open',
		async (operation) => {
			const heartbeatFrame = '={{ $json.text === "two" ? $("Nowhere").first().json : {} }}';
			const run = await stage.run(texts('one', 'two'), { operation, options: { heartbeatFrame } });
			expect(jsonOf(run)).toHaveLength(2);
			expect(bridge().received.map(({ frame }) => frame.text)).toEqual(['one', 'two']);
		},
	);

	test('an option of an item that cannot be read fails only that item', async () => {
		const timeoutSeconds = '={{ $json.text === "one" ? $("Nowhere").first().json : 5 }}';
		const run = await stage.run(texts('one', 'two'), { timeoutSeconds }, CONTINUE);
		expect(jsonOf(run)).toMatchObject([{ reply: { text: 'Agent: two' } }]);
	});

	test('each item authenticates as its own option says', async () => {
		const authMode = '={{ $json.text === "one" ? "subprotocol" : "inFrame" }}';
		const run = await stage.run(texts('one', 'two'), { authMode });
		expect(jsonOf(run)).toHaveLength(2);
		await closed();
		expect(
			bridge()
				.connections.map(({ auth }) => auth)
				.sort(),
		).toEqual(['inFrame', 'subprotocol']);
	});

	test('a frame without an ID gets one; one that has its own keeps it', async () => {
		const run = await stage.run(texts('hello'));
		const [sent] = bridge().received;
		expect(sent?.frame.id).toMatch(/^[0-9a-f-]{36}$/);
		expect(jsonOf(run)).toMatchObject([
			{ correlation: sent?.frame.id, reply: { correlation_id: sent?.frame.id } },
		]);
		await stage.run(texts('hello'), { frame: '={{ { type: "message", id: "mine", text: $json.text } }}' });
		expect(bridge().received.at(-1)?.frame.id).toBe('mine');
	});

	test('a 64-bit ID correlates by all its digits, whether the reply contains it as a number or as text', async () => {
		const frame = '{"type":"message","id":12345678901234567891,"text":"[silent]"}';
		for (const repeated of ['12345678901234567891', '"12345678901234567891"']) {
			const { length } = bridge().received;
			const running = stage.run(texts('x'), { frame });
			await until(() => bridge().received.length > length);
			expect(bridge().received.at(-1)?.text).toBe(frame);
			stage.channel.pushRaw('{"type":"message","correlation_id":12345678901234567890,"text":"another"}');
			stage.channel.pushRaw(`{"type":"message","correlation_id":${repeated},"text":"mine"}`);
			expect(jsonOf(await running)).toMatchObject([
				{ correlation: '12345678901234567891', reply: { text: 'mine' } },
			]);
		}
	});

	test('neither frames for others nor duplicate frames end the wait', async () => {
		stage.platform.faults.add({ on: 'bridge', kind: 'duplicateFrames' });
		stage.platform.faults.add({ on: 'bridge', kind: 'socketGarbage' });
		const running = stage.run(texts('[silent]', 'two'));
		const asked = await until(() => bridge().received[0]?.frame);
		stage.channel.push({ type: 'message', text: 'for somebody else' });
		stage.channel.push({ type: 'message', correlation_id: asked.id, text: 'for the one who asked' });
		expect(jsonOf(await running).map(({ reply }) => (reply as { text: string }).text)).toEqual([
			'for the one who asked',
			'Agent: two',
		]);
	});

	test('replies are recognized by event alone if the platform does not correlate', async () => {
		const run = await stage.run(texts('hello [tool]'), {
			correlationPath: '',
			replyPath: '',
			eventFilter: 'message',
		});
		expect(jsonOf(run)).toMatchObject([{ reply: { text: 'Agent: hello [tool]' }, collected: [{}, {}] }]);
	});

	test('without IDs, each item has its own connection, and a message that comes twice is at no other item', async () => {
		stage.platform.faults.add({ on: 'bridge', kind: 'duplicateFrames' });
		const own = { correlationPath: '', replyPath: '', eventFilter: 'message', silenceMs: 50 };
		const run = await stage.run(texts('one', 'two [tool]', 'three'), {
			...own,
			options: { answerPath: 'text' },
		});
		expect(jsonOf(run).map(({ answer }) => answer)).toEqual([
			'Agent: one',
			'Agent: two [tool]',
			'Agent: three',
		]);
		expect(bridge().received.map(({ connection }) => connection)).toEqual([1, 2, 3]);
		expect(bridge().maxOpen).toBe(1);
		expect(everythingSaid(run)).toMatch(/\d message\(s\) arrived too late for the reply/);
		const all = await stage.run(texts('one'), {
			...own,
			replyComplete: 'silence',
			options: { answerPath: 'text' },
		});
		expect(jsonOf(all)).toMatchObject([{ replies: [{}, {}], answer: 'Agent: one\n\nAgent: one' }]);
	});

	test('a token sent in a frame is in the first frame only', async () => {
		const run = await stage.run(texts('hello'), { authMode: 'inFrame' });
		expect(run.error).toBeUndefined();
		expect(bridge().connections).toMatchObject([{ auth: 'inFrame' }]);
		expect(everythingSaid(run)).not.toContain(stage.channel.token);
	});

	test('if no reply arrives in time, the error contains what was collected', async () => {
		const run = await stage.run(texts('first [silent]', 'second'), { timeoutSeconds: 1 }, CONTINUE);
		const [late] = jsonOf(run, 1);
		expect(late).toMatchObject({
			error: expect.stringContaining('within 1 seconds'),
			details: { kind: 'timedOut', collected: [], otherFrames: 0 },
		});
		expect(Object.keys(late ?? {}).sort()).toEqual(['details', 'error', 'message', 'text']);
		expect(jsonOf(run, 0)).toMatchObject([{ reply: { text: 'Agent: second' } }]);

		const tools = await stage.run(texts('[tool]'), { timeoutSeconds: 1, eventFilter: 'interrupt' });
		expect(tools.error?.context).toMatchObject({
			itemIndex: 0,
			collected: [{ type: 'tool_event' }, { type: 'tool_event' }, { type: 'message' }],
		});
	});

	test.each([
		['with a refusal in words before the close', { on: 'bridge', kind: 'socketGarbage', times: 1 }],
		['without a refusal in words', undefined],
	] as const)('a refused account is not tried again for each item: %s', async (_name, words) => {
		if (words) stage.platform.faults.add(words);
		stage.platform.faults.add({ on: 'bridge', kind: 'socketClose', code: 4401 });
		const run = await stage.run(texts('one', 'two', 'three'), {}, CONTINUE);
		expect(jsonOf(run, 1).map(({ details }) => (details as { kind?: string }).kind)).toEqual([
			// It was sent over a connection that the platform had accepted.
			'unclear',
			'credential',
			'credential',
		]);
		expect(bridge().connections).toHaveLength(1);
	});

	test('without Continue On Fail nothing is sent after the first failure', async () => {
		const run = await stage.run(texts('one [silent]', 'two'), { timeoutSeconds: '={{ "1" }}' });
		expect(run.error?.context.itemIndex).toBe(0);
		expect(bridge().received).toHaveLength(1);
		await closed();
	});

	test.each([
		[{ frame: '{}' }, "'Frame' is empty"],
		[{ timeoutSeconds: '={{ "soon" }}' }, "'Timeout (Seconds)' must be a number"],
		[{ frame: '[1]' }, "'Frame' is not a JSON object"],
		[{ correlationPath: '', replyPath: '', eventFilter: '' }, 'cannot tell which frame is the reply'],
		[{ correlationPath: '' }, "'ID to Repeat' is not"],
		[{ correlationPath: 'type.id' }, 'cannot hold an ID'],
		[{ correlationPath: 'message-id' }, '\'ID to Repeat\' is not a valid path: "message-id"'],
		[{ frame: '{"id": {"of": 7}}' }, 'contains an object or an array at "id", which no reply can repeat'],
		[{ authMode: 'inFrame', authFrame: '{}' }, 'no placeholder for the token'],
		[{ frame: '={{ { user: 2 ** 60 } }}' }, "'Frame' contains 1152921504606847000"],
		[{ frame: '{"user": 12345678901234567891}' }, 'when an ID is added'],
	])('%j is refused, and nothing is sent', async (parameters, said) => {
		const run = await stage.run(texts('hello'), parameters);
		expect(run.error?.message).toContain(said);
		expect(bridge().received).toEqual([]);
	});

	test('Stop ends it within a second and closes the connection', async () => {
		const live = await stage.start(texts('[silent]'), { timeoutSeconds: 60 });
		await until(() => bridge().received.length === 1);
		const sinceCancel = stopwatch();
		live.cancel();
		await live.done;
		expect(sinceCancel.stop()).toBeLessThan(1_000);
		await until(() => bridge().open === 0);
	});
});

describe('Retry On Fail', () => {
	test('neither frames that were answered nor frames that may have been processed are sent again', async () => {
		const run = await stage.run(texts('one', 'two [silent]', 'three'), { timeoutSeconds: 1 }, RETRY);
		expect(run.error?.message).toContain('within 1 seconds');
		expect(run.error?.description).toContain('so it was not sent again');
		expect(run.error?.context).toMatchObject({ itemIndex: 1, collected: [] });
		expect(bridge().received.map(({ frame }) => frame.text)).toEqual(['one', 'two [silent]']);
	});

	test('a retry sends the frames that could not be sent, and repeats none of those before them', async () => {
		stage.platform.faults.add({ on: 'bridge', kind: 'socketRefuse', status: 503, times: 1 });
		const run = await stage.run(texts('one', 'two'), {}, RETRY);
		expect(run.error).toBeUndefined();
		expect(jsonOf(run)).toMatchObject([{ reply: { text: 'Agent: one' } }, { reply: { text: 'Agent: two' } }]);
		expect(bridge().received.map(({ frame }) => frame.text)).toEqual(['one', 'two']);
	});

	test('Send sends a frame that the platform has confirmed only once', async () => {
		const run = await stage.run(
			[{ json: { text: 'one' } }, { json: {} }],
			{
				operation: 'send',
				frame: '={{ $json.text ? { type: "message", reply_to: "f", text: $json.text } : "none" }}',
			},
			RETRY,
		);
		expect(run.error?.message).toContain("'Frame' is not a JSON object");
		expect(bridge().received).toHaveLength(1);
	});
});

describe('send', () => {
	const SEND = { operation: 'send', frame: '={{ { type: "message", reply_to: "f-1", text: $json.text } }}' };

	test('1,000 frames sent over one connection have all arrived when the node ends', async () => {
		const all = Array.from({ length: 1_000 }, (_, index) => `number ${index}`);
		const run = await stage.run(texts(...all), SEND);
		expect(run.error).toBeUndefined();
		expect(bridge().received.map(({ frame }) => frame.text)).toEqual(all);
		await closed();
		expect(bridge().connections).toMatchObject([{ closeCode: 1000 }]);
		expect(jsonOf(run)[999]).toEqual({
			sent: true,
			frame: { type: 'message', reply_to: 'f-1', text: 'number 999' },
		});
	});

	test('a 64-bit ID in a pasted frame is sent with all its digits, as a number', async () => {
		const frame = '{ "type": "message", "reply_to": 12345678901234567891, "n": [-98765432109876543210] }';
		const run = await stage.run(texts('x'), { ...SEND, frame });
		expect(bridge().received.map(({ text }) => text)).toEqual([frame]);
		expect(jsonOf(run)).toMatchObject([{ frame: { reply_to: '12345678901234567891' } }]);
	});

	test('one item that is not a frame does not stop the others', async () => {
		const run = await stage.run(
			[{ json: { text: 'one' } }, { json: {} }, { json: { text: 'three' } }],
			{ ...SEND, frame: '={{ $json.text ? { type: "message", reply_to: "f", text: $json.text } : "none" }}' },
			CONTINUE,
		);
		expect(jsonOf(run, 0)).toHaveLength(2);
		expect(jsonOf(run, 1)).toMatchObject([{ error: "'Frame' is not a JSON object" }]);
		expect(bridge().received).toHaveLength(2);
	});
});

test('frames that the platform closes with 1008 are not sent again by Retry On Fail', async () => {
	stage.platform.faults.add({ on: 'bridge', kind: 'socketClose', code: 1008, after: 3 });
	const frame = '={{ { type: "echo", text: $json.text } }}';
	const run = await stage.run(texts('a', 'b', 'c'), { operation: 'send', frame }, RETRY);
	expect(run.error?.description).toContain('was not sent again');
	expect(bridge().received.map((one) => one.frame.text)).toEqual(['a', 'b', 'c']);
});

describe('a bridge that refuses the connection', () => {
	test.each([
		[401, 'refused the channel token (HTTP 401)'],
		[503, 'HTTP 503'],
	])('HTTP %d ends all items after one request', async (status, said) => {
		stage.platform.faults.add({ on: 'bridge', kind: 'socketRefuse', status });
		const run = await stage.run(texts('one', 'two', 'three'), {}, CONTINUE);
		expect(jsonOf(run, 1).map(({ error }) => error)).toEqual(Array(3).fill(expect.stringContaining(said)));
		expect(stage.platform.books().requests.bridge).toBeLessThanOrEqual(3);
	});
});

test('the trigger and the action share one account, whether or not the platform allows two connections', async () => {
	const trigger = await stage.activate({ eventFilter: 'order' });
	await until(() => stage.channel.open === 1);
	await stage.run(texts('hello'));
	expect(bridge().connections).toHaveLength(2);
	await trigger.close();

	const channel = stage.platform.createChannel({ oneSocket: true });
	const account = { channelToken: channel.token };
	const displaced = await stage.activate({ eventFilter: 'order' }, account);
	await until(() => channel.open === 1);
	const run = await stage.run(texts('hello'), {}, { account });
	expect(run.error).toBeUndefined();
	// The trigger was displaced, and reconnects once the action is done.
	await until(() => bridge().connections.length === 5);
	await until(() => channel.open === 1);
	channel.push({ type: 'order' });
	await displaced.waitForRuns(1);
	expect(displaced.fatalErrors).toEqual([]);
});

test('as a tool of an agent, the node returns the reply as text, and its error contains the advice', async () => {
	const type = 'n8n-nodes-flowtask.agentBridgeTool';
	const own = { ...CORRELATED, eventFilter: '', frame: '{"type":"message","text":"hello"}' };
	const tool = async (parameters: INodeParameters) =>
		await stage.runWorkflow(
			toolOf({ name: 'Inbox', type, parameters: inOptions({ ...own, ...parameters }) }),
		);
	const run = await tool({});
	expect(JSON.stringify(run.output('Agent'))).toContain('Agent: hello');
	expect(JSON.stringify(run.output('Agent'))).not.toContain('elapsedMs');
	const late = await tool({ frame: '{"type":"message","text":"[silent]"}', timeoutSeconds: 1 });
	expect(JSON.stringify([late.output('Agent'), late.error])).toContain("raise 'Timeout (Seconds)'");
});
