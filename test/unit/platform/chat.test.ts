import { CHAT_MODELS, HandWoundTime } from '../../platform';
import { ChatClient, user, withChat } from './chatClient';
import type { Fields } from './chatClient';

const THOUGHT = 'The user said "hello". I say it back.';

describe('models', () => {
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

	test('reason as in the table', async () => {
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

	test('are listed for a valid key, unless the list is turned off', async () => {
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

describe('a refusal is an error object', () => {
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
	])('for the body %j', async (body, status, code) => {
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

	test('for a wrong key and the request-frequency limit', async () => {
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
