import { HandWoundTime } from '../../platform';
import { decodeLink, withPlatform } from './client';

test('a link is valid without its escapes, unchanged, and for the requested period or an hour', async () => {
	const time = new HandWoundTime();
	await withPlatform({ taskMs: 0, time }, async (client, platform) => {
		const { id } = await client.submit();
		const expiry = (link: string | undefined): number => Number(/Expires=(\d+)/.exec(link ?? '')?.[1]);
		const hour = expiry((await client.info(id)).final_files[0]) - time.now() / 1000;
		expect(hour).toBeGreaterThanOrEqual(3600);
		expect(hour).toBeLessThan(3601);

		const [wire = ''] = (await client.info(id, 1)).final_files;
		const link = decodeLink(wire);
		expect((await fetch(link, { headers: { authorization: 'Bearer sk-x' } })).status).toBe(200);
		expect(platform.books().leaks).toEqual([{ where: 'file host', header: 'authorization' }]);
		expect((await fetch(wire)).status).toBe(403);
		const longer = link.replace(/Expires=\d+/, 'Expires=9999999999');
		expect(await (await fetch(longer)).text()).toContain('SignatureDoesNotMatch');
		time.pass(2000);
		const expired = await fetch(link);
		expect(expired.status).toBe(403);
		expect(await expired.text()).toContain('<Message>Request has expired.</Message>');
	});
});

test('all downloads share the configured bytes per second', async () => {
	const options = { taskMs: 0, fileBytes: 200_000, fileBytesPerSecond: 1_000_000 };
	await withPlatform(options, async (client, platform) => {
		const { final_files: files } = await client.info((await client.submit()).id);
		const sinceMs = performance.now();
		await Promise.all(
			Array.from({ length: 3 }, async () => (await fetch(decodeLink(files[0]))).arrayBuffer()),
		);
		expect(performance.now() - sinceMs).toBeGreaterThan(550);
		const { bytes, fromMs, untilMs } = platform.books().downloadLine;
		expect(bytes).toBe(600_000);
		expect((untilMs ?? 0) - (fromMs ?? 0)).toBeGreaterThan(500);
	});
});
