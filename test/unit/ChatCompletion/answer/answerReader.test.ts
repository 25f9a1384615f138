import type { ContentParts } from '../../../../nodes/shared/chat/contentParts';
import { AnswerReader } from '../../../../nodes/ChatCompletion/answer/answerReader';
import type { JsonObject } from '../../../../nodes/shared/text/json';
import { redactor } from '../../../../nodes/shared/text/redact';
import { TestClock } from '../../testClock';
import { askChat, delta, finish, sse } from '../askChat';

/** @returns the pieces that are delivered for events that arrive together */
async function piecesOf(...chunks: JsonObject[]): Promise<ContentParts[]> {
	const pieces: ContentParts[] = [];
	const onPiece = async (piece: ContentParts): Promise<void> =>
		void pieces.push(await Promise.resolve(piece));
	const terms = { onPiece, idleMs: Infinity, endByMs: Infinity };
	const reader = new AnswerReader(new TestClock(), redactor([]), terms, []);
	for (const chunk of chunks) {
		reader.take({ name: undefined, data: JSON.stringify(chunk), isWholeBody: false });
	}
	await reader.tell();
	await reader.tell();
	return pieces;
}

test('tokens that arrive together are one piece', async () => {
	expect(
		await piecesOf(delta({ content: 'one ' }), delta({}), delta({ content: 'two' }), finish('stop')),
	).toEqual([{ content: 'one two', reasoning: '' }]);
});

test('reasoning after text stays after it', async () => {
	const pieces = await piecesOf(
		delta({ reasoning_content: 'hm' }),
		delta({ content: 'one' }),
		delta({ reasoning_content: 'so' }),
		delta({ content: 'two' }),
	);
	expect(pieces).toEqual([
		{ content: 'one', reasoning: 'hm' },
		{ content: 'two', reasoning: 'so' },
	]);
});

test('text before an error in the same chunk is delivered', async () => {
	expect(await piecesOf(delta({ content: 'one' }), { error: { message: 'gone' } })).toEqual([
		{ content: 'one', reasoning: '' },
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
