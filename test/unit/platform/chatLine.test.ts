import type { FaultRule } from '../../platform';
import { until } from '../../until';
import { joined, readStream, withChat } from './chatClient';
import type { ChatClient, Stream } from './chatClient';
import { fate, fateOfLeaving } from './client';

const COUNT = '[words: 6]';

const chunks = ({ events }: Stream): number => events.filter(({ error }) => error === undefined).length;

describe('streams that end otherwise', () => {
	test.each<[string, Partial<Stream>, number, string]>([
		['[end after: 2]', { done: false, broken: undefined }, 2, 'cut'],
		['[cut after: 3]', { done: false, broken: 'TypeError' }, 3, 'cut'],
		['[cut after: 0]', { done: false, broken: 'TypeError' }, 0, 'cut'],
		['[error after: 1]', { done: false, broken: undefined }, 1, 'error'],
		['[no done]', { done: false, broken: undefined }, 7, 'done'],
		['[pause: 5] [takes: 20]', { done: true, broken: undefined }, 7, 'done'],
	])('%s', async (directive, expected, sent, ended) => {
		await withChat(async (client, platform) => {
			const stream = await client.stream(`${COUNT} ${directive}`);
			expect(stream).toMatchObject(expected);
			expect(chunks(stream)).toBe(sent);
			if (ended === 'error') expect(stream.events.at(-1)).toMatchObject({ error: { type: 'server_error' } });
			const [chat] = platform.books().chats;
			expect(chat).toMatchObject({ ended, chunksSent: sent, stream: true, hungUpAt: null });
			expect(chat?.endedAt).toBeGreaterThanOrEqual(chat?.firstChunkAt ?? chat?.atMs ?? Infinity);
		});
	});

	test.each([
		['[silent after: 2]', false],
		['[comments after: 2]', true],
	])('%s, until the client hangs up', async (directive, isTalking) => {
		await withChat(async (client, platform) => {
			const stop = new AbortController();
			const { signal } = stop;
			const response = await client.send(`${COUNT} ${directive}`, { stream: true }, { signal });
			const stream = await readStream(response, (text) => {
				const heard = text.split('\n\n').filter((part) => part.startsWith(isTalking ? ':' : 'data: '));
				// A line that shall be silent is listened to for a while longer.
				if (isTalking && heard.length > 4) stop.abort();
				if (!isTalking && heard.length === 2) setTimeout(() => stop.abort(), 150);
			});
			expect(stream.broken).toBe('AbortError');
			expect(stream.comments > 2).toBe(isTalking);
			await until(() => platform.books().chats[0]?.hungUpAt !== null);
			expect(platform.books().chats).toMatchObject([{ ended: 'silent', chunksSent: 2 }]);
		});
	});

	test('stop when the client hangs up', async () => {
		await withChat(async (client, platform) => {
			const call = async (signal: AbortSignal): Promise<Response> =>
				client.send('[words: 1000] [pause: 10]', { stream: true }, { signal });
			await fateOfLeaving(call, () => (platform.books().chats[0]?.chunksSent ?? 0) > 1);
			await until(() => platform.books().chats[0]?.ended === 'hungUp');
			expect(platform.books().chats[0]?.chunksSent).toBeLessThan(1000);
		});
	});

	test('are held until they are released, so that what came before is seen to come before', async () => {
		await withChat(async (client, platform) => {
			const response = await client.send(`${COUNT} [hold after: 1] [hold after: 3]`, { stream: true });
			const reader = response.body?.getReader();
			let text = '';
			while (!text.includes('word1')) text += new TextDecoder().decode((await reader?.read())?.value);
			await until(() => platform.chat.held === 1);
			expect(text).not.toContain('word2');
			expect(platform.books().chats).toMatchObject([{ chunksSent: 1, ended: null, endedAt: null }]);
			expect(platform.chat.release()).toBe(1);
			while (!text.includes('word3')) text += new TextDecoder().decode((await reader?.read())?.value);
			await until(() => platform.chat.held === 1);
			expect(text).not.toContain('word4');
			const released = await fetch(`${platform.apiUrl}/admin/chat/release`, { method: 'POST' });
			expect(await released.json()).toEqual({ released: 1 });
			while (!text.includes('[DONE]')) text += new TextDecoder().decode((await reader?.read())?.value);
			expect(platform.chat).toMatchObject({ held: 0 });
			expect(platform.books().chats).toMatchObject([{ ended: 'done', chunksSent: 7 }]);
		});
	});

	test('answers in one piece too', async () => {
		await withChat(async (client, platform) => {
			expect(await fate(client.send('[error after: 0]'))).toMatch(/^200 \{"error":/);
			expect(await fate(client.send('[cut after: 0]'))).toMatch(/^broken/);
			const half = await fate(client.send('[end after: 0]'));
			expect(half).toMatch(/^200 \{"id"/);
			expect(() => JSON.parse(half.slice(4))).toThrow(SyntaxError);
			const call = async (signal: AbortSignal): Promise<Response> =>
				client.send('[silent after: 0]', {}, { signal });
			const silent = (): boolean => platform.books().chats.at(-1)?.ended === 'silent';
			expect(await fateOfLeaving(call, silent)).toBe('broken: AbortError');
			const held = client.complete('[hold after: 0] now');
			await until(() => platform.chat.release() === 1);
			expect(await held).toMatchObject({ choices: [{ message: { content: 'You said: now' } }] });
			expect(platform.books().chats.map(({ ended }) => ended)).toEqual([
				...['error', 'cut', 'cut', 'silent', 'done'],
			]);
		});
	});
});

describe('faults', () => {
	async function withRule(
		rule: Omit<FaultRule, 'on'>,
		test: (client: ChatClient, ends: () => unknown[]) => Promise<void>,
	): Promise<void> {
		await withChat(async (client, platform) => {
			platform.faults.add({ on: 'chat', ...rule });
			await test(client, () => platform.books().chats.map(({ ended }) => ended));
		});
	}

	test.each<[Omit<FaultRule, 'on'>, RegExp]>([
		[
			{ kind: '429', retryAfterSeconds: 7 },
			/^429 \{"error":\{"message":"Too Many Requests","type":"rate_limit/,
		],
		[{ kind: '429', retryAfter: 'date', body: 'html' }, /^429 <html>/],
		[{ kind: '5xx' }, /^503 \{"error":\{"message":"Service Unavailable","type":"server_error"/],
		[{ kind: '5xx', status: 502, body: 'empty' }, /^502 $/],
		[{ kind: 'resetBefore' }, /^broken: TypeError$/],
		[{ kind: 'hang' }, /^broken: TimeoutError$/],
		[{ kind: 'html200' }, /^200 <html>/],
		[{ kind: 'redirect' }, /^302 $/],
		[{ kind: 'code', msg: 'busy' }, /^200 \{"error":\{"message":"busy"/],
	])('%j before the work, streamed or not', async (rule, expected) => {
		await withRule(rule, async (client, ends) => {
			for (const stream of [false, true]) {
				const signal = rule.kind === 'hang' ? AbortSignal.timeout(80) : undefined;
				expect(await fate(client.send('x', { stream }, { signal }))).toMatch(expected);
			}
			expect(ends()).toEqual([]);
		});
	});

	test('Retry-After in both forms', async () => {
		await withChat(async (client, platform) => {
			platform.faults.add({ on: 'chat', kind: '429', times: 1, retryAfterSeconds: 7 });
			expect((await client.send('x')).headers.get('retry-after')).toBe('7');
			platform.faults.add({ on: 'chat', kind: '429', times: 1, retryAfter: 'date' });
			expect((await client.send('x')).headers.get('retry-after')).toMatch(/GMT$/);
			expect(platform.books()).toMatchObject({ faults: { '429': 2 }, chats: [] });
		});
	});

	test('resetAfter: in place of the answer, after the head, in mid-stream', async () => {
		await withRule({ kind: 'resetAfter', after: 2 }, async (client, ends) => {
			expect(await fate(client.send(COUNT))).toMatch(/^broken/);
			const stream = await client.stream(COUNT);
			expect(stream).toMatchObject({ broken: 'TypeError', done: false });
			expect(chunks(stream)).toBe(2);
			expect(ends()).toEqual(['cut', 'cut']);
		});
		await withRule({ kind: 'resetAfter', after: 0 }, async (client) => {
			const response = await client.send(COUNT, { stream: true });
			expect(response.status).toBe(200);
			expect((await readStream(response)).events).toEqual([]);
		});
	});

	test('truncatedJson: cut JSON, or a stream cut in the middle of an event', async () => {
		await withRule({ kind: 'truncatedJson', after: 3 }, async (client, ends) => {
			const half = await fate(client.send(COUNT));
			expect(half).toMatch(/^200 \{"id"/);
			expect(() => JSON.parse(half.slice(4))).toThrow(SyntaxError);
			const closed = await client.stream(COUNT);
			expect(chunks(closed)).toBe(3);
			expect(closed.broken).toBe('TypeError');
			await fate(client.send(COUNT));
			await fate(client.send(COUNT));
			const ended = await client.stream(COUNT, {});
			expect(chunks(ended)).toBe(3);
			expect(ended.tail).toMatch(/^data: \{/);
			expect(ends()).toEqual(['cut', 'cut', 'cut', 'cut', 'cut']);
		});
	});

	test('slowBody: each event in two parts, characters cut too', async () => {
		await withRule({ kind: 'slowBody', ms: 150 }, async (client, ends) => {
			const start = Date.now();
			const stream = await client.stream('[answer: 漢字🦊 漢字🦊 漢字🦊]');
			expect(stream).toMatchObject({ done: true, tail: '' });
			expect(joined(stream).content).toBe('漢字🦊 漢字🦊 漢字🦊');
			expect(Date.now() - start).toBeGreaterThan(120);
			expect(await fate(client.send('x'))).toContain('You said: x');
			expect(ends()).toEqual(['done', 'done']);
		});
	});

	test('after the work: a gateway that gave up, a hanging line', async () => {
		await withRule({ kind: '5xx', status: 504, afterWork: true }, async (client, ends) => {
			expect(await fate(client.send('x', { stream: true }))).toMatch(/^504 \{"error"/);
			expect(await fate(client.send('x'))).toMatch(/^504 \{"error"/);
			expect(ends()).toEqual(['error', 'error']);
		});
		await withRule({ kind: 'hang', afterWork: true }, async (client, ends) => {
			const call = async (signal: AbortSignal): Promise<Response> =>
				client.send('x', { stream: true }, { signal });
			expect(await fateOfLeaving(call, () => ends().length === 1)).toBe('broken: AbortError');
			expect(ends()).toEqual(['silent']);
		});
	});

	test('match the text of the messages, and numbersAsStrings', async () => {
		await withRule({ kind: 'numbersAsStrings', match: 'odd' }, async (client) => {
			expect(await client.complete('odd')).toMatchObject({ usage: { prompt_tokens: '1' } });
			expect(await client.complete('even')).toMatchObject({ usage: { prompt_tokens: 1 } });
		});
	});

	test('a campaign strikes chats too, the same way each time', async () => {
		const run = async (): Promise<string[]> => {
			const fates: string[] = [];
			await withChat(async (client, platform) => {
				platform.faults.campaign({ rate: 0.5, seed: 3 });
				for (let call = 0; call < 24; call++) {
					const text = await fate(client.send(COUNT, { stream: call % 2 === 0 }));
					fates.push(text.slice(0, 9));
				}
				expect(Object.keys(platform.books().faults).length).toBeGreaterThan(3);
			});
			return fates;
		};
		expect(await run()).toEqual(await run());
	});
});
