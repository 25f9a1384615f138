import { NODE_NAME } from '../harness';
import { sayings } from '../harness/stage';
import { openAgentStage, type AgentStage } from './agent.fixture';

let stage: AgentStage;
beforeAll(async () => {
	stage = await openAgentStage();
});
afterAll(async () => {
	await stage.close();
});
beforeEach(() => {
	stage.platform.faults.clear();
	stage.platform.resetBooks();
});

test.each([true, false])(
	'an answer, and what it interrupts for, leave by outputs of their own (stream: %s)',
	async (stream) => {
		const run = await stage.run(
			sayings('hello', '[tool: refund {"order": 7}]', '[question: which colour?]'),
			{ stream },
		);
		expect(run.error).toBeUndefined();
		expect(run.output(NODE_NAME, 0).map(({ json }) => json)).toMatchObject([
			{ answer: 'Turn 1: you said "hello"', session: { id: expect.any(String), source: 'new', key: '' } },
		]);
		expect(
			run.output(NODE_NAME, 1).map(({ json, pairedItem }) => [json.interrupt, pairedItem]),
		).toMatchObject([
			[{ kind: 'tool', tool: 'refund', arguments: { order: 7 } }, { item: 1 }],
			[{ kind: 'question', question: 'which colour?' }, { item: 2 }],
		]);
	},
);

test('an interrupt is answered under its session', async () => {
	const first = await stage.run(sayings('[tool: refund {"order": 7}]'));
	const [asked] = first.output(NODE_NAME, 1);
	const second = await stage.run([{ json: asked!.json }], {
		operation: 'resume',
		result: '{"refunded": true}',
	});
	expect(second.error).toBeUndefined();
	expect(second.output(NODE_NAME, 0)[0]?.json.answer).toContain('refunded');
	expect(stage.platform.books().sessions).toHaveLength(1);
});

test('a failing envelope under HTTP 200 is an error that says what failed', async () => {
	const run = await stage.run(sayings('hello', '[fail: no fuel]'), {}, { onError: 'continueRegularOutput' });
	expect(run.output(NODE_NAME, 0).map(({ json }) => json)).toMatchObject([
		{ answer: expect.any(String) },
		{ error: expect.stringContaining('The agent failed'), details: { kind: 'agentFailed' } },
	]);
});
