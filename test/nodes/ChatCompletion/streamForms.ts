import type { Json, JsonObject } from '../../../nodes/shared/text/json';

/** What the connection does after the last byte. */
export type Ending = 'end' | 'reset' | 'hold';

/** A body as some server sends it, and the result expected however it is split. */
export interface StreamForm {
	readonly name: string;
	readonly body: Buffer;
	readonly ending: Ending;
	readonly contentType: string;
	readonly expected:
		{ readonly answer: JsonObject } | { readonly error: RegExp; readonly details?: JsonObject };
}

const EVENT_STREAM = 'text/event-stream; charset=utf-8';
const JSON_TYPE = 'application/json';

interface Extra {
	finish?: string | null;
	usage?: JsonObject | null;
	more?: JsonObject;
}

function chunk(delta: Json | undefined, { finish, usage, more }: Extra = {}): JsonObject {
	return {
		id: 'chatcmpl-1',
		object: 'chat.completion.chunk',
		model: 'm',
		choices: [
			{
				index: 0,
				...(delta !== undefined && { delta }),
				...(finish !== undefined && { finish_reason: finish }),
			},
		],
		...(usage !== undefined && { usage }),
		...more,
	};
}

const say = (content: Json, extra?: Extra): JsonObject => chunk({ content }, extra);
const think = (text: string): JsonObject => chunk({ reasoning_content: text });
const STOP = chunk({}, { finish: 'stop' });
const USAGE = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 };
const DONE = '[DONE]';

/** Events with the given line ending. */
function lines(eol: string, ...events: (JsonObject | string)[]): string {
	return events
		.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}${eol}${eol}`)
		.join('');
}

const sse = (...events: (JsonObject | string)[]): string => lines('\n', ...events);

function answer(content: string, more: JsonObject = {}): StreamForm['expected'] {
	return { answer: { content, reasoning: '', finishReason: 'stop', toolCalls: [], ...more } };
}

function form(
	name: string,
	body: string | Buffer,
	expected: StreamForm['expected'],
	{ ending = 'end', contentType = EVENT_STREAM }: Partial<StreamForm> = {},
): StreamForm {
	return { name, body: Buffer.from(body), ending, contentType, expected };
}

const HELLO = [say('Hel'), say('lo'), STOP] as const;
const hello = (more?: JsonObject): StreamForm['expected'] => answer('Hello', more);

const call = (delta: JsonObject): JsonObject => chunk({ tool_calls: [delta] });
const CALL = { id: 'c1', name: 'weather', arguments: { city: 'Oslo' } };
const called = answer('', { finishReason: 'tool_calls', toolCalls: [CALL] });
const CALLS_END = chunk({}, { finish: 'tool_calls' });

const WHOLE: JsonObject = {
	id: 'chatcmpl-1',
	object: 'chat.completion',
	model: 'm',
	choices: [
		{
			index: 0,
			message: { role: 'assistant', content: 'Hello 🦊', reasoning_content: 'hm' },
			finish_reason: 'stop',
		},
	],
	usage: USAGE,
};

export const STREAM_FORMS: readonly StreamForm[] = [
	form('plain', sse(chunk({ role: 'assistant' }), ...HELLO, DONE), hello()),
	form(
		'comments between and within',
		`: ping\n\n:\n${sse(say('Hel'))}: still here\n: and here\n\n${sse(say('lo'), STOP)}:\n\n${sse(DONE)}`,
		hello(),
	),
	form('CRLF', lines('\r\n', ...HELLO, DONE), hello()),
	form('CR', lines('\r', ...HELLO, DONE), hello()),
	form('mixed line ends', `${lines('\r\n', say('Hel'))}${lines('\r', say('lo'))}${sse(STOP, DONE)}`, hello()),
	form('no blank after the colon', sse(...HELLO, DONE).replaceAll('data: ', 'data:'), hello()),
	form(
		'data over several lines',
		`data: {"choices":[{"index":0,\ndata:  "delta":{"content":\ndata: "Hello"}}]}\n\n${sse(STOP, DONE)}`,
		hello(),
	),
	form(
		'fields that mean nothing',
		`id: 1\nevent: message\nretry: 10\nfoo: bar\n${sse(...HELLO, DONE)}`,
		hello(),
	),
	form(
		'emoji and CJK',
		sse(say('Füchse 🦊'), think('狐'), say('狐は速い 🇯🇵'), STOP, DONE),
		answer('Füchse 🦊狐は速い 🇯🇵', { reasoning: '狐' }),
	),
	form('each line wrapped once more', sse(...HELLO, DONE).replaceAll('data: ', 'data: data: '), hello()),
	form('each line wrapped twice more', sse(...HELLO, DONE).replaceAll('data: ', 'data:data: data:'), hello()),
	form('lines of JSON', HELLO.map((event) => `${JSON.stringify(event)}\n`).join(''), hello()),
	form(
		'lines of JSON and [DONE], with CRLF',
		[...HELLO.map((event) => JSON.stringify(event)), DONE].join('\r\n'),
		hello(),
	),
	form('byte order mark', `\uFEFF${sse(...HELLO, DONE)}`, hello()),
	form('blank lines first', `\n\n${sse(...HELLO, DONE)}`, hello()),
	form('no [DONE]', sse(...HELLO), hello()),
	form('last event without a blank line', sse(...HELLO).trimEnd(), hello()),
	form('[DONE] without a blank line', sse(...HELLO, DONE).trimEnd(), hello()),
	form('[DONE] without a finish reason', sse(say('Hello'), DONE), hello({ finishReason: '' })),
	form('more after [DONE]', sse(...HELLO, DONE, say('never heard'), { error: 'late' }), hello()),
	form('held open after [DONE]', sse(...HELLO, DONE), hello(), { ending: 'hold' }),
	form('held open after the finish reason', sse(...HELLO), hello(), { ending: 'hold' }),
	form('reset after the finish reason', sse(...HELLO), hello(), { ending: 'reset' }),
	form(
		'no choices, null, empty',
		sse({}, { choices: null }, { choices: [] }, { choices: [null] }, ...HELLO, { usage: null }, DONE),
		hello(),
	),
	form('delta null or absent', sse(chunk(null), chunk(undefined), ...HELLO, chunk(null), DONE), hello()),
	form('content null', sse(say(null), ...HELLO, say(null), DONE), hello()),
	form(
		'content as a list of parts',
		sse(
			say([{ type: 'thinking', thinking: 'hm' }]),
			say([{ type: 'text', text: 'Hel' }, 'l']),
			say({ text: 'o' }),
			STOP,
			DONE,
		),
		hello({ reasoning: 'hm' }),
	),
	form(
		'pieces that look like numbers and truth values, sent as such',
		sse(say('It is '), say(6), say(0.5), say(' or '), say(true), chunk({ reasoning_content: 7 }), STOP, DONE),
		answer('It is 60.5 or true', { reasoning: '7' }),
	),
	form('pieces that begin alike', sse(say('1'), say('12'), say('12'), STOP, DONE), answer('11212')),
	form('events without empty lines between them', sse(...HELLO, DONE).replaceAll('\n\n', '\n'), hello()),
	form('finish reason together with content', sse(say('Hel'), say('lo', { finish: 'stop' }), DONE), hello()),
	form(
		'finish reason null before',
		sse(say('Hel', { finish: null }), say('lo', { finish: '' }), STOP, DONE),
		hello(),
	),
	form('words between the chunks', sse('ping', say('Hel'), '"keep-alive"', say('lo'), STOP, DONE), hello()),
	form(
		'usage at the end',
		sse(...HELLO, { choices: [], usage: USAGE }, DONE),
		hello({ usage: { promptTokens: 3, completionTokens: 5, totalTokens: 8 } }),
	),
	form(
		'usage in every chunk',
		sse(
			say('Hel', { usage: { ...USAGE, completion_tokens: 1, total_tokens: 4 } }),
			say('lo', { usage: { ...USAGE, completion_tokens: 2, total_tokens: 5 } }),
			chunk({}, { finish: 'stop', usage: USAGE }),
			DONE,
		),
		hello({ usage: { promptTokens: 3, completionTokens: 5, totalTokens: 8 } }),
	),
	form(
		'usage twice',
		sse(
			...HELLO,
			{ choices: [], usage: USAGE },
			{ usage: { completion_tokens_details: { reasoning_tokens: 2 } } },
			DONE,
		),
		hello({ usage: { promptTokens: 3, completionTokens: 5, totalTokens: 8, reasoningTokens: 2 } }),
	),
	form(
		'reasoning_content',
		sse(think('first '), think('this'), ...HELLO, DONE),
		hello({ reasoning: 'first this' }),
	),
	form(
		'reasoning_details as lists, and the same in reasoning_content',
		sse(
			chunk({ reasoning_details: [{ type: 'reasoning.text', text: 'first ' }], reasoning_content: 'first ' }),
			chunk({ reasoning_details: [{ type: 'reasoning.text', text: 'this' }], reasoning_content: 'this' }),
			...HELLO,
			DONE,
		),
		hello({ reasoning: 'first this' }),
	),
	form(
		'reasoning_details that repeat themselves',
		sse(
			chunk({ reasoning_details: [{ text: 'first' }] }),
			chunk({ reasoning_details: [{ text: 'first this' }] }),
			...HELLO,
			DONE,
		),
		hello({ reasoning: 'first this' }),
	),
	form(
		'think tags in pieces',
		sse(...'\n<think>first this</think>\n\nHello'.match(/.{1,3}/gs)!.map((piece) => say(piece)), STOP, DONE),
		hello({ reasoning: 'first this' }),
	),
	form(
		'the whole message at the end',
		sse(
			say('Hel'),
			say('lo'),
			{ choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }] },
			DONE,
		),
		hello(),
	),
	form(
		'tool call in pieces',
		sse(
			call({ index: 0, id: 'c1', type: 'function', function: { name: 'weather', arguments: '' } }),
			call({ index: 0, function: { arguments: '{"city":' } }),
			call({ index: 0, function: { arguments: '"Oslo"}' } }),
			CALLS_END,
			DONE,
		),
		called,
	),
	form(
		'tool call without index, with an empty id',
		sse(
			call({ id: 'c1', function: { name: 'weather', arguments: '{"city":' } }),
			call({ id: '', function: { name: '', arguments: '"Oslo"}' } }),
			CALLS_END,
			DONE,
		),
		called,
	),
	form(
		'tool call that starts at index 1',
		sse(
			call({ index: 1, id: 'c1', function: { name: 'weather', arguments: '{"city":' } }),
			call({ index: 1, function: { arguments: '"Oslo"}' } }),
			CALLS_END,
			DONE,
		),
		called,
	),
	form('one JSON document', JSON.stringify(WHOLE), answer('Hello 🦊', { reasoning: 'hm' }), {
		contentType: JSON_TYPE,
	}),
	form(
		'one JSON document on many lines, as a stream',
		`\uFEFF \n${JSON.stringify(WHOLE, null, 2)}\n`,
		answer('Hello 🦊', { reasoning: 'hm' }),
	),
	form(
		'a document in the envelope of the other interfaces',
		JSON.stringify({ code: 0, msg: 'Success', data: WHOLE }),
		answer('Hello 🦊', { reasoning: 'hm' }),
		{ contentType: JSON_TYPE },
	),
	form(
		'requested JSON as an object',
		JSON.stringify({
			choices: [{ message: { content: { type: 'fox', text: 'a', legs: 4 } }, finish_reason: 'stop' }],
		}),
		answer('{"type":"fox","text":"a","legs":4}'),
		{ contentType: JSON_TYPE },
	),
	form(
		'requested JSON as a list',
		JSON.stringify({ choices: [{ message: { content: [{ legs: 4 }] }, finish_reason: 'stop' }] }),
		answer('[{"legs":4}]'),
		{ contentType: JSON_TYPE },
	),
	form(
		'a tool call with the arguments null',
		JSON.stringify({
			choices: [
				{
					message: {
						content: null,
						tool_calls: [{ id: 'c1', function: { name: 'now', arguments: 'null' } }],
					},
					finish_reason: 'tool_calls',
				},
			],
		}),
		answer('', { finishReason: 'tool_calls', toolCalls: [{ id: 'c1', name: 'now', arguments: {} }] }),
		{ contentType: JSON_TYPE },
	),
	form('a stream that says it is JSON', sse(...HELLO, DONE), hello(), { contentType: JSON_TYPE }),

	form('error event first', 'event: error\ndata: {"message":"no capacity left for this"}\n\n', {
		error: /no capacity left for this/,
	}),
	form('error event of plain words', 'event: error\ndata: it burns\n\n', { error: /it burns/ }),
	form('error event without words', 'event: error\ndata:\n\n', { error: /an error without a message/ }),
	form('error object first', sse({ error: { message: 'bad thing', code: 400 } }), {
		error: /^The platform refused the question: bad thing$/,
	}),
	form(
		'error object as a document',
		JSON.stringify({ error: { message: 'bad thing' } }),
		{ error: /^The platform refused the question: bad thing$/ },
		{ contentType: JSON_TYPE },
	),
	form('error text', sse({ error: 'bad thing' }), {
		error: /^The platform refused the question: bad thing$/,
	}),
	form(
		'envelope with a code',
		JSON.stringify({ code: 1234, msg: 'bad thing' }),
		{ error: /bad thing/ },
		{ contentType: JSON_TYPE },
	),
	form(
		'error object in the middle',
		sse(think('hm'), say('Hel'), { error: { message: 'worker died', code: 500 } }, DONE),
		{
			error: /^The answer broke off after 5 characters: the platform said: worker died$/,
			details: { content: 'Hel', reasoning: 'hm' },
		},
	),
	form(
		'error event in the middle',
		`${sse(say('Hel'))}event: error\ndata: {"error":{"message":"worker died"}}\n\n`,
		{ error: /platform said: worker died$/, details: { content: 'Hel' } },
	),
	form('finish reason "error" without a word', sse(say('Hel'), chunk({}, { finish: 'error' }), DONE), {
		error: /^The answer broke off after 3 characters: the platform ended it with the finish reason "error"/,
		details: { content: 'Hel', finishReason: 'error' },
	}),
	form(
		'error within the choice of a document',
		JSON.stringify({
			...WHOLE,
			choices: [{ error: { message: 'worker died' }, finish_reason: 'error', message: { content: 'part' } }],
		}),
		{
			error: /^The answer broke off after 4 characters: the platform said: worker died$/,
			details: {
				content: 'part',
				finishReason: 'error',
				usage: { promptTokens: 3, completionTokens: 5, totalTokens: 8 },
			},
		},
		{ contentType: JSON_TYPE },
	),
	form(
		'error within the choice of a chunk that says "stop"',
		sse(
			say('Hel'),
			{ choices: [{ delta: { content: 'lo' }, finish_reason: 'stop', error: 'it burns' }] },
			DONE,
		),
		{ error: /broke off after 5 characters: the platform said: it burns$/, details: { content: 'Hello' } },
	),
	form(
		'error within a choice after the finish reason',
		sse(...HELLO, { choices: [{ error: 'late' }] }),
		hello(),
	),
	form(
		'a chunk that says "error" after the finish reason',
		sse(...HELLO, { error: { message: 'late' }, choices: [{ index: 0, delta: {}, finish_reason: 'error' }] }),
		hello(),
	),
	form(
		'a chunk that is cut off after the finish reason',
		`${sse(...HELLO)}data: {"choices":[],"usa`,
		hello(),
	),
	form(
		'error after text with finish reasons',
		sse(say('Hel', { finish: 'stop' }), say('lo', { finish: 'stop' }), { error: 'it burns' }),
		{ error: /broke off after 5 characters: the platform said: it burns$/ },
	),
	form('text after the finish reason, and no end', sse(say('Hel', { finish: 'stop' }), say('lo')), {
		error: /^The answer broke off after 5 characters: the connection ended before the answer was finished$/,
		details: { content: 'Hello' },
	}),
	form(
		'text after the finish reason, and [DONE]',
		sse(say('Hel', { finish: 'stop' }), say('lo'), DONE),
		hello(),
	),
	form(
		'text with finish reasons',
		sse(say('Hel', { finish: 'stop' }), say('lo', { finish: 'stop' })),
		hello(),
	),
	form('finish reason "null", and no more', sse(say('Hel', { finish: 'null' })), {
		error: /^The answer broke off after 3 characters: the connection ended/,
	}),
	form('error after the finish reason', sse(...HELLO, { error: 'too late' }), hello()),
	form(
		'text and token counts beside an error after the finish reason',
		sse(say('Hel'), STOP, say('lo', { usage: USAGE, more: { x_groq: { error: 'late' } } })),
		hello({ usage: { promptTokens: 3, completionTokens: 5, totalTokens: 8 } }),
	),
	form('ends in the middle', sse(say('Hel'), say('lo')), {
		error: /^The answer broke off after 5 characters: the connection ended before the answer was finished$/,
		details: { content: 'Hello', id: 'chatcmpl-1', model: 'm' },
	}),
	form(
		'reset in the middle',
		sse(say('Hel'), say('lo')),
		{ error: /^The answer broke off after 5 characters/, details: { content: 'Hello' } },
		{ ending: 'reset' },
	),
	form('a chunk that is cut off', `${sse(say('Hel'))}data: {"choices":[{"del`, {
		error: /^The answer broke off after 3 characters: the connection ended in the middle of an event$/,
		details: { content: 'Hel', cutOff: '{"choices":[{"del' },
	}),
	form('a chunk with a hole', `${sse(say('Hel'))}data: {"choices":[{"del\n\n${sse(say('lo'), STOP, DONE)}`, {
		error: /a part of it cannot be read/,
		details: { content: 'Hello' },
	}),
	form(
		'a document that is cut off',
		JSON.stringify(WHOLE).slice(0, 150),
		{ error: /^The answer broke off after 0 characters: a part of it cannot be read/ },
		{ contentType: JSON_TYPE },
	),
	form(
		'a document that is cut off by a reset',
		JSON.stringify(WHOLE).slice(0, 150),
		{ error: /^The answer broke off after 0 characters/ },
		{ contentType: JSON_TYPE, ending: 'reset' },
	),
	form(
		'an answer beside an error',
		JSON.stringify({ ...WHOLE, error: { message: 'worker died', code: 500 } }),
		{
			error: /^The answer broke off after 10 characters: the platform said: worker died$/,
			details: {
				content: 'Hello 🦊',
				reasoning: 'hm',
				usage: { promptTokens: 3, completionTokens: 5, totalTokens: 8 },
			},
		},
		{ contentType: JSON_TYPE },
	),
	form(
		'choices in another form',
		JSON.stringify({ choices: { 0: { message: { content: 'Hello' } } } }),
		{ error: /an answer in another form than that of chat completions .*Hello/ },
		{ contentType: JSON_TYPE },
	),
	form('no choice at all', sse({ choices: [] }, { choices: [], usage: USAGE }, DONE), {
		error: /"choices" is empty/,
		details: { usage: { promptTokens: 3, completionTokens: 5, totalTokens: 8 } },
	}),
	form('nothing', '', { error: /an answer without content/ }),
	form('nothing but comments', ': a\n\n: b\n\n', { error: /an answer without content/ }),
	form(
		'a page',
		'<!doctype html><html><body>Login</body></html>',
		{ error: /a web page instead of an answer/ },
		{ contentType: 'text/html' },
	),
	form(
		'words',
		'upstream connect error',
		{ error: /an answer without content/ },
		{ contentType: 'text/plain' },
	),
	form(
		'silence in the middle',
		sse(say('Hel'), say('lo')),
		{
			error: /^The answer broke off after 5 characters: the connection went silent$/,
			details: { content: 'Hello' },
		},
		{ ending: 'hold' },
	),
	form(
		'silence before the beginning',
		': wait\n\n',
		{ error: /^The answer did not begin within \d+ seconds$/ },
		{ ending: 'hold' },
	),
];
