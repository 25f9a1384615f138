import { badInput, fail, ok } from '../../../../nodes/shared/errors/failure';
import { BackgroundWriter } from '../../../../nodes/shared/time/backgroundWriter';
import { TestClock } from '../../testClock';

test('a flush that is tried again waits for what another write has taken meanwhile', async () => {
	const clock = new TestClock();
	let queue = ['a'];
	let tries = 0;
	const written: string[] = [];
	const writer = new BackgroundWriter(clock, {
		isBehind: () => queue.length > 0,
		write: async () => {
			const taken = queue.splice(0);
			const isBroken = ++tries <= 2;
			await clock.sleep(100);
			if (isBroken) queue = [...taken, ...queue];
			else written.push(...taken);
			return isBroken ? fail(badInput('locked', '')) : ok(undefined);
		},
		pauseMs: () => 1_000,
	});
	const flushed = writer.flush();
	await clock.advance(50);
	queue.push('b');
	const other = writer.now();
	await expect(clock.run(flushed)).resolves.toEqual(ok(undefined));
	expect(written).toEqual(['a', 'b']);
	expect(await clock.run(other)).toMatchObject({ ok: false });
});
