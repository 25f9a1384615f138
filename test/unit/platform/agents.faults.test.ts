import type { FaultRule, LocalPlatform } from '../../platform';
import { withAgent } from './agentClient';
import { fate, fateOfLeaving, field } from './client';

describe('faults', () => {
	const runs = (platform: LocalPlatform): number => platform.books().invocations.length;

	async function struck(rule: Omit<FaultRule, 'on'>, body: object = {}): Promise<[string, number]> {
		let outcome: [string, number] = ['', 0];
		await withAgent({}, async (client, platform) => {
			platform.faults.add({ on: 'invoke', ...rule });
			const call = async (signal?: AbortSignal): Promise<Response> =>
				client.post({ message: 'x', ...body }, { signal });
			const text =
				rule.kind === 'hang' ? await fateOfLeaving(call, () => runs(platform) === 1) : await fate(call());
			outcome = [text, runs(platform)];
		});
		return outcome;
	}

	test.each<[Omit<FaultRule, 'on'>, string]>([
		[{ kind: '429' }, '"http_status_code":429'],
		[{ kind: '429', body: 'empty' }, '429 '],
		[{ kind: '5xx' }, '"reason":"overloaded"'],
		[{ kind: '5xx', status: 502, body: 'html' }, '502 <html>'],
		[{ kind: 'code' }, '200 {"success_response":false,"http_status_code":500'],
		[{ kind: 'code', code: 42900 }, '200 {"success_response":false,"http_status_code":429'],
		[{ kind: 'code', code: 40300, msg: 'not yours' }, '"reason":"forbidden","detail":"not yours"'],
		[{ kind: 'resetBefore' }, 'broken: TypeError'],
		[{ kind: 'html200' }, '200 <html>'],
		[{ kind: 'redirect' }, '302 '],
		[{ kind: 'tokenExpired' }, '"reason":"token_expired"'],
	])('%j: the agent does not run', async (rule, expected) => {
		const [text, count] = await struck(rule);
		expect(text).toContain(expected);
		expect(count).toBe(0);
	});

	test.each<[Omit<FaultRule, 'on'>, string]>([
		[{ kind: 'resetAfter' }, 'broken: TypeError'],
		[{ kind: 'truncatedJson', cut: 'connection' }, 'broken: TypeError'],
		[{ kind: 'truncatedJson', cut: 'length' }, '200 '],
		[{ kind: '5xx', status: 504, afterWork: true }, '504 <html>'],
		[{ kind: 'html200', afterWork: true }, '200 <html>'],
		[{ kind: 'hang', afterWork: true }, 'broken: AbortError'],
		[{ kind: 'numbersAsStrings' }, '"http_status_code":"200"'],
		[{ kind: 'slowBody', ms: 20 }, '200 '],
	])('%j: the agent has run, streamed or not', async (rule, expected) => {
		const [text, count] = await struck(rule);
		expect(text).toContain(expected);
		expect(count).toBe(1);
		const [streamed, countOfStream] = await struck(rule, { stream: true });
		expect(streamed).toContain(expected);
		expect(countOfStream).toBe(1);
	});

	test('a session is forgotten, once', async () => {
		await withAgent({}, async (client, platform) => {
			platform.faults.add({ on: 'invoke', kind: 'sessionGone', times: 1, match: 'session_id' });
			const { sessionId } = await client.say('one');
			expect(await client.say('two', sessionId)).toMatchObject({ reason: 'session_not_found' });
			expect(await client.say('two')).toMatchObject({ ok: true });
			expect(platform.books()).toMatchObject({ faults: { sessionGone: 1 } });
		});
	});

	test('befall uploads', async () => {
		await withAgent({}, async (client, platform) => {
			platform.faults.add({ on: 'media', kind: 'code', code: 50300, times: 1 });
			expect(await client.upload(new Blob(['x']), 'x')).toMatchObject({ status: 503, ok: false });
			platform.faults.add({ on: 'media', kind: 'expiredLink', times: 1 });
			const { data } = await client.upload(new Blob(['x']), 'x');
			const files = [{ url: field(data, 'url') }];
			expect(await client.invoke({ message: 'x', files })).toMatchObject({ reason: 'file_expired' });
			platform.faults.add({ on: 'media', kind: 'resetAfter', times: 1 });
			await expect(client.upload(new Blob(['x']), 'x')).rejects.toThrow();
			expect(platform.books().media).toHaveLength(2);
		});
	});

	test('come in campaigns too', async () => {
		await withAgent({}, async (client, platform) => {
			platform.faults.campaign({ rate: 1, seed: 3 });
			for (let call = 0; call < 8; call++) await fate(client.post({ message: `m${call}` }));
			const struckBy = Object.values(platform.books().faults).reduce((sum, count) => sum + count, 0);
			expect(struckBy).toBe(8);
		});
	});
});

describe('books', () => {
	test('count what a caller repeats, in a session and without one', async () => {
		await withAgent({}, async (client, platform) => {
			const { sessionId } = await client.say('first');
			await client.say('pay', sessionId);
			await client.say('pay', sessionId);
			await client.say('first');
			expect(platform.books()).toMatchObject({ duplicateInvocations: 2 });
			const books = platform.books();
			expect(JSON.parse(JSON.stringify(books))).toEqual(books);
			platform.resetBooks();
			expect(platform.books()).toMatchObject({ invocations: [], sessions: [], duplicateInvocations: 0 });
			await client.say('on', sessionId);
			expect(platform.books().sessions).toMatchObject([{ sessionId, turns: 4 }]);
		});
	});

	test('keep a hundred sessions apart', async () => {
		await withAgent({}, async (client, platform) => {
			const keys = Array.from({ length: 100 }, (_, index) => `key ${index}`);
			const opened = await Promise.all(keys.map(async (key) => client.say(key)));
			const recalled = await Promise.all(
				opened.map(async ({ sessionId }) => client.say('[recall]', sessionId)),
			);
			expect(recalled.map(({ answer }) => answer)).toEqual(keys);
			expect(platform.books()).toMatchObject({ duplicateInvocations: 0, concurrentPerSession: 1 });
		});
	});
});
