import { NODE_NAME } from '../harness';
import { openChatStage, type ChatStage } from './chat.fixture';

let stage: ChatStage;
beforeAll(async () => {
	stage = await openChatStage();
});
afterAll(async () => {
	await stage.close();
});
beforeEach(() => {
	stage.platform.resetBooks();
});

const SYSTEM = { role: 'system', content: 'Be brief' };

test.each([
	['={{ $json.q }}', /^Message 2 \(user\) has no text: its expression gave nothing/],
	["={{ $json.q ?? '' }}", /^Nothing is asked: message 2 \(user\) is empty for this item/],
])('an item without its question is refused and costs nothing: %s', async (content, message) => {
	const run = await stage.run(
		[{ json: {} }, { json: { q: '[answer: yes]' } }],
		{ messages: { message: [SYSTEM, { role: 'user', content }] } },
		{ onError: 'continueRegularOutput' },
	);
	const [bad, good] = run.output(NODE_NAME).map(({ json }) => json);
	expect(bad).toMatchObject({ error: expect.stringMatching(message), details: { kind: 'badInput' } });
	expect(good).toMatchObject({ content: 'yes' });
	expect(stage.platform.books().requests.chat).toBe(1);
});

test('a row that is empty on purpose is left out, as long as something is asked', async () => {
	const run = await stage.run([{ json: { q: '[answer: yes]' } }], {
		messages: {
			message: [
				SYSTEM,
				{ role: 'assistant', content: "={{ $json.before ?? '' }}" },
				{ role: 'user', content: '={{ $json.q }}' },
			],
		},
	});
	expect(run.output(NODE_NAME)[0]?.json).toMatchObject({ content: 'yes' });
	expect(stage.platform.books().requests.chat).toBe(1);
});
