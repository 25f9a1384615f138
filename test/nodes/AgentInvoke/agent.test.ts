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
	'answers and interrupts are sent to separate outputs (stream: %s)',
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
