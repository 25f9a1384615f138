import type { INodeParameters } from 'n8n-workflow';

import { NODE_NAME, to, toolOf, type HarnessRun } from '../harness';
import { RETRY, sayings, sharedStage } from '../harness/stage';
import { CONTINUE, openAgentStage } from './agent.fixture';

const stage = sharedStage(openAgentStage);

const interruptOf = (run: HarnessRun, item = 0) => run.jsons(1)[item]!;

async function resume(from: HarnessRun, parameters: INodeParameters): Promise<HarnessRun> {
	return await stage.run([{ json: interruptOf(from) }], { operation: 'resume', ...parameters });
}

test('sends an object from an expression unchanged', async () => {
	const tool = await stage.run(sayings('[tool: t {}]'));
	await resume(tool, { result: '={{ { a: [1, null] } }}' });
	expect(stage.platform.books().invocations.at(-1)?.interruptAnswered).toMatchObject({
		result: { a: [1, null] },
	});
});

test('sends the reason for a decline', async () => {
	const tool = await stage.run(sayings('[tool: refund {}]'));
	const run = await resume(tool, { decision: 'decline', declineReason: 'not approved' });
	expect(run.jsons()[0]?.answer).toContain('not approved');
	expect(stage.platform.books().invocations.at(-1)?.interruptAnswered).toMatchObject({
		result: { declined: true, reason: 'not approved' },
	});
});

test('of two items that answer the same interrupt, only the first is sent', async () => {
	const tool = await stage.run(sayings('[tool: refund {}]'));
	const items = [{ json: interruptOf(tool) }, { json: interruptOf(tool) }];
	const parameters = { operation: 'resume', result: 'approved' };
	const ended = await stage.run(items, parameters);
	expect(ended.error?.message).toBe('This item answers the same interrupt as row 1 of the input');
	expect(stage.platform.books().invocations).toHaveLength(1);
	const continued = await stage.run(items, parameters, CONTINUE);
	expect(continued.jsons()).toMatchObject([
		{ answer: expect.stringContaining('approved') },
		{ error: 'This item answers the same interrupt as row 1 of the input' },
	]);
	expect(stage.platform.books().invocations).toHaveLength(2);
});

test.each([
	['={{ $json.nothing }}', "'Decision' is empty for this item"],
	["={{ 'declined' }}", "'Decision' must be answer or decline"],
])('a decision that is none is not sent as an answer: %s', async (decision, message) => {
	const tool = await stage.run(sayings('[tool: refund {}]'));
	const run = await resume(tool, { decision, result: 'x' });
	expect(run.error?.message).toBe(message);
	expect(stage.platform.books().invocations).toHaveLength(1);
});

describe('after a node that passes nothing on, such as Wait', () => {
	const ASKED = 'No Operation, do nothing';
	const OF_ASKED = `{{ $('${ASKED}').item.json`;
	const BY_NAME = {
		resumeSessionId: `=${OF_ASKED}.session.id }}`,
		interruptId: `=${OF_ASKED}.interrupt.id }}`,
	};

	async function resumeBehind(parameters: INodeParameters, ...said: string[]): Promise<HarnessRun> {
		const { nodes, connections } = stage.workflow();
		const resume = { operation: 'resume', result: 'yes', ...parameters };
		const toAsked = { main: [[], to(ASKED)] };
		return await stage.runWorkflow(
			{
				nodes: [
					...nodes,
					{ name: ASKED, type: 'harness.noOp' },
					{ name: 'Forget', type: 'harness.forget' },
					{ ...nodes[1]!, name: 'Resume', parameters: resume },
				],
				connections: {
					...connections,
					...{ [NODE_NAME]: toAsked, [ASKED]: { main: [to('Forget')] } },
					...{ Forget: { main: [to('Resume')] }, Resume: toAsked },
				},
			},
			sayings(...said),
		);
	}

	test('the message contains an expression that works', async () => {
		const run = await resumeBehind({}, '[question: sure?]');
		expect(run.error?.message).toBe("'Session ID' is empty for this item");
		expect(run.error?.description).toContain(`refer to it: ${OF_ASKED}.session.id }}.`);
		const half = await resumeBehind({ resumeSessionId: BY_NAME.resumeSessionId }, '[question: sure?]');
		expect(half.error?.message).toBe("'Interrupt ID' is empty for this item");
		expect(half.error?.description).toContain(`refer to it: ${OF_ASKED}.interrupt.id }}.`);
		stage.reset();
		const whole = await resumeBehind(BY_NAME, '[question: sure?]');
		expect(whole.output('Resume')[0]?.json.answer).toContain('the result was yes');
		expect(stage.platform.books().invocations).toHaveLength(2);
	});

	test('each item answers each of its interrupts, also the second', async () => {
		const question = `$('${ASKED}').item.json.interrupt.question`;
		const result = `={{ ${question} === 'b?' ? '[question: b again?]' : 'to ' + ${question} }}`;
		const run = await resumeBehind({ ...BY_NAME, result }, '[question: a?]', '[question: b?]');
		expect(run.error).toBeUndefined();
		const answered = stage.platform
			.books()
			.invocations.flatMap(({ interruptAnswered }) => interruptAnswered ?? []);
		expect(answered.map((one) => one.result).sort()).toEqual([
			'[question: b again?]',
			'to a?',
			'to b again?',
		]);
	});
});

test.each([
	[1, 1],
	[3, 3],
])('a loop of interrupts and results ends after Max Interrupts: %d', async (maxInterrupts, resumes) => {
	const say = Array.from({ length: 6 }, (_, i) => `[tool: t${i} {}]`).join(' ');
	const { nodes, connections } = stage.workflow();
	const limits = { maxInterrupts, requestsPerSecond: 0 };
	const resume = { ...nodes[1]!, name: 'Resume', parameters: { operation: 'resume', result: 'ok', limits } };
	const back = { main: [[], to('Resume')] };
	const run = await stage.runWorkflow(
		{ nodes: [...nodes, resume], connections: { ...connections, [NODE_NAME]: back, Resume: back } },
		sayings(say),
	);
	expect(run.error?.message).toBe(
		`The agent has interrupted ${maxInterrupts + 1} times in this step, but 'Max Interrupts' allows ${maxInterrupts}`,
	);
	expect(stage.platform.books().invocations).toHaveLength(1 + resumes);
});

describe('as a tool of an agent', () => {
	async function asTool(parameters: INodeParameters, settings: object = {}): Promise<string> {
		const type = 'n8n-nodes-flowtask.agentInvokeTool';
		const own = { operation: 'invoke', sessionMode: 'new', ...parameters };
		const run = await stage.runWorkflow(toolOf({ name: 'Helper', type, parameters: own, ...settings }));
		if (run.error) return run.error.message;
		return JSON.stringify(run.output('Agent').map(({ json }) => json)).replaceAll('\\', '');
	}

	test('returns an answer as text with its session ID', async () => {
		const said = await asTool({ message: 'hello' });
		expect(said).toContain('you said');
		expect(said).toMatch(/"sessionId":"ses_/);
	});

	test('returns an interrupt on its only output', async () => {
		const said = await asTool({ message: '[tool: refund {"order": 7}]' });
		expect(said).toMatch(/"needsInput":\{"kind":"tool","tool":"refund","arguments":\{"order":7\}/);
		expect(said).toMatch(/"interruptId":"[^"]+","sessionId":"ses_/);
	});

	test('returns the advice for a failure, and says whom it is for', async () => {
		expect(await asTool({ message: '' })).toMatch(
			/'Message' is empty for this item\. \(For the operator of this workflow, not for the user: Enter a message/,
		);
	});

	test('reports a call that may have run as an item, which n8n does not retry', async () => {
		const said = await asTool({ message: '[side effect: a] [fail: no fuel]' }, RETRY);
		expect(said).toContain('"problem":"The agent failed: ');
		expect(said).toContain('"adviceForOperator":"');
		expect(said).toContain('"mayHaveRun":true');
		expect(said).not.toContain('"error"');
		expect(stage.platform.books().effects).toEqual({ a: 1 });
	});

	test('sends nothing in a preview', async () => {
		expect(await asTool({ message: 'hello', options: { previewRequest: true } })).toContain('"preview"');
		expect(stage.platform.books().requests.invoke).toBe(0);
	});
});
