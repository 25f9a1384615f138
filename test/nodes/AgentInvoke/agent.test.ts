import { sayings, sharedStage } from '../harness/stage';
import { openAgentStage } from './agent.fixture';

const stage = sharedStage(openAgentStage);

test.each([true, false])(
	'answers and interrupts are sent to separate outputs (stream: %s)',
	async (stream) => {
		const run = await stage.run(
			sayings('hello', '[tool: refund {"order": 7}]', '[question: which colour?]'),
			{ stream },
		);
		expect(run.error).toBeUndefined();
		expect(run.jsons()).toMatchObject([
			{ answer: 'Turn 1: you said "hello"', session: { id: expect.any(String), source: 'new', key: '' } },
		]);
		expect(
			run.items(1).map(({ json, pairedItem }) => [json.interrupt, json.reason, pairedItem]),
		).toMatchObject([
			[{ kind: 'tool', tool: 'refund', arguments: { order: 7 } }, 'interrupted', { item: 1 }],
			[{ kind: 'question', question: 'which colour?' }, 'interrupted', { item: 2 }],
		]);
	},
);
