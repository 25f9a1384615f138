import { HandWoundTime } from '../../platform';
import { until } from '../../until';
import { readEnvelope, readEvents, withAgent } from './agentClient';
import { fate, fateOfLeaving, field } from './client';

describe('streams', () => {
	test('send pieces and at last the whole envelope', async () => {
		await withAgent({}, async (client, platform) => {
			const events = await client.stream('[answer: Grüße an alle 🦊] [chunks: 4] [pause: 2]');
			expect(events.map(({ event }) => event)).toEqual([...Array<string>(4).fill('message'), 'done']);
			const deltas = events.slice(0, -1).map(({ envelope }) => field(field(envelope, 'data'), 'delta'));
			expect(deltas.join('')).toBe('Grüße an alle 🦊');
			const last = readEnvelope(events.at(-1)?.envelope);
			expect(last).toMatchObject({ ok: true, reason: 'completed', answer: 'Grüße an alle 🦊' });
			expect(platform.books().invocations).toMatchObject([{ stream: true, answered: 'yes' }]);
			expect(await client.stream('[no deltas]')).toHaveLength(1);
		});
	});

	test('halt between two pieces until they are released', async () => {
		await withAgent({}, async (client, platform) => {
			const response = await client.post({ message: '[hold after: 1]', stream: true });
			const reader = response.body?.getReader();
			let text = '';
			while (!text.includes('delta')) text += Buffer.from((await reader?.read())?.value ?? []).toString();
			await until(() => platform.agent.held === 1);
			expect(readEvents(text)).toHaveLength(1);
			platform.agent.release();
			while (!text.includes('event: done')) {
				text += Buffer.from((await reader?.read())?.value ?? []).toString();
			}
			expect(readEvents(text)).toHaveLength(4);
		});
	});

	test('tell interrupts and failures in their last event', async () => {
		await withAgent({}, async (client) => {
			const [asked] = await client.stream('[question: Go?]');
			expect(asked).toMatchObject({ event: 'done', envelope: { data: { reason: 'interrupted' } } });
			const failed = await client.stream('[fail: why]');
			expect(failed).toHaveLength(4);
			expect(failed.at(-1)).toMatchObject({
				event: 'error',
				envelope: { success_response: false, data: { reason: 'agent_failed' } },
			});
		});
	});

	test.each(['[refuse]', '[fail] [no deltas]'])(
		'%s before the first piece is plain JSON',
		async (message) => {
			await withAgent({}, async (client) => {
				const response = await client.post({ message, stream: true });
				expect(response.headers.get('content-type')).toContain('application/json');
				expect(readEnvelope(await response.json())).toMatchObject({ ok: false });
			});
		},
	);

	test('break off, fall silent or end too early, and the session is free', async () => {
		await withAgent({}, async (client, platform) => {
			expect(await fate(client.post({ message: '[cut after: 1]', stream: true }))).toMatch(/^broken/);
			const silent = { message: '[silent after: 1]', stream: true };
			const call = async (signal: AbortSignal): Promise<Response> => client.post(silent, { signal });
			const arrived = (): boolean => platform.books().invocations.length === 2;
			expect(await fateOfLeaving(call, arrived)).toBe('broken: AbortError');
			expect(await client.stream('[end after: 2]')).toHaveLength(2);
			await until(() => platform.books().invocations.every(({ answered }) => answered === 'no'));
			expect(await fate(client.post({ message: '[cut after: 1]' }))).toMatch(/^broken/);
			const id = platform.books().sessions[0]?.sessionId;
			expect(await client.say('still there?', id)).toMatchObject({ ok: true });
		});
	});
});

describe('media', () => {
	const text = (): Blob => new Blob(['hello file'], { type: 'text/plain' });

	test('are read by the agent itself, and no token is wanted there', async () => {
		await withAgent({}, async (client, platform) => {
			const uploaded = await client.upload(text(), 'a ü#%.txt');
			expect(uploaded.data).toMatchObject({ reason: 'uploaded', name: 'a ü#%.txt', size: 10 });
			const url = String(field(uploaded.data, 'url'));
			expect(url.startsWith(platform.fileUrl)).toBe(true);
			const foreign = { url: 'https://example.com/x.png', name: 'x.png', mime_type: 'image/png' };
			const told = await client.invoke({ message: '[describe files]', files: [{ url }, foreign] });
			expect(told.answer).toBe('a ü#%.txt (text/plain, 10 bytes), x.png (image/png, not fetched)');
			expect(platform.books()).toMatchObject({ media: [{ bytes: 10, reads: 1 }], leaks: [] });
			await fetch(url, { headers: { authorization: 'Bearer agt_x' } });
			expect(platform.books().leaks).toEqual([{ where: 'file host', header: 'authorization' }]);
			expect((await fetch(`${url}x`)).status).toBe(403);
			expect(platform.books().requests).toMatchObject({ media: 1, mediaFile: 3, file: 0 });
		});
	});

	test('expire', async () => {
		const time = new HandWoundTime();
		await withAgent({ mediaSeconds: 50, time }, async (client, platform) => {
			const { data } = await client.upload(text(), 'a.txt');
			expect(Date.parse(String(field(data, 'expires_at')))).toBe(time.now() + 50_000);
			time.pass(50_001);
			const files = [{ url: field(data, 'url') }];
			expect(await client.invoke({ message: 'x', files })).toMatchObject({
				status: 400,
				reason: 'file_expired',
			});
			expect(platform.books().invocations).toEqual([]);
		});
	});

	test('are refused by size, type and absence', async () => {
		await withAgent({ mediaMaxBytes: 100, mediaTypes: ['text/plain', 'image/*'] }, async (client) => {
			const big = new Blob(['x'.repeat(200_000)], { type: 'text/plain' });
			const reasonOf = async (file: Blob, part?: string): Promise<string> => {
				const { reason, outer } = await client.upload(file, 'f', part);
				return `${outer} ${reason}`;
			};
			expect(await reasonOf(big)).toBe('200 file_too_large');
			expect(await reasonOf(new Blob(['%PDF'], { type: 'application/pdf' }))).toBe('200 file_type_refused');
			expect(await reasonOf(new Blob(['png'], { type: 'image/png' }))).toBe('200 uploaded');
			expect(await reasonOf(new Blob([], { type: 'text/plain' }))).toBe('200 file_empty');
			expect(await reasonOf(text(), 'other')).toBe('200 file_missing');
		});
	});
});

test('events are read as they were written', () => {
	expect(readEvents(': note\n\nevent: done\ndata: {"a":1}\n\n')).toEqual([
		{ event: 'done', envelope: { a: 1 } },
	]);
});
