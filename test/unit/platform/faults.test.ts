import { once } from 'node:events';
import { HandWoundTime } from '../../platform';
import type { FaultKind, FaultRule, LocalPlatform } from '../../platform';
import { until } from '../../until';
import { decodeLink, fate, fateOfLeaving, field, sleep } from './client';
import type { Client } from './client';
import { withPlatform } from './running';

const submitBody = { workflow_id: 'text-to-image', prompt: {} };

async function fateOfSubmit(client: Client): Promise<string> {
	return fate(client.call('prompt', submitBody));
}

async function linkOf(client: Client): Promise<string> {
	const { final_files: files } = await client.finished((await client.submit()).id);
	return decodeLink(files[0] ?? '');
}

async function withRule(
	rule: FaultRule,
	test: (client: Client, platform: LocalPlatform) => Promise<void>,
): Promise<void> {
	await withPlatform({ taskMs: 0 }, async (client, platform) => {
		platform.faults.add(rule);
		await test(client, platform);
	});
}

describe('faults before the work', () => {
	test('429 with Retry-After as seconds, as a date, or without', async () => {
		await withPlatform({}, async (client, platform) => {
			const retryAfter = async (rule: Partial<FaultRule>): Promise<string | null> => {
				platform.faults.add({ on: 'submit', kind: '429', times: 1, ...rule });
				const response = await client.call('prompt', submitBody);
				expect(response.status).toBe(429);
				return response.headers.get('retry-after');
			};
			expect(await retryAfter({})).toBe('1');
			expect(await retryAfter({ retryAfterSeconds: 7 })).toBe('7');
			expect(await retryAfter({ retryAfter: 'none', body: 'empty' })).toBeNull();
			const askedMs = Date.now();
			const date = Date.parse((await retryAfter({ retryAfter: 'date', retryAfterSeconds: 5 })) ?? '');
			expect(date).toBeGreaterThanOrEqual(askedMs + 5_000);
			expect(date).toBeLessThanOrEqual(Date.now() + 6_000);
			expect(platform.books()).toMatchObject({ tasksMade: 0, faults: { '429': 4 } });
		});
	});

	test.each<[Partial<FaultRule>, string]>([
		[{}, '503 {"code":50300,"msg":"Service Unavailable","data":null}'],
		[{ status: 500, body: 'html' }, '500 <html><head><title>500 Internal Server Error'],
		[{ status: 502, body: 'empty' }, '502 '],
		[{ status: 504, body: 'envelope' }, '504 {"code":50400'],
	])('5xx %j', async (params, expected) => {
		await withRule({ on: 'submit', kind: '5xx', ...params }, async (client, platform) => {
			expect(await fateOfSubmit(client)).toContain(expected);
			expect(platform.books().tasksMade).toBe(0);
		});
	});

	test.each<FaultKind>(['429', '5xx', 'resetBefore', 'code', 'html200', 'redirect'])(
		'%s befalls every HTTP call that it suits',
		async (kind) => {
			await withRule({ on: 'any', kind, probability: 1 }, async (client, platform) => {
				const upload = new FormData();
				upload.set('source_file', new Blob([new Uint8Array(3_000_000)]), 'big.png');
				const fates = [
					await fateOfSubmit(client),
					await fate(client.call('get_task_info', { flow_task_ids: [] })),
					await fate(client.uploadForm(upload)),
				];
				for (const text of fates)
					expect(text).not.toContain('"code":0,"msg":"Success","data":{"prompt_id":"w');
				expect(platform.books()).toMatchObject({
					tasksMade: 0,
					uploads: [],
					polls: [],
					faults: { [kind]: 3 },
				});
			});
		},
	);

	test('resetBefore and hang do nothing and answer nothing', async () => {
		await withPlatform({}, async (client, platform) => {
			platform.faults.add({ on: 'submit', kind: 'resetBefore', times: 1 });
			expect(await fateOfSubmit(client)).toMatch(/^broken/);
			platform.faults.add({ on: 'submit', kind: 'hang', times: 1 });
			const signal = AbortSignal.timeout(150);
			expect(await fate(client.call('prompt', submitBody, { signal }))).toBe('broken: TimeoutError');
			expect(platform.books().tasksMade).toBe(0);
		});
	});

	test('code under HTTP 200', async () => {
		await withRule({ on: 'info', kind: 'code', code: 777, msg: 'busy' }, async (client) => {
			expect(await client.answer('get_task_info', { flow_task_ids: [] })).toMatchObject({
				code: 777,
				msg: 'busy',
			});
		});
	});

	test('html200', async () => {
		await withRule({ on: 'info', kind: 'html200' }, async (client) => {
			expect(await fate(client.call('get_task_info', {}))).toMatch(/^200 <html>/);
		});
	});

	test.each([302, 307, 308])('redirect %i leads to the trap, which notes leaked keys', async (status) => {
		await withRule({ on: 'submit', kind: 'redirect', status }, async (client, platform) => {
			const response = await client.call('prompt', submitBody);
			expect(response.status).toBe(status);
			const trap = response.headers.get('location') ?? '';
			expect(trap).toBe(`${platform.fileUrl}/trap`);
			const trapped = await fetch(trap, {
				method: 'POST',
				headers: { authorization: 'Bearer sk-x', 'content-type': 'application/json' },
				body: '{}',
			});
			expect(trapped.status).toBe(200);
			expect(platform.books()).toMatchObject({
				leaks: [{ where: 'trap', header: 'authorization' }],
				requests: { trap: 1 },
			});
		});
	});
});

describe('faults after the work', () => {
	test('resetAfter', async () => {
		await withRule({ on: 'submit', kind: 'resetAfter' }, async (client, platform) => {
			expect(await fateOfSubmit(client)).toMatch(/^broken/);
			expect(platform.books()).toMatchObject({
				tasksMade: 1,
				undeliveredSubmits: 1,
				tasks: [{ answer: 'notDelivered' }],
			});
		});
	});

	test('truncatedJson, once with a fitting length and once with a cut connection', async () => {
		await withRule({ on: 'submit', kind: 'truncatedJson' }, async (client, platform) => {
			const first = await fateOfSubmit(client);
			expect(first).toMatch(/^200 \{"code":0,"msg":"Success"/);
			expect(() => JSON.parse(first.slice(4))).toThrow(SyntaxError);
			expect(await fateOfSubmit(client)).toMatch(/^broken/);
			expect(platform.books()).toMatchObject({ tasksMade: 2, undeliveredSubmits: 2 });
		});
	});

	test('5xx after the work: a gateway that gave up', async () => {
		await withRule({ on: 'submit', kind: '5xx', status: 502, afterWork: true }, async (client, platform) => {
			expect(await fateOfSubmit(client)).toMatch(/^502/);
			expect(platform.books()).toMatchObject({ tasksMade: 1, undeliveredSubmits: 1 });
		});
	});

	test('slowBody takes its time and arrives whole', async () => {
		await withRule({ on: 'submit', kind: 'slowBody', ms: 200 }, async (client, platform) => {
			const start = Date.now();
			expect(await client.submit()).toMatchObject({ code: 0 });
			expect(Date.now() - start).toBeGreaterThan(150);
			expect(platform.books().undeliveredSubmits).toBe(0);
		});
	});

	test('a caller that left does not have its answer', async () => {
		await withRule({ on: 'submit', kind: 'slowBody', ms: 1_500 }, async (client, platform) => {
			const call = async (signal: AbortSignal): Promise<Response> =>
				client.call('prompt', submitBody, { signal });
			const worked = (): boolean => platform.books().tasksMade === 1;
			expect(await fateOfLeaving(call, worked)).toBe('broken: AbortError');
			await sleep(1_600);
			expect(platform.books()).toMatchObject({ tasksMade: 1, undeliveredSubmits: 1 });
		});
	});
});

describe('spoilt answers', () => {
	test('missingPromptToken', async () => {
		await withRule({ on: 'submit', kind: 'missingPromptToken' }, async (client, platform) => {
			const { data } = await client.answer('prompt', submitBody);
			expect(data).toEqual({ prompt_id: expect.any(String) });
			expect(platform.books().undeliveredSubmits).toBe(0);
		});
	});

	test('numbersAsStrings and filesNull, both at once', async () => {
		await withPlatform({ taskMs: 0 }, async (client, platform) => {
			const { id } = await client.submit();
			platform.faults.add({ on: 'any', kind: 'numbersAsStrings' });
			platform.faults.add({ on: 'any', kind: 'filesNull' });
			const wire = await fate(client.call('get_task_info', { flow_task_ids: [id] }));
			expect(wire).toContain('"code":"0"');
			expect(await client.info(id)).toMatchObject({
				status: '3',
				progress_num: '100',
				files: null,
				final_files: null,
			});
		});
	});

	test('missingIds', async () => {
		await withPlatform({ taskMs: 0 }, async (client, platform) => {
			const ids = [await client.submit(), await client.submit(), await client.submit()].map(({ id }) => id);
			platform.faults.add({ on: 'info', kind: 'missingIds', times: 1 });
			platform.faults.add({ on: 'info', kind: 'missingIds', skip: 1, times: 1, after: 1 });
			expect(await client.infos(ids)).toHaveLength(1);
			expect(await client.infos(ids)).toHaveLength(2);
			expect(await client.infos(ids)).toHaveLength(3);
		});
	});

	test('unknownStatus, in one answer or of the task itself', async () => {
		await withPlatform({ taskMs: 0 }, async (client, platform) => {
			platform.faults.add({ on: 'info', kind: 'unknownStatus', times: 1, status: 12 });
			const { id } = await client.submit();
			expect(await client.info(id)).toMatchObject({ status: 12 });
			expect(await client.info(id)).toMatchObject({ status: 3 });
			platform.faults.add({ on: 'submit', kind: 'unknownStatus', times: 1 });
			expect(await client.info((await client.submit()).id)).toMatchObject({ status: 7 });
		});
	});

	test.each<[FaultKind, object]>([
		['failTask', { status: 4, errMsg: 'why' }],
		['denyTask', { status: 5, errMsg: 'why' }],
		['noProgress', { status: 2, progress_num: 0 }],
		['stuckTask', { status: 2, progress_num: 99 }],
	])('%s', async (kind, expected) => {
		await withRule({ on: 'submit', kind, msg: 'why' }, async (client) => {
			expect(await client.info((await client.submit()).id)).toMatchObject(expected);
		});
	});
});

describe('faults of files', () => {
	test('expiredLink, in the answer or at the host', async () => {
		await withRule({ on: 'info', kind: 'expiredLink', times: 1 }, async (client, platform) => {
			const { id } = await client.submit();
			const stale = decodeLink((await client.info(id)).final_files[0] ?? '');
			expect(await fate(fetch(stale))).toMatch(/^403 .*expired/s);
			const good = decodeLink((await client.info(id)).final_files[0] ?? '');
			platform.faults.add({ on: 'file', kind: 'expiredLink', times: 1 });
			expect(await fate(fetch(good))).toMatch(/^403 .*expired/s);
			expect(await fate(fetch(good))).toMatch(/^200/);
		});
	});

	test('fileReset, fileWrongType, fileEmpty, 5xx, redirect and a slow body', async () => {
		await withPlatform({ taskMs: 0, fileBytes: 500_000 }, async (client, platform) => {
			const link = await linkOf(client);
			const once = async (kind: FaultKind, params: Partial<FaultRule> = {}): Promise<Response> => {
				platform.faults.add({ on: 'file', kind, times: 1, ...params });
				return fetch(link, { redirect: 'manual' });
			};
			const cut = await once('fileReset');
			expect(cut.headers.get('content-length')).toBe('500000');
			await expect(cut.arrayBuffer()).rejects.toThrow();
			expect((await once('fileWrongType')).headers.get('content-type')).toMatch(/^text\/html/);
			expect((await (await once('fileEmpty')).arrayBuffer()).byteLength).toBe(0);
			expect((await once('5xx')).status).toBe(503);
			expect((await once('redirect')).status).toBe(302);
			expect(platform.books().downloads).toBe(0);
			const start = Date.now();
			expect((await (await once('slowBody', { ms: 200 })).arrayBuffer()).byteLength).toBe(500_000);
			expect(Date.now() - start).toBeGreaterThan(150);
			expect(platform.books().downloads).toBe(1);
		});
	});
});

describe('faults of sockets', () => {
	test('socketRefuse, resetBefore and hang', async () => {
		await withPlatform({}, async (client, platform) => {
			const { token } = await client.submit();
			platform.faults.add({ on: 'socket', kind: 'socketRefuse', times: 1, status: 500 });
			expect(await client.watch(token).closed).toBe(-500);
			platform.faults.add({ on: 'socket', kind: 'resetBefore', times: 1 });
			expect(await client.watch(token).closed).toBe(1006);
			platform.faults.add({ on: 'socket', kind: 'hang', times: 1 });
			const waiting = client.watch(token);
			await until(() => platform.books().sockets.refused === 3);
			await sleep(50);
			expect(waiting.socket.readyState).toBe(waiting.socket.CONNECTING);
			expect(platform.books().sockets).toMatchObject({ opened: 0, refused: 3 });
			waiting.socket.terminate();
		});
	});

	test('socketDrop after so many messages', async () => {
		const time = new HandWoundTime();
		await withPlatform({ taskMs: 300, time }, async (client, platform) => {
			platform.faults.add({ on: 'socket', kind: 'socketDrop', after: 2, times: 1 });
			const { token } = await client.submit();
			const watch = client.watch(token);
			await watch.heard(1);
			time.pass(15);
			expect(await watch.closed).toBe(1006);
			expect(watch.messages).toHaveLength(2);
		});
	});

	test('socketSilent and socketGarbage', async () => {
		await withPlatform({ taskMs: 100 }, async (client, platform) => {
			platform.faults.add({ on: 'socket', kind: 'socketSilent', times: 1 });
			const { token } = await client.submit();
			const silent = client.watch(token);
			platform.faults.add({ on: 'socket', kind: 'socketGarbage', skip: 1, times: 1 });
			await once(silent.socket, 'open');
			const noisy = client.watch(token);
			await noisy.closed;
			expect(silent.socket.readyState).toBe(silent.socket.OPEN);
			expect(silent.texts).toEqual([]);
			expect(noisy.texts[0]).toBe('<html>proxy error</html>');
			expect(noisy.messages.at(-1)).toMatchObject({ status: 3 });
		});
	});

	test('spoilt messages', async () => {
		await withPlatform({ taskMs: 0 }, async (client, platform) => {
			platform.faults.add({ on: 'socket', kind: 'numbersAsStrings' });
			platform.faults.add({ on: 'socket', kind: 'expiredLink' });
			const watch = client.watch((await client.submit()).token);
			await watch.closed;
			expect(watch.messages[0]).toMatchObject({ status: '3' });
			expect((await fetch(decodeLink(watch.messages[0]?.final_files[0] ?? ''))).status).toBe(403);
		});
	});
});

describe('rules', () => {
	test('skip, times, match and removal', async () => {
		await withPlatform({ taskMs: 0 }, async (client, platform) => {
			const rule = platform.faults.add({
				on: 'submit',
				kind: 'code',
				skip: 1,
				times: 2,
				match: 'dragon',
			});
			const codes: number[] = [];
			for (const text of ['dragon', 'fox', 'dragon', 'fox', 'dragon', 'dragon']) {
				codes.push((await client.submitText(text)).code);
			}
			expect(codes).toEqual([0, 0, 50000, 0, 50000, 0]);
			expect(rule.injected).toBe(2);
			platform.faults.add({ on: 'submit', kind: 'code' }).remove();
			expect((await client.submit()).code).toBe(0);
		});
	});

	test('a kind must suit its target', async () => {
		await withPlatform({}, async (_client, platform) => {
			expect(() => platform.faults.add({ on: 'submit', kind: 'fileReset' })).toThrow(/does not suit submit/);
		});
	});

	async function pattern(seed: number, campaign: boolean): Promise<string> {
		let marks = '';
		await withPlatform({ taskMs: 0, seed }, async (client, platform) => {
			if (campaign) platform.faults.campaign({ rate: 0.4, seed });
			else platform.faults.add({ on: 'submit', kind: 'code', probability: 0.4 });
			for (let count = 0; count < 30; count++) {
				marks += (await fateOfSubmit(client)).slice(0, 18).replace(/[{"]/g, '') + '|';
			}
		});
		return marks;
	}

	test.each([true, false])('the same seed gives the same faults (campaign: %s)', async (campaign) => {
		const first = await pattern(5, campaign);
		expect(await pattern(5, campaign)).toBe(first);
		expect(await pattern(6, campaign)).not.toBe(first);
	});

	test('a campaign hits its share, and the books agree with what the caller saw', async () => {
		await withPlatform({ taskMs: 0 }, async (client, platform) => {
			platform.faults.campaign({ rate: 0.2, seed: 3 });
			let delivered = 0;
			for (let count = 0; count < 200; count++) {
				const text = await fateOfSubmit(client);
				if (/^200 .*\}$/s.test(text)) delivered++;
			}
			platform.faults.clear();
			const { faults, tasksMade, undeliveredSubmits } = platform.books();
			const injected = Object.values(faults).reduce((sum, count) => sum + count, 0);
			expect(injected).toBeGreaterThan(20);
			expect(injected).toBeLessThan(60);
			expect(tasksMade - undeliveredSubmits).toBe(delivered);
			expect(undeliveredSubmits).toBe((faults['resetAfter'] ?? 0) + (faults['truncatedJson'] ?? 0));
		});
	});

	test('a campaign of chosen kinds', async () => {
		await withPlatform({ taskMs: 0 }, async (client, platform) => {
			platform.faults.campaign({ rate: 1, kinds: ['socketSilent', 'html200'] });
			expect(await fateOfSubmit(client)).toMatch(/^200 <html>/);
			platform.faults.clear();
			expect(field(await client.answer('prompt', submitBody), 'code')).toBe(0);
		});
	});
});
