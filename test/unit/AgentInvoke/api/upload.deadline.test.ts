import { readAgentAccount } from '../../../../nodes/AgentInvoke/wire/account';
import { uploadMedia } from '../../../../nodes/AgentInvoke/api/upload';
import { Retry } from '../../../../nodes/shared/retry/retry';
import type { Exchange, HttpRequest } from '../../../../nodes/shared/http/exchange';
import { redactor } from '../../../../nodes/shared/text/redact';
import { TestClock } from '../../testClock';
import { valueOf } from '../../results';

const MEDIA = new File(['image'], 'image.png', { type: 'image/png' });
const BUSY: Exchange = { kind: 'reply', status: 429, headers: {}, text: '{"code":429,"msg":"slow down"}' };

/** Uploads a file with a timeout of 5 seconds. */
async function upload(answer: Exchange): Promise<{ clock: TestClock; sent: HttpRequest[]; result: unknown }> {
	const fields = { agentToken: 'agt_SECRETPART0', baseUrl: 'https://p.example', mediaUploadPath: '/upload' };
	const clock = new TestClock();
	const sent: HttpRequest[] = [];
	const { signal } = new AbortController();
	const parts = {
		account: valueOf(readAgentAccount(fields)),
		clock,
		redact: redactor([]),
		retry: new Retry({ requestsPerSecond: 0, concurrency: 1 }, { clock, signal }, () => 0.5),
		send: async (request: HttpRequest): Promise<Exchange> => {
			sent.push(request);
			await clock.sleep(20);
			return answer;
		},
	};
	const result: unknown = await clock.run(uploadMedia(parts, MEDIA, clock.now() + 5_000));
	return { clock, sent, result };
}

test('an upload that is always refused ends at its timeout', async () => {
	const { clock, sent, result } = await upload(BUSY);
	expect(result).toMatchObject({ ok: false });
	expect(sent.length).toBeGreaterThan(3);
	expect(clock.elapsedMs).toBeLessThanOrEqual(5_020);
});

test('no request of an upload may take longer than the remaining time', async () => {
	const { sent } = await upload(BUSY);
	expect(sent[0]?.timeoutMs).toBe(5_000);
	expect(Math.max(...sent.slice(1).map(({ timeoutMs }) => timeoutMs))).toBeLessThan(5_000);
});

const reply = (body: object): Exchange => ({
	kind: 'reply',
	status: 200,
	headers: {},
	text: JSON.stringify(body),
});

test.each([
	['an envelope of agents', { success_response: true, data: { url: 'https://f.example/1?a=1&b=2' } }],
	['no envelope', { url: 'https://f.example/1?a=1&b=2' }],
	[
		'the envelope of the other interfaces',
		{ code: 0, msg: 'Success', data: { url: 'https://f.example/1?a=1&b=2' } },
	],
	[
		'a state',
		{ status: 'transferred', code: 'OK', url: 'https://f.example/1?a=1&b=2', error: null, errors: [] },
	],
	['a plan', { status: 'deferred', code: 'unlimited', url: 'https://f.example/1?a=1&b=2' }],
	['escapes', { url: String.raw`https://f.example/1?a=1\u0026b=2` }],
])('the answer to an upload may have %s', async (_name, body) => {
	const { sent, result } = await upload(reply(body));
	expect(result).toMatchObject({ ok: true, value: { url: 'https://f.example/1?a=1&b=2' } });
	expect(sent).toHaveLength(1);
});

test.each([
	{ code: 1001, msg: 'too large', url: '/upload' },
	{ success_response: false, data: { url: 'https://f.example/1' } },
	{ success: false, message: 'too large', url: 'https://f.example/help' },
	{ ok: 0, reason: 'virus found', url: 'https://f.example/1' },
	{ status: 'error', message: 'no space', url: 'https://f.example/help' },
	{ statusCode: 413, url: 'https://f.example/help' },
	{ code: 'FILE_TOO_LARGE', url: 'https://f.example/help' },
	{ errors: [{ message: 'too large' }], data: { url: 'https://f.example/help' } },
	{ code: 'SIZE_LIMIT', url: 'https://f.example/help' },
	{ code: 'SizeLimit', url: 'https://f.example/help' },
	{ code: 'UploadErr', url: 'https://f.example/help' },
	{ status: 'OVERLIMIT', url: 'https://f.example/help' },
	{ detail: 'not a file', url: '/upload' },
])('a refusal that contains a URL is no upload: %j', async (body) => {
	expect((await upload(reply(body))).result).toMatchObject({ ok: false });
});
