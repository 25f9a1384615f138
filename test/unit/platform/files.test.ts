import { HandWoundTime } from '../../platform';
import { decodeLink } from './client';
import { withPlatform } from './running';

test('a delivered link contains the six characters \\u0026 in place of &', async () => {
	await withPlatform({ taskMs: 0 }, async (client) => {
		const { id } = await client.submit();
		const wire = await (await client.call('get_task_info', { flow_task_ids: [id] })).text();
		expect(wire).toContain('\\\\u0026');
		const { final_files: files } = await client.info(id);
		expect(files[0]).toContain('\\u0026');
		expect(files[0]).not.toContain('&');
		// The link is invalid as delivered.
		expect((await fetch(files[0] ?? '')).status).toBe(403);
	});
});

test('links expire after the requested period, or after an hour by default', async () => {
	const time = new HandWoundTime();
	await withPlatform({ taskMs: 0, time }, async (client) => {
		const { id } = await client.submit();
		const expiry = (link: string | undefined): number => Number(/Expires=(\d+)/.exec(link ?? '')?.[1]);
		const hour = expiry((await client.info(id)).final_files[0]) - time.now() / 1000;
		expect(hour).toBeGreaterThanOrEqual(3600);
		expect(hour).toBeLessThan(3601);
		const short = (await client.info(id, 1)).final_files[0] ?? '';
		expect((await fetch(decodeLink(short))).status).toBe(200);
		time.pass(2000);
		const expired = await fetch(decodeLink(short));
		expect(expired.status).toBe(403);
		expect(expired.headers.get('content-type')).toBe('application/xml');
		expect(await expired.text()).toContain('<Message>Request has expired.</Message>');
	});
});

test('a changed link is refused', async () => {
	await withPlatform({ taskMs: 0 }, async (client, platform) => {
		const { final_files: files } = await client.info((await client.submit()).id);
		const link = decodeLink(files[0] ?? '');
		const longer = link.replace(/Expires=\d+/, 'Expires=9999999999');
		expect(await (await fetch(longer)).text()).toContain('SignatureDoesNotMatch');
		expect((await fetch(`${platform.fileUrl}/files/a/b/c.png`)).status).toBe(403);
	});
});

test('an Authorization header at the file host is a leak', async () => {
	await withPlatform({ taskMs: 0 }, async (client, platform) => {
		const { final_files: files } = await client.info((await client.submit()).id);
		await fetch(decodeLink(files[0] ?? ''), { headers: { authorization: `Bearer ${platform.apiKey}` } });
		expect(platform.books().leaks).toEqual([{ where: 'file host', header: 'authorization' }]);
	});
});

test('all downloads share the configured bytes per second', async () => {
	const options = { taskMs: 0, fileBytes: 200_000, fileBytesPerSecond: 1_000_000 };
	await withPlatform(options, async (client, platform) => {
		const links: string[] = [];
		for (let number = 0; number < 3; number++) {
			const { final_files: files } = await client.info((await client.submit()).id);
			links.push(decodeLink(files[0] ?? ''));
		}
		const sinceMs = performance.now();
		const sizes = await Promise.all(
			links.map(async (link) => (await (await fetch(link)).arrayBuffer()).byteLength),
		);
		const tookMs = performance.now() - sinceMs;
		expect(sizes).toEqual([200_000, 200_000, 200_000]);
		expect(tookMs).toBeGreaterThan(550);
		const { bytes, fromMs, untilMs } = platform.books().downloadLine;
		expect(bytes).toBe(600_000);
		expect((untilMs ?? 0) - (fromMs ?? 0)).toBeGreaterThan(500);
		platform.resetBooks();
		expect(platform.books().downloadLine).toEqual({ bytes: 0, fromMs: null, untilMs: null });
	});
});
