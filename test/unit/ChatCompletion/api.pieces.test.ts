import { PieceQueue } from '../../../nodes/ChatCompletion/api';
import type { ContentParts } from '../../../nodes/shared/answer/contentParts';
import { askChat, delta, finish, sse } from './askChat';

/** @returns the pieces that are passed on for parts that arrive together */
async function piecesOf(...parts: ContentParts[]): Promise<ContentParts[]> {
	const pieces: ContentParts[] = [];
	const queue = new PieceQueue(async (piece) => void pieces.push(await Promise.resolve(piece)));
	for (const part of parts) queue.add(part);
	await queue.passOn();
	await queue.passOn();
	return pieces;
}

const text = (content: string): ContentParts => ({ content, reasoning: '' });
const thought = (reasoning: string): ContentParts => ({ content: '', reasoning });

test('tokens that arrive together are one piece, and reasoning after text stays after it', async () => {
	expect(await piecesOf(text('one '), text(''), text('two'))).toEqual([text('one two')]);
	expect(await piecesOf(thought('hm'), text('one'), thought('so'), text('two'))).toEqual([
		{ content: 'one', reasoning: 'hm' },
		{ content: 'two', reasoning: 'so' },
	]);
});

test('the first words of an answer do not wait for those that arrive with them', async () => {
	const burst = sse(
		delta({ role: 'assistant' }),
		...['one ', 'two ', 'three'].map((content) => delta({ content })),
	);
	const { pieces } = await askChat({
		body: () => [burst, sse(delta({ content: '!' }), finish('stop'), '[DONE]')],
	});
	expect(pieces.map(({ content }) => content)).toEqual(['one ', 'two three', '!']);
});
