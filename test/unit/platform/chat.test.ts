import { sharedClient } from './client';

const client = sharedClient();

const user = (content: unknown): unknown[] => [{ role: 'user', content }];

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
	[{ model: 'plain-1', messages: user('x'), enable_thinking: true }, 400, 'unsupported_parameter'],
	[{ model: 'family_b-14b', messages: user('x'), enable_thinking: false }, 400, 'unsupported_parameter'],
	[
		{ model: 'family_d-k2.5', messages: user('x'), thinking: { type: 'enabled' } },
		400,
		'unsupported_parameter',
	],
	[{ model: 'family_c-4.6', messages: user('x'), reasoning_split: true }, 400, 'unsupported_parameter'],
	[{ model: 'plain-1', messages: user('x'), stream: 1 }, 400, 'invalid_value'],
	[{ model: 'plain-1', messages: user('x'), reasoning_split: null }, 400, 'invalid_value'],
	[{ model: 'plain-1', messages: user('[chunks: many]') }, 400, 'bad_directive'],
	[{ model: 'plain-1', messages: user('[refuse: 413 too long]') }, 413, 'refused'],
])('a chat request is refused with an error object: %j', async (body, status, code) => {
	const { platform } = client();
	const response = await fetch(`${platform.apiUrl}/maas/v1/chat/completions`, {
		method: 'POST',
		headers: { authorization: `Bearer ${platform.apiKey}`, 'content-type': 'application/json' },
		body: typeof body === 'string' ? body : JSON.stringify(body),
	});
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
