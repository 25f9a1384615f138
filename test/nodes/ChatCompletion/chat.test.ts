import { until } from '../../until';
import { sayings, sharedStage } from '../harness/stage';
import { openChatStage } from './chat.fixture';

const stage = sharedStage(openChatStage);

const PLACES = ['content', 'details', 'reasoning', 'tags'];

test.each(PLACES.flatMap((place) => [true, false].map((stream) => ({ place, stream }))))(
	'outputs reasoning from $place in one field, apart from the content (stream: $stream)',
	async ({ place, stream }) => {
		const say = `[place: ${place}] [think: first this, then that] [answer: Forty-two.]`;
		const run = await stage.run(sayings(say), { stream, reasoning: 'on' });
		expect(run.error).toBeUndefined();
		const [item] = run.items();
		expect(item?.json).toMatchObject({
			content: 'Forty-two.',
			reasoning: 'first this, then that',
			finishReason: 'stop',
			model: 'family_a-v3.2',
			toolCalls: [],
			usage: { promptTokens: expect.any(Number), completionTokens: expect.any(Number) },
		});
		expect(stage.platform.books().chats[0]?.body).toMatchObject({ enable_thinking: true, stream });
	},
);

test('a streaming execution passes the first words on before the last are sent', async () => {
	const items = sayings('[answer: one two three four] [hold after: 2]');
	const live = await stage.start(items, {}, { mode: 'webhook', streaming: true });
	const heard = (): string => live.said.chunks.map(({ content }) => content ?? '').join('');
	await until(() => stage.platform.chat.held > 0 && heard() !== '');
	const early = heard();
	stage.platform.chat.release();
	const run = await live.done;
	expect(['one', 'one two']).toContain(early.trim());
	expect(heard()).toBe('one two three four');
	// Words that arrive together are one chunk.
	const types = run.chunks.map(({ type }) => type);
	expect([types[0], types[1], types.at(-2), types.at(-1)]).toEqual(['begin', 'item', 'item', 'end']);
});

test('tells a chat why there is no answer', async () => {
	const run = await stage.run(sayings('[empty]'), {}, { mode: 'webhook', streaming: true });
	expect(run.chunks.map(({ type, content }) => [type, content?.trim()])).toEqual([
		['begin', undefined],
		['error', 'The model gave an empty answer. Check the messages, or ask again.'],
	]);
	expect(run.error).toBeUndefined();
});
