import {
	readSavedAnswer,
	savedAnswerText,
	type TurnResult,
} from '../../../../nodes/AgentInvoke/turns/savedAnswer';
import { isJsonObject, parseJson, type Json } from '../../../../nodes/shared/text/json';
import { replyOf } from '../agentReply.builder';

function answered(raw: Json, args: Json = {}): TurnResult {
	return {
		reply: replyOf('hello', 's', {
			interrupts: [{ id: 'i', kind: 'tool', tool: 't', arguments: args, question: '' }],
			reason: 'r',
			requestId: 'q',
			usage: 7,
			hint: 'h',
			raw: { raw },
		}),
		session: { key: 'k', id: 's', source: 'mapped' },
		attempts: 2,
		elapsedMs: 0,
		replayed: false,
	};
}

function nested(levels: number): Json {
	return levels === 0 ? 1 : [nested(levels - 1)];
}

const read = (result: TurnResult): TurnResult | undefined => {
	const record = parseJson(savedAnswerText(result, 'a', 'keep'));
	return isJsonObject(record) ? readSavedAnswer(record) : undefined;
};

test('an answer is read back as it was saved', () => {
	const result = answered({ a: 1 }, { order: 7 });
	expect(read(result)).toEqual(result);
});

test('a raw answer that would make the saved answer too deep to be read is left out', () => {
	const result = answered(nested(498));
	expect(read(result)).toEqual({ ...result, reply: { ...result.reply, raw: {} } });
});

test('of an answer with arguments that are too deep, only the agent is saved', () => {
	expect(savedAnswerText(answered({}, nested(498)), 'a', 'keep')).toBe('{"agent":"a"}');
});

test('a digest keeps no words of the answer, wherever they are, and is never longer than an answer', () => {
	const result = answered({});
	const usage = { input_tokens: 3, output_tokens: 4, note: 'hello' };
	const reply = { ...result.reply, usage, reason: 'said hello', requestId: 'req-1' };
	const digest = savedAnswerText({ ...result, reply }, 'a', 'digest');
	expect(digest).not.toContain('hello');
	expect(parseJson(digest)).toMatchObject({
		reply: { reason: '', requestId: 'req-1', usage: { input_tokens: 3, output_tokens: 4 } },
		session: { id: 's' },
	});
	const session = { ...result.session, id: 's'.repeat(40_000) };
	expect(savedAnswerText({ ...result, session }, 'a', 'digest')).toBe('{"agent":"a"}');
});

test.each<[Json, Json]>([
	[{ total_tokens: 7 }, { total_tokens: 7 }],
	[
		{ prompt_tokens: 3, completion_tokens: 4, total_tokens: 7, details: { cached_tokens: 2 } },
		{ prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
	],
	[{ totalTokens: '7', input_tokens: 'hello', cost: 1 }, { totalTokens: '7' }],
	[12, 12],
	[{ cost: 1 }, null],
	['hello', null],
])('of the usage %j, a digest keeps %j', (usage, kept) => {
	const result = answered({});
	const digest = savedAnswerText({ ...result, reply: { ...result.reply, usage } }, 'a', 'digest');
	expect(parseJson(digest)).toMatchObject({ reply: { usage: kept } });
});
