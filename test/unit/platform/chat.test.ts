import { CHAT_MODELS, HandWoundTime } from '../../platform';
import { ChatClient, joined, user, withChat } from './chatClient';
import type { Fields } from './chatClient';

const THOUGHT = 'The user said "hello". I say it back.';
const WEATHER = { type: 'function', function: { name: 'weather', parameters: { type: 'object' } } };

describe('which model reasons', () => {
	const off = [
		...['family_a-v3.2', 'family_a-v3.2-exp', 'family_a-v3.1', 'family_a-v3.1-terminus'],
		...['family_b-8b', 'family_b-32b', 'family_b-30b-a3b', 'family_b-235b-a22b'],
	];
	const on = [
		...['family_a-v3.2-thinking', 'family_c-4.5', 'family_c-4.6', 'family_c-4.5-air', 'family_c-4.5v'],
		...['family_c-4.6v', 'family_d-k2.5', 'vendor/family_c-4.6'],
	];
	const thinking = { type: 'enabled' };
	const table: Array<[string, Fields, boolean | number]> = [
		...off.flatMap((model): Array<[string, Fields, boolean | number]> => [
			[model, {}, false],
			[model, { enable_thinking: true }, true],
			[model, { enable_thinking: false }, false],
		]),
		...on.flatMap((model): Array<[string, Fields, boolean | number]> => [
			[model, {}, true],
			[model, { enable_thinking: true }, true],
			[model, { enable_thinking: false }, false],
		]),
		['family_b-14b', {}, true],
		['family_b-14b', { enable_thinking: true }, 400],
		['family_b-14b', { enable_thinking: false }, 400],
		['family_d-k2', {}, false],
		['family_d-k2', { thinking }, true],
		['family_d-k2', { enable_thinking: true }, 400],
		['family_d-k2', { thinking: { type: 'disabled' } }, 400],
		['family_d-k2.5', { thinking }, 400],
		['family_e-m2', {}, true],
		['family_e-m2.1', { reasoning_split: true }, true],
		['family_e-m2.1', { enable_thinking: false }, 400],
		['family_c-4.6', { reasoning_split: true }, 400],
		['family_c-4.6', { reasoning_split: false }, true],
		['plain-1', {}, false],
		['plain-1', { enable_thinking: true }, 400],
		['plain-1', { enable_thinking: false }, 400],
	];

	test('follows the table', async () => {
		await withChat(async (client, platform) => {
			for (const [model, switches, expected] of table) {
				const response = await client.send('hello', { model, ...switches });
				const text = await response.text();
				const outcome = response.status === 200 ? text.includes(JSON.stringify(THOUGHT).slice(1, -1)) : 400;
				expect([model, switches, outcome]).toEqual([model, switches, expected]);
			}
			const answered = table.filter(([, , expected]) => expected !== 400);
			expect(platform.books().chats.map(({ model, reasoned }) => [model, reasoned])).toEqual(
				answered.map(([model, , expected]) => [model, expected]),
			);
			expect(platform.books().requests.chat).toBe(table.length);
		});
	});

	test('is what the list of models names', async () => {
		const get = async (client: ChatClient): Promise<Response> =>
			fetch(`${client.platform.apiUrl}/maas/v1/models`, {
				headers: { authorization: `Bearer ${client.apiKey}` },
			});
		await withChat(async (client, platform) => {
			const list: unknown = await (await get(client)).json();
			expect(list).toMatchObject({ object: 'list', data: CHAT_MODELS.map(({ id }) => ({ id })) });
			expect((await get(new ChatClient(platform, 'sk-wrong'))).status).toBe(401);
			expect(platform.books()).toMatchObject({ requests: { models: 2, chat: 0 }, unauthorized: 1 });
		});
		await withChat(async (client) => expect((await get(client)).status).toBe(404), { models: false });
	});
});

describe('answers', () => {
	test('come as one object or as chunks with one id, usage and an end', async () => {
		await withChat(async (client) => {
			const model = 'vendor/family_c-4.6';
			const usage = {
				prompt_tokens: 1,
				completion_tokens: 11,
				total_tokens: 12,
				completion_tokens_details: { reasoning_tokens: 8 },
			};
			const whole = await client.complete('hello', { model });
			expect(whole).toMatchObject({ status: 200, object: 'chat.completion', model, usage });
			const stream = await client.stream('hello', { model, stream_options: { include_usage: true } });
			expect(stream).toMatchObject({ done: true, tail: '', broken: undefined });
			expect(stream.comments).toBeGreaterThan(1);
			expect(new Set(stream.events.map(({ id }) => id)).size).toBe(1);
			expect(new Set(stream.events.map(({ object }) => object))).toEqual(new Set(['chat.completion.chunk']));
			expect(stream.events.at(-1)).toMatchObject({ choices: [], usage });
			expect(stream.events.at(-2)).toMatchObject({
				choices: [{ delta: {}, finish_reason: 'stop' }],
				usage: null,
			});
			expect(stream.events).toHaveLength(8 + 3 + 2);
		});
	});

	test('are cut into as many chunks as ordered, and no character apart', async () => {
		await withChat(async (client) => {
			const stream = await client.stream('[chunks: 4] [answer: 🦊é漢字🦉ü x]');
			expect(stream.events).toHaveLength(5);
			expect(joined(stream).content).toBe('🦊é漢字🦉ü x');
			expect(JSON.stringify(stream.events)).not.toContain('\\ud8');
		});
	});

	test('honour max_tokens, stop and the formats', async () => {
		await withChat(async (client) => {
			const say = async (order: string, more: Fields): Promise<unknown> => {
				const { message, finish_reason } = await client.choice(order, more);
				return [message.reasoning_content, message.content, finish_reason];
			};
			expect(await say('[words: 5]', { max_tokens: 2 })).toEqual([undefined, 'word1 word2', 'length']);
			const thinker = { model: 'family_c-4.6', max_completion_tokens: 3 };
			expect(await say('[think: a b] [answer: c d]', thinker)).toEqual(['a b', 'c', 'length']);
			expect(await say('[think: a b c d]', thinker)).toEqual(['a b c', '', 'length']);
			expect(await say('[words: 3]', { max_tokens: 3 })).toEqual([undefined, 'word1 word2 word3', 'stop']);
			expect(await say('[words: 5]', { stop: ['word4', 'word3'] })).toEqual([
				undefined,
				'word1 word2 ',
				'stop',
			]);
			expect(await say('[finish: content_filter]', {})).toEqual([
				undefined,
				'You said nothing.',
				'content_filter',
			]);
			const json = await say('hi', { response_format: { type: 'json_object' } });
			expect(json).toEqual([undefined, '{"answer":"You said: hi"}', 'stop']);
			const schema = {
				type: 'object',
				properties: { title: { type: 'string' }, tags: { type: 'array', items: { $ref: '#/$defs/tag' } } },
				$defs: { tag: { enum: ['a', 'b'] } },
			};
			const format = { type: 'json_schema', json_schema: { name: 'x', schema } };
			expect(await say('hi', { response_format: format })).toEqual([
				undefined,
				'{"title":"You said: hi","tags":["a"]}',
				'stop',
			]);
		});
	});

	test('see parts, images and system messages, and forget the orders of earlier turns', async () => {
		await withChat(async (client) => {
			const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } };
			const parts = [{ type: 'text', text: 'look' }, image, image];
			expect((await client.choice(user(parts))).message.content).toBe('You said: look and sent 2 images');
			const turns = [
				{ role: 'system', content: '[finish: odd] Be kind.' },
				{ role: 'user', content: '[empty]' },
				{ role: 'assistant', content: '[answer: no]' },
				{ role: 'user', content: 'a [list] of [thing: x]' },
			];
			expect(await client.choice(turns)).toMatchObject({
				message: { content: 'You said: a [list] of [thing: x]' },
				finish_reason: 'odd',
			});
			expect((await client.choice('[empty]')).message).toEqual({ role: 'assistant', content: '' });
			const empty = await client.stream('[empty]');
			expect(empty.events.map(({ choices }) => choices[0]?.delta)).toEqual([
				{ role: 'assistant', content: '' },
				{},
			]);
		});
	});
});

describe('tools', () => {
	const ask = '[tool: weather {"in":["Rome"]}] [tool: other] [then tool: weather {]';
	const turn = (id: string, result: string): Fields[] => [
		{
			role: 'assistant',
			content: null,
			tool_calls: [{ id, type: 'function', function: { name: 'weather', arguments: '{}' } }],
		},
		{ role: 'tool', tool_call_id: id, content: result },
	];

	test('are called as ordered, round by round, and their results told', async () => {
		await withChat(async (client) => {
			const tools = [WEATHER];
			const first = await client.choice(ask, { tools });
			expect(first.finish_reason).toBe('tool_calls');
			expect(first.message).toEqual({
				role: 'assistant',
				content: null,
				tool_calls: [
					{ id: 'call_1_0', type: 'function', function: { name: 'weather', arguments: '{"in":["Rome"]}' } },
					{ id: 'call_1_1', type: 'function', function: { name: 'other', arguments: '{}' } },
				],
			});
			const second = [...user(ask), ...turn('call_1_0', 'sunny')];
			expect(await client.choice(second, { tools })).toMatchObject({
				message: { tool_calls: [{ function: { name: 'weather', arguments: '{' } }] },
			});
			const third = [...second, ...turn('call_3_0', 'rain')];
			expect(await client.choice(third, { tools })).toMatchObject({
				message: { content: 'The tool said: rain' },
				finish_reason: 'stop',
			});
			const ordered = [...user('[answer: It is {result}.]'), ...turn('a', 'hot')];
			expect((await client.choice(ordered, { tools })).message.content).toBe('It is hot.');
		});
	});

	test('are called in several deltas, under the choice of the request', async () => {
		await withChat(async (client) => {
			const stream = await client.stream('[tool: weather {"city":"Ñandú"}]', { tools: [WEATHER] });
			const calls = joined(stream).tool_calls;
			const parts: Array<{ id?: string; function: Fields }> = Array.isArray(calls) ? calls : [];
			expect(parts).toHaveLength(4);
			expect(parts[0]).toEqual({
				index: 0,
				id: 'call_1_0',
				type: 'function',
				function: { name: 'weather', arguments: '' },
			});
			expect(parts.map((part) => part.function.arguments).join('')).toBe('{"city":"Ñandú"}');
			expect(stream.events.at(-1)?.choices[0]?.finish_reason).toBe('tool_calls');

			const none = { tools: [WEATHER], tool_choice: 'none' };
			expect((await client.choice('[tool: weather]', none)).finish_reason).toBe('stop');
			expect((await client.choice('[tool: weather]')).finish_reason).toBe('stop');
			const required = { tools: [WEATHER], tool_choice: { type: 'function', function: { name: 'weather' } } };
			expect((await client.choice('hi', required)).message.tool_calls).toMatchObject([
				{ function: { name: 'weather', arguments: '{}' } },
			]);
		});
	});
});

describe('refusals are error objects', () => {
	test.each<[unknown, number, string]>([
		['{"model":', 400, 'invalid_body'],
		[{}, 400, 'invalid_value'],
		[{ model: 'unknown-1', messages: user('x') }, 404, 'model_not_found'],
		[{ model: 'plain-1', messages: [] }, 400, 'invalid_value'],
		[{ model: 'plain-1', messages: [{ role: 'robot', content: '' }] }, 400, 'invalid_value'],
		[{ model: 'plain-1', messages: user(7) }, 400, 'invalid_value'],
		[{ model: 'plain-1', messages: user([{ type: 'image_url', image_url: { url: 'cat.png' } }]) }, 400, ''],
		[{ model: 'plain-1', messages: [{ role: 'tool', content: '', tool_call_id: 'x' }] }, 400, ''],
		[{ model: 'plain-1', messages: user('x'), enable_thinking: 'yes' }, 400, 'invalid_value'],
		[{ model: 'plain-1', messages: user('x'), stream: 1 }, 400, 'invalid_value'],
		[{ model: 'plain-1', messages: user('x'), reasoning_split: null }, 400, 'invalid_value'],
		[{ model: 'plain-1', messages: user('[chunks: many]') }, 400, 'bad_directive'],
		[{ model: 'plain-1', messages: user('[refuse: 413 too long]') }, 413, 'refused'],
	])('%j', async (body, status, code) => {
		await withChat(async (client, platform) => {
			const response = await client.post(body);
			expect(response.status).toBe(status);
			expect(await response.json()).toEqual({
				error: {
					message: expect.any(String),
					type: expect.stringMatching(/_error$/),
					param: null,
					code: expect.stringContaining(code),
				},
			});
			expect(platform.books().chats).toEqual([]);
		});
	});

	test('also for the key and the request-frequency limit', async () => {
		await withChat(
			async (client, platform) => {
				const stranger = new ChatClient(platform, 'sk-wrong');
				expect(await stranger.complete('x')).toMatchObject({
					status: 401,
					error: { type: 'authentication_error', code: 'invalid_api_key' },
				});
				await client.complete('x');
				const limited = await client.send('x');
				expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '1']);
				expect(await limited.json()).toMatchObject({ error: { code: 'rate_limit_exceeded' } });
				expect(platform.books()).toMatchObject({ unauthorized: 1, rateLimited: 1, requests: { chat: 3 } });
			},
			{ requestsPerSecond: 1, time: new HandWoundTime() },
		);
	});
});
