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

test('reads the preview switch for each item, and calls the agent only if it is plainly off', async () => {
	const switches = [true, 'true', 'false', 1, false];
	const items = switches.map((only, index) => ({ json: { say: `question ${index}`, only } }));
	const outcome = await stage.run(items, { options: { previewRequest: '={{ $json.only }}' } });
	expect(outcome.error).toBeUndefined();
	expect(outcome.items().map(({ json }) => 'preview' in json)).toEqual([
		...[true, true],
		...[false, true, false],
	]);
	expect(outcome.items().map(({ pairedItem }) => pairedItem)).toEqual(items.map((_, item) => ({ item })));
	const { invocations } = stage.platform.books();
	expect(invocations.map(({ message }) => message).sort()).toEqual(['question 2', 'question 4']);
});

test('an item that fails among previewed ones is reported with its own index', async () => {
	stage.platform.faults.add({ on: 'invoke', kind: 'tokenExpired' });
	const items = [true, false].map((only) => ({ json: { say: 'hello', only } }));
	const outcome = await stage.run(items, { options: { previewRequest: '={{ $json.only }}' } });
	expect(outcome.error).toMatchObject({ context: { itemIndex: 1 } });
});
