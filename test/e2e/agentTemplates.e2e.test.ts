// Runs the templates with an agent, imported into a real n8n, to their end.
import type { BridgeChannel, LocalPlatform } from '../platform';
import { until } from '../until';
import { failureOf, fillTemplate, outputItems, readTemplate } from './runner';
import type { Execution, RunningN8n, SavedCredential, WorkflowDocument } from './runner';
import { serviceStage } from './stage';

const DEADLINE_MS = 120_000;
const PATIENCE = { withinMs: DEADLINE_MS, everyMs: 100 };

const stage = serviceStage('agent-templates-');
let platform: LocalPlatform;
let channel: BridgeChannel;
let n8n: RunningN8n;
let credentials: Record<'flowAgentApi' | 'flowBridgeApi', SavedCredential>;

beforeAll(async () => {
	({ platform, n8n } = stage);
	channel = platform.createChannel();
	credentials = {
		flowAgentApi: stage.agent,
		flowBridgeApi: await n8n.client.createCredential('flowBridgeApi', 'FlowBridge account', {
			channelToken: channel.token,
			wsBaseUrl: platform.wsUrl,
		}),
	};
});

beforeEach(() => platform.resetBooks());

const field = (execution: Execution, node: string, name: string): unknown =>
	outputItems(execution, node).at(-1)?.json[name];

function succeeded(execution: Execution): void {
	expect([execution.status, failureOf(execution)]).toEqual(['success', undefined]);
	expect(JSON.stringify(execution)).not.toContain(platform.agentToken);
}

/** Fills in the template and extends one of its sentences with orders for the local platform's agent. */
function filled(template: WorkflowDocument, sentence = '', orders = ''): WorkflowDocument {
	const values = sentence ? { [sentence]: `${sentence} ${orders}` } : {};
	return fillTemplate(template, { values, credentials });
}

describe('Agent step with approval', () => {
	const REQUEST = 'Refund order A-1042.';

	async function start(orders: string): Promise<string> {
		const document = filled(readTemplate('agent-approval.json'), REQUEST, orders);
		const workflow = await n8n.client.createWorkflow(document);
		return await n8n.client.run(workflow, 'Run now');
	}

	const untilAsleep = async (id: string): Promise<Execution> =>
		await n8n.client.waitForExecution(id, { until: ['waiting'], timeoutMs: DEADLINE_MS });

	/** Opens the form, as a link preview does, and submits it, as a person does. */
	async function decide(execution: Execution, decision: 'Yes' | 'No', comment = ''): Promise<void> {
		const url = String(field(execution, 'What the agent asks', 'form'));
		const page = await (await fetch(url)).text();
		expect(page).toContain(String(field(execution, 'What the agent asks', 'question')));
		const { status } = await n8n.client.waitForExecution(execution.id, { until: ['waiting'] });
		expect(status).toBe('waiting');
		const form = new FormData();
		form.set('field-0', decision);
		form.set('field-1', comment);
		const sent = await fetch(url, { method: 'POST', body: form });
		await sent.arrayBuffer();
		expect(sent.status).toBe(200);
	}

	test('if a person agrees, the agent goes on in its session and acts once', async () => {
		const id = await start('[question: May I refund 20 EUR?] [side effect: refunded]');
		const asleep = await untilAsleep(id);
		expect(field(asleep, 'What the agent asks', 'question')).toBe('May I refund 20 EUR?');
		await decide(asleep, 'Yes', 'but only 10 EUR');
		const ended = await n8n.client.waitForExecution(id, { timeoutMs: DEADLINE_MS });
		succeeded(ended);
		expect(field(ended, 'What the agent says', 'answer')).toContain('the result was yes: but only 10 EUR');
		const { invocations, sessions, effects } = platform.books();
		expect([invocations.length, sessions.length, effects]).toEqual([2, 1, { refunded: 1 }]);
	}, 300_000);

	test('an agent that does not ask ends without a form, and asks with what the note says to request', async () => {
		const ended = await n8n.client.waitForExecution(await start(''), { timeoutMs: DEADLINE_MS });
		succeeded(ended);
		expect(outputItems(ended, 'What the agent asks')).toEqual([]);
		expect(field(ended, 'What the agent says', 'answer')).toContain('Turn 1');
		const note = readTemplate('agent-approval.json').nodes.find(({ id }) => id === 'note-setup');
		const order = /`(\[question: .*?\])`/.exec(String(note?.parameters.content))?.[1] ?? 'none';
		const asleep = await untilAsleep(await start(order));
		expect(order).toContain(String(field(asleep, 'What the agent asks', 'question')));
	}, 300_000);

	test('a person can agree to the first question and decline the tool after it', async () => {
		const id = await start('[question: May I refund?] [tool: refund {"order":"A-1042","amount":2000}]');
		await decide(await untilAsleep(id), 'Yes');
		await until(() => platform.books().invocations.length === 2, 'the agent asks again', PATIENCE);
		const again = await untilAsleep(id);
		expect(field(again, 'What the agent asks', 'question')).toBe(
			'May I run refund? (order: A-1042, amount: 2000)',
		);
		await decide(again, 'No');
		const ended = await n8n.client.waitForExecution(id, { timeoutMs: DEADLINE_MS });
		succeeded(ended);
		expect(field(ended, 'What the agent says', 'answer')).toContain('"declined":true');
		expect(platform.books().sessions).toMatchObject([{ turns: 3, pendingInterrupt: null }]);
		expect(n8n.log.errors()).toEqual([]);
	}, 300_000);
});

describe('Agent with a tool', () => {
	test('n8n looks up what the agent asks for, as often as it asks, and declines what it does not know', async () => {
		const orders =
			'[tool: get_order {"order":"A-1042"}] [tool: get_order {"order":"A-1"}] [tool: delete_order {}]';
		const document = filled(readTemplate('agent-tool.json'), 'Where is order A-1042?', orders);
		const workflow = await n8n.client.createWorkflow(document);
		const execution = await n8n.client.waitForExecution(await n8n.client.run(workflow, 'Run now'));
		succeeded(execution);
		const { invocations, sessions } = platform.books();
		expect(sessions).toMatchObject([{ turns: 4, pendingInterrupt: null }]);
		expect(invocations.slice(1).map(({ body }) => body)).toEqual([
			expect.objectContaining({
				interrupt_result: expect.objectContaining({
					result: { order: 'A-1042', status: 'shipped on Monday' },
				}),
			}),
			expect.objectContaining({
				interrupt_result: expect.objectContaining({ result: { order: 'A-1', status: 'unknown' } }),
			}),
			expect.objectContaining({
				interrupt_result: expect.objectContaining({
					result: { declined: true, reason: 'There is no tool delete_order' },
				}),
			}),
		]);
		expect(field(execution, 'Answers', 'answer')).toContain('Turn 4');
		expect(n8n.log.errors()).toEqual([]);
	}, 300_000);
});

describe('Support inbox over the bridge', () => {
	interface Reply {
		conversation_id: string;
		text: string;
	}
	const replies = (): Reply[] =>
		platform.books().bridge.received.map(({ frame }) => frame as unknown as Reply);

	test('each conversation goes on in its own session, and every message gets its reply', async () => {
		const inbox = await n8n.client.createWorkflow(filled(readTemplate('support-inbox.json')));
		await n8n.client.activate(inbox);
		await until(() => channel.open === 1, 'the trigger is connected', PATIENCE);

		const say = async (round: Array<[string, string]>): Promise<Map<string, string>> => {
			const before = replies().length;
			for (const [conversation, text] of round) channel.push({ conversation_id: conversation, text });
			await until(
				() => replies().length === before + round.length,
				`replies to ${JSON.stringify(round)}`,
				PATIENCE,
			);
			const entries = replies().slice(before);
			return new Map(entries.map(({ conversation_id: id, text }) => [id, text]));
		};
		await say([
			['c-1', 'I am Ada'],
			['c-2', 'I am Bob'],
		]);
		expect(
			await say([
				['c-1', '[recall]'],
				['c-2', '[recall]'],
			]),
		).toEqual(
			new Map([
				['c-1', 'I am Ada'],
				['c-2', 'I am Bob'],
			]),
		);
		const odd = await say([
			['c-1', 'Refund me [question: May I?]'],
			['c-2', '[refuse: no quota]'],
		]);
		expect(odd.get('c-1')).toContain('"declined":true');
		expect(odd.get('c-2')).toBe('Sorry, that did not work. A colleague will write to you.');
		// Neither message blocks its conversation.
		expect(
			new Set(
				(
					await say([
						['c-1', '[answer: c-1 goes on]'],
						['c-2', '[answer: c-2 goes on]'],
					])
				).values(),
			),
		).toEqual(new Set(['c-1 goes on', 'c-2 goes on']));

		expect(platform.books().sessions).toHaveLength(2);
		await n8n.client.deactivate(inbox);
		await until(() => channel.open === 0, 'the trigger is gone', PATIENCE);
		expect(n8n.log.errors()).toEqual([]);
		expect(n8n.log.text()).not.toContain(channel.token);
	}, 400_000);
});
