import {
	NodeConnectionTypes,
	type IDataObject,
	type IExecuteFunctions,
	type INodeExecutionData,
	type INodeParameters,
	type INodeType,
	type INodeTypeDescription,
} from 'n8n-workflow';

import { LISTEN_OPTIONS } from '../../../nodes/AgentBridge/actions/trigger/fields.listen';
import { until } from '../../until';
import { NODE_NAME, to, type ActiveTrigger, type NodeJson } from '../harness';
import { everythingSaid, freshStage } from '../harness/stage';
import { openStage } from './agentBridge.fixture';

/** The nodes wait for this promise, so that tests can make an execution last. */
let gate: Promise<void>;
/** The number of executions that have reached the gate. */
let atGate: number;

/** A stand-in for a Code node; a parameter says what it does with the items. */
class Work implements INodeType {
	description: INodeTypeDescription = {
		...{ displayName: 'Work', name: 'work', group: ['transform'], version: 1, description: 'Sample' },
		...{ defaults: { name: 'work' }, inputs: [NodeConnectionTypes.Main] },
		outputs: [NodeConnectionTypes.Main, NodeConnectionTypes.Main],
		properties: [
			{ displayName: 'How', name: 'how', type: 'string', default: '' },
			{ displayName: 'Fields', name: 'fields', type: 'json', default: '{}' },
		],
	};

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		const how = this.getNodeParameter('how', 0, '');
		const items = this.getInputData().map(({ json }, item): INodeExecutionData => {
			const fields = this.getNodeParameter('fields', item, {}, { ensureType: 'json' }) as IDataObject;
			return { json: { ...json, ...fields }, pairedItem: { item } };
		});
		atGate++;
		await gate;
		switch (how) {
			case 'fail':
				throw new Error('The work is not to be done');
			case 'reverse':
				return [items.reverse()];
			case 'split':
				return [items.filter((_, i) => i % 2 === 0), items.filter((_, i) => i % 2 === 1)];
			case 'twice':
				return [items.flatMap((item) => [item, item])];
			case 'one of all':
				return [[{ json: { frame: { text: 'all' } }, pairedItem: items.map((_, item) => ({ item })) }]];
			case 'scatter':
				return [['c', 'b', 'a'].map((text) => ({ json: { frame: { text } } }))];
			case 'forget':
				// One item fewer than the input has, or n8n itself would pair them by position.
				return [items.slice(1).map(({ json }) => ({ json }))];
			case 'nothing':
				return [[]];
			default:
				return [items];
		}
	}
}

const stage = freshStage(openStage, { oneSocket: true }, [Work]);
beforeEach(() => {
	gate = Promise.resolve();
	atGate = 0;
});

const REPLY = { frame: { template: '{"type":"message","text":"Re: $json.frame.text"}' } };

type Step = NodeJson & { parameters?: INodeParameters };

/** Activates the trigger with these nodes after it, one after the other. */
async function activate(
	steps: Step[],
	reply: INodeParameters = REPLY,
	parameters: INodeParameters = {},
): Promise<ActiveTrigger> {
	const trigger = { name: NODE_NAME, type: 'n8n-nodes-flowtask.agentBridgeTrigger' };
	const nodes = [
		{
			...trigger,
			parameters: { idPath: 'id', eventFilter: 'message', ...parameters, options: { reply } },
		},
		...steps,
	];
	const connections = Object.fromEntries(
		steps.map(({ name }, index) => [nodes[index]?.name ?? '', { main: [to(name)] }]),
	);
	const active = await stage.harness.activate({
		workflow: { nodes, connections },
		credentials: stage.credentials,
	});
	await until(() => stage.channel.open === 1, 'the connection');
	return active;
}

const work = (how = '', fields = '{}'): Step => ({
	name: 'Work',
	type: 'harness.work',
	parameters: { how, fields },
});

const replies = (): Array<Record<string, unknown>> =>
	stage.platform.books().bridge.received.map(({ frame }) => frame);
const textsOf = (): unknown[] => replies().map(({ text }) => text);
const lines = (trigger: ActiveTrigger): string => trigger.logs.map(({ message }) => message).join('\n');

describe('one frame', () => {
	test('is answered over its own connection, with its ID, and the trigger is not displaced', async () => {
		const trigger = await activate([work()]);
		const id = stage.channel.push({ text: 'hello' });
		await until(() => replies().length === 1);
		expect(replies()).toEqual([{ type: 'message', text: 'Re: hello', reply_to: id }]);
		stage.channel.push({ text: 'again' });
		await until(() => replies().length === 2);
		const { connections, maxOpen } = stage.platform.books().bridge;
		expect([connections.length, maxOpen]).toEqual([1, 1]);
		expect(connections[0]).toMatchObject({ closeCode: null });
		expect(trigger.runs).toHaveLength(2);
	});

	test('is answered with the text of the last item by default', async () => {
		await activate([work('', '={{ { text: "It is " + $json.frame.text } }}')], { frame: {} });
		const id = stage.channel.push({ text: 'noon' });
		await until(() => replies().length === 1);
		expect(replies()).toEqual([{ type: 'message', text: 'It is noon', reply_to: id }]);
	});

	test('is answered as soon as the option is added', async () => {
		const added = structuredClone(LISTEN_OPTIONS.reply.default);
		await activate([work('', '={{ { text: "noon" } }}')], added);
		const id = stage.channel.push({ text: 'time?' });
		await until(() => replies().length === 1);
		expect(replies()).toEqual([{ type: 'message', text: 'noon', reply_to: id }]);
	});

	test('is answered by all items, whatever they are paired with', async () => {
		await activate([
			work('twice'),
			{ ...work('one of all'), name: 'Last' },
			{ ...work('twice'), name: 'End' },
		]);
		const id = stage.channel.push({ text: 'y' });
		await until(() => replies().length === 2);
		const reply = { type: 'message', text: 'Re: all', reply_to: id };
		expect(replies()).toEqual([reply, reply]);
	});

	test('is answered with typed values, whole items and values from the frame, and without missing ones', async () => {
		// The type is not `message`, because the local platform would reply to one without `reply_to`.
		const template = {
			type: 'answer',
			n: '$json.n',
			ok: '$json.ok',
			all: '$json.list',
			from: '$frame.conversation_id',
			gone: '$json.gone',
			price: '$$5',
		};
		await activate([work('', '{"n": 3, "ok": false, "list": [1, {"a": null}]}')], {
			frame: { template: JSON.stringify(template), replyPath: 'meta.answers' },
		});
		const id = stage.channel.push({ text: 'x', conversation_id: 'c-1' });
		await until(() => replies().length === 1);
		expect(replies()).toEqual([
			{
				type: 'answer',
				n: 3,
				ok: false,
				all: [1, { a: null }],
				from: 'c-1',
				price: '$5',
				meta: { answers: id },
			},
		]);
	});

	test('with an ID above 2^53 is answered with the same number, and with a text ID with the same text', async () => {
		await activate([work()]);
		await until(() => stage.channel.open === 1);
		stage.channel.pushRaw('{"type":"message","id":12345678901234567891,"text":"a"}');
		stage.channel.pushRaw('{"type":"message","id":"12345678901234567892","text":"b"}');
		await until(() => replies().length === 2);
		const { received } = stage.platform.books().bridge;
		expect(received.map(({ text }) => text)).toEqual([
			'{"type":"message","text":"Re: a","reply_to":12345678901234567891}',
			'{"type":"message","text":"Re: b","reply_to":"12345678901234567892"}',
		]);
	});

	test('is never answered with the token, whatever the workflow outputs', async () => {
		const { token } = stage.channel;
		const trigger = await activate([work('', JSON.stringify({ text: `it is ${token}`, [token]: 1 }))], {
			frame: { template: '{"all":"$json"}' },
		});
		stage.channel.push({ text: 'x' });
		await until(() => replies().length === 1);
		expect(replies()).toMatchObject([{ all: { text: 'it is [hidden]', '[hidden]': 1 } }]);
		expect(JSON.stringify(trigger.logs)).not.toContain(token);
	});
});

describe('several frames in one execution', () => {
	/** Makes three frames start one execution. */
	async function three(steps: Step[]): Promise<{ trigger: ActiveTrigger; ids: string[] }> {
		let open = (): void => undefined;
		gate = new Promise((resolve) => (open = resolve));
		const trigger = await activate(steps);
		const first = stage.channel.push({ text: 'first' });
		await until(() => atGate === 1);
		const ids = ['a', 'b', 'c'].map((text) => stage.channel.push({ text }));
		// The last frame on the socket, which is logged when it is skipped.
		stage.channel.pushRaw('no frame');
		await until(() => lines(trigger).includes('skipped a frame'));
		open();
		await trigger.waitForRuns(2);
		expect(first).not.toBe('');
		return { trigger, ids };
	}

	test.each([
		['reverse', ['c', 'b', 'a']],
		['split', ['a', 'c', 'b']],
		['twice', ['a', 'a', 'b', 'b', 'c', 'c']],
	])('%s: each item answers the frame with which it is paired', async (how, texts) => {
		const { ids } = await three([work(how), { name: 'Between', type: 'harness.noOp' }]);
		const idOf = (text: string): string | undefined => ids[['a', 'b', 'c'].indexOf(text)];
		// "split" has two outputs, and only the first has a node after it.
		const expected = how === 'split' ? texts.slice(0, 2) : texts;
		await until(() => textsOf().filter((text) => text !== 'Re: first').length === expected.length);
		expect(replies().filter(({ text }) => text !== 'Re: first')).toEqual(
			expected.map((text) => ({ type: 'message', text: `Re: ${text}`, reply_to: idOf(text) })),
		);
	});

	test('get no reply by position, because items that were aggregated may be in another order', async () => {
		const scatter = { name: 'Scatter', type: 'harness.work', parameters: { how: 'scatter' } };
		const { trigger, ids } = await three([work('one of all'), scatter]);
		const said = '3 item(s) of "Scatter" were not sent: n8n cannot tell';
		await until(() => lines(trigger).includes(said), said);
		expect(replies().filter(({ reply_to }) => ids.includes(String(reply_to)))).toEqual([]);
	});

	test('are named in the log if another branch than the last got their items', async () => {
		const { trigger } = await three([work('split'), { name: 'Between', type: 'harness.noOp' }]);
		const said = 'no reply to 1 frame(s): "Between" ran last and has no item for them';
		await until(() => lines(trigger).includes(said), said);
	});

	test('are answered by all outputs of the last node', async () => {
		const { ids } = await three([work('split')]);
		await until(() => replies().length === 4);
		expect(replies().slice(1)).toMatchObject([
			{ text: 'Re: a', reply_to: ids[0] },
			{ text: 'Re: c', reply_to: ids[2] },
			{ text: 'Re: b', reply_to: ids[1] },
		]);
	});

	test.each([
		['one of all', 1],
		['forget', 2],
	])(
		'%s: an item that cannot be assigned to a frame is not sent, and the log says why',
		async (how, count) => {
			const { trigger } = await three([work(how)]);
			const said = `${count} item(s) of "Work" were not sent: n8n cannot tell`;
			await until(() => lines(trigger).includes(said), said);
			// The first frame was alone in its execution.
			if (how === 'one of all') await until(() => replies().length === 1);
			else expect(replies()).toEqual([]);
		},
	);
});

describe('no reply is sent', () => {
	test('to an execution that fails, and the log says so with the ID', async () => {
		const trigger = await activate([work('fail')]);
		const id = stage.channel.push({ text: 'x' });
		await trigger.waitForRuns(1);
		await until(() => lines(trigger).includes('no reply'));
		expect(lines(trigger)).toContain(`no reply to 1 frame(s): the execution failed (IDs: ${id})`);
		expect(replies()).toEqual([]);
	});

	test.each([
		[{}, 'nothing at $json.frame.missing', { frame: { template: '{"text":"$json.frame.missing"}' } }],
		[{ n: 3 }, 'not a JSON object', { frame: { template: '"$json.n"', replyPath: '' } }],
		[{ t: 'x'.repeat(16_000_000) }, 'larger than 16 million', { frame: { template: '{"t":"$json.t"}' } }],
		[
			{},
			"no text or number at the path in 'ID to Repeat'",
			{ frame: { template: '{"t":"$json"}', correlationPath: 'conversation_id' } },
		],
	])('if it would be invalid: %#', async (fields, said, reply) => {
		const trigger = await activate([work('', JSON.stringify(fields))], reply);
		stage.channel.push({ text: 'x' });
		await until(() => lines(trigger).includes('no reply to 1 frame(s)'));
		expect(lines(trigger)).toContain(said);
		expect(replies()).toEqual([]);
	});

	test.each(['nothing', ''])('if the workflow outputs nothing (%j)', async (how) => {
		const trigger = await activate(how ? [work(how)] : []);
		stage.channel.push({ text: 'x' });
		await trigger.waitForRuns(1);
		expect(replies()).toEqual([]);
		expect(trigger.logs.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
	});

	test('to a frame that n8n has already run', async () => {
		const trigger = await activate([work()]);
		stage.channel.push({ id: 'once', text: 'x' });
		await until(() => replies().length === 1);
		stage.channel.push({ id: 'once', text: 'x' });
		stage.channel.push({ text: 'end' });
		await until(() => textsOf().includes('Re: end'));
		expect(textsOf()).toEqual(['Re: x', 'Re: end']);
		expect(trigger.runs).toHaveLength(2);
	});

	test('in a test in the editor', async () => {
		const testing = stage.test({ idPath: 'id', options: { reply: REPLY } });
		await until(() => stage.channel.open === 1);
		stage.channel.push({ text: 'x' });
		const run = await testing;
		expect(run.status).toBe('success');
		expect(everythingSaid(run)).toContain('a test in the editor sends no reply');
		await until(() => stage.platform.books().bridge.open === 0);
		expect(replies()).toEqual([]);
	});
});

describe('a connection that is down when the execution ends', () => {
	test('is waited for, and the reply is sent once over the new one', async () => {
		let open = (): void => undefined;
		gate = new Promise((resolve) => (open = resolve));
		const trigger = await activate([work()]);
		const id = stage.channel.push({ text: 'x' });
		await until(() => stage.platform.books().bridge.sent.length === 1);
		stage.platform.faults.add({ on: 'bridge', kind: 'socketRefuse', status: 503, times: 2 });
		stage.channel.drop(1012);
		await until(() => stage.channel.open === 0);
		open();
		await trigger.waitForRuns(1);
		expect(replies()).toEqual([]);
		await until(() => replies().length === 1, 'the reply');
		expect(replies()).toEqual([{ type: 'message', text: 'Re: x', reply_to: id }]);
		stage.channel.drop(1012);
		const opened = (): number => stage.platform.books().bridge.connections.length;
		await until(() => opened() === 3 && stage.channel.open === 1, 'the third connection');
		stage.channel.push({ text: 'end' });
		await until(() => textsOf().includes('Re: end'));
		expect(textsOf()).toEqual(['Re: x', 'Re: end']);
	});

	test('is not waited for after deactivation: nothing is sent, and the log names the frame', async () => {
		let open = (): void => undefined;
		gate = new Promise((resolve) => (open = resolve));
		const trigger = await activate([work()]);
		const id = stage.channel.push({ text: 'x' });
		await until(() => atGate === 1);
		await trigger.close();
		open();
		await trigger.waitForRuns(1);
		const said = (): string =>
			[...trigger.logs, ...stage.harness.logs].map(({ message }) => message).join('\n');
		await until(() => said().includes('no longer active'));
		expect(said()).toContain(`1 frame(s) to ${new URL(stage.platform.wsUrl).host} were not sent`);
		expect(said()).toContain(id);
		expect([replies(), stage.platform.books().bridge.connections.length]).toEqual([[], 1]);
	});
});

describe('a reply that is refused before a connection is opened', () => {
	test.each([
		[{}, "'Reply' has no frame, so nothing would be sent"],
		[{ frame: { template: '{"text": "$nobody"}' } }, 'unknown placeholder: $nobody'],
		[{ frame: { template: 'text' } }, "'Reply Frame' is not a JSON object"],
		[{ frame: { template: '{}' } }, "'Reply Frame' is not a JSON object"],
		[{ frame: { template: '{"n": 12345678901234567890}' } }, 'would lose digits'],
		[{ frame: { template: '{"a": 1}', replyPath: 'a.b' } }, 'cannot hold a value at "a.b"'],
	])('%j', async (reply, said) => {
		await expect(activate([work()], reply)).rejects.toThrow(said);
		expect(stage.platform.books().requests.bridge).toBe(0);
	});

	test('a correlation field without an ID path', async () => {
		await expect(activate([work()], REPLY, { idPath: '' })).rejects.toThrow('where a frame holds the value');
		const template = '{"type":"answer","text":"$json.frame.text"}';
		await activate([work()], { frame: { template, replyPath: '' } }, { idPath: '' });
		stage.channel.push({ text: 'x' });
		await until(() => replies().length === 1);
		expect(replies()).toEqual([{ type: 'answer', text: 'x' }]);
	});
});

test('answers two thousand frames once each, in order, over one connection', async () => {
	await activate([work()]);
	const ids = stage.channel.pushBurst(2_000);
	await until(() => replies().length >= 2_000, 'all replies');
	expect(replies().map(({ reply_to }) => reply_to)).toEqual(ids);
	expect(stage.platform.books().bridge.connections).toHaveLength(1);
});
