import { SILENT_MS } from '../../../../nodes/shared/dataTable/heartbeat';
import type { SessionStore } from '../../../../nodes/AgentInvoke/sessions/sessionStore';
import { WaitLimit } from '../../../../nodes/AgentInvoke/turns/waitLimit';
import { MemoryTable } from '../../shared/memoryTable';
import { TestClock } from '../../testClock';
import { openStore } from './worker.scene';

/* Sessions whose writes fail, take effect despite a failure, or are too late. */

const STRICT = { isStrict: true };
let clock: TestClock;
let table: MemoryTable;
beforeEach(() => {
	clock = new TestClock();
	table = new MemoryTable(clock);
});

function store(executionId: string): SessionStore {
	return openStore({ executionId }, table.open(), clock, { random: () => 0.5 });
}

function waiting(timeoutMs = 600_000): WaitLimit {
	const { signal } = new AbortController();
	return new WaitLimit(clock, timeoutMs, signal, signal, () => undefined);
}

async function rowOf(sessionId: string): Promise<Record<string, string | number>> {
	const aside = new MemoryTable(clock);
	const first = openStore({}, aside.open(), clock);
	await clock.run(first.obtain('k', waiting()));
	first.opened('k', sessionId);
	await clock.run(first.flush());
	return { ...aside.all()[0], id: 1 };
}

/** The store of a run that holds the key, in strict order, whose session is in the table. */
async function holding(sessionId: string): Promise<SessionStore> {
	table.put(await rowOf(sessionId));
	const one = store('one');
	await clock.run(one.obtain('k', waiting(), STRICT));
	return one;
}

test('a run ends even if its last writes fail, and others get its key later', async () => {
	const one = store('one');
	expect(await clock.run(one.obtain('k', waiting()))).toMatchObject({ ok: true, value: '' });
	one.opened('k', 's1');
	table.mishap = () => 'before';
	expect(await clock.run(one.flush())).toMatchObject({ ok: false });
	expect(clock.sleepers).toBe(0);
	table.mishap = () => 'none';
	const other = store('other');
	expect(await clock.run(other.obtain('k', waiting()))).toMatchObject({ ok: true, value: '' });
	expect(clock.elapsedMs).toBeLessThan(2 * SILENT_MS);
});

test('a key whose last write failed is available to others as soon as the table accepts writes again', async () => {
	const opens = store('opens');
	await clock.run(opens.obtain('k', waiting()));
	opens.opened('k', 's1');
	await clock.run(opens.flush());
	const one = store('one');
	expect(await clock.run(one.obtain('k', waiting(), STRICT))).toMatchObject({ ok: true, value: 's1' });
	one.used('k', one.find('k'));
	table.mishap = (call) => (call === 'swap' ? 'before' : 'none');
	await clock.run(one.flush());
	table.mishap = () => 'none';
	const sinceMs = clock.elapsedMs;
	expect(await clock.run(store('other').obtain('k', waiting(), STRICT))).toMatchObject({
		ok: true,
		value: 's1',
	});
	expect(clock.elapsedMs - sinceMs).toBeLessThan(1_000);
});

test('a session that changed its ID twice continues, even if the first write took effect despite a failure', async () => {
	table.put({ ...(await rowOf('s1')) });
	const one = store('one');
	await clock.run(one.load(['k']));
	await clock.run(one.obtain('k', waiting()));
	table.mishap = (call) => (call === 'swap' ? 'after' : 'none');
	one.opened('k', 's2', one.find('k'));
	one.used('k', one.find('k'));
	await clock.advance(1_500);
	table.mishap = () => 'none';
	one.opened('k', 's3', one.find('k'));
	one.used('k', one.find('k'));
	expect(await clock.run(one.flush())).toMatchObject({ ok: true });
	expect(table.all()).toMatchObject([{ sessionId: 's3', turns: 2 }]);
});

test('finding lost keys needs few writes if the table fails, however many keys there are', async () => {
	const one = store('one');
	const keys = Array.from({ length: 50 }, (_, index) => `k${index}`);
	await clock.run(Promise.all(keys.map(async (key) => await one.obtain(key, waiting()))));
	for (const key of keys) one.opened(key, `s ${key}`);
	table.mishap = () => 'before';
	table.calls.length = 0;
	await clock.run(one.settle());
	expect(table.calls.filter((call) => call === 'swap').length).toBeLessThan(10);
});

test('a replaced holder learns that it was replaced, even if the table failed at first', async () => {
	const one = store('one');
	await clock.run(one.obtain('k', waiting()));
	table.edit((row) => ({ ...row, sessionId: 's of another', owner: 'free' }));
	one.opened('k', 's1');
	let fails = 2;
	table.mishap = (call) => (call === 'swap' && fails-- > 0 ? 'before' : 'none');
	await clock.run(one.settle());
	expect(one.isLost('k')).toBe(true);
	expect(one.find('k')).toBe('s of another');
});

test('a replaced holder learns that it was replaced, even if an earlier write was repeated', async () => {
	const one = await holding('s1');
	let fails = 1;
	table.mishap = (call) => (call === 'swap' && fails-- > 0 ? 'before' : 'none');
	one.opened('k', 's2', one.find('k'));
	await clock.advance(20_000);
	expect(table.all()).toMatchObject([{ sessionId: 's2' }]);
	// Another process assumes that the holder is dead, and continues its session.
	table.edit((row) => ({ ...row, owner: 'another 1', beat: 0 }));
	one.used('k', one.find('k'));
	await clock.run(one.release('k'));
	await clock.run(one.settle());
	expect(one.isLost('k')).toBe(true);
});

test('strict: the rows of dead processes in the queue are removed once the key has been held again', async () => {
	const dead = { ...(await rowOf('s1')) };
	table.put(dead);
	table.put({ ...dead, id: 2, sessionId: '', owner: 'waits dead 1', beat: 3 });
	const one = store('one');
	expect(await clock.run(one.obtain('k', waiting(), STRICT))).toMatchObject({ ok: true, value: 's1' });
	expect(clock.elapsedMs).toBeGreaterThan(SILENT_MS / 2);
	one.used('k', one.find('k'));
	await clock.run(one.release('k'));
	await clock.run(one.flush());
	expect(table.all().map(({ owner }) => owner)).toEqual(['free']);
});

test('strict: a row that was released despite a failure is not treated as held', async () => {
	table.put(await rowOf('s1'));
	const [one, other] = [store('one'), store('other')];
	await clock.run(one.obtain('k', waiting(), STRICT));
	one.used('k', one.find('k'));
	table.mishap = (call) => (call === 'swap' ? 'after' : 'none');
	await clock.run(one.release('k'));
	table.mishap = () => 'none';
	expect(await clock.run(other.obtain('k', waiting(), STRICT))).toMatchObject({ ok: true, value: 's1' });
	const again = one.obtain('k', waiting(), STRICT);
	let isHeldAgain = false;
	void again.then(() => {
		isHeldAgain = true;
	});
	await clock.advance(20_000);
	expect(isHeldAgain).toBe(false);
	other.used('k', other.find('k'));
	await clock.run(other.release('k'));
	expect(await clock.run(again)).toMatchObject({ ok: true, value: 's1' });
	one.used('k', one.find('k'));
	await clock.run(Promise.all([one.release('k'), other.flush()]));
	await clock.run(one.flush());
	await clock.run(one.settle());
	expect(one.isLost('k')).toBe(false);
	expect(table.all()).toMatchObject([{ sessionId: 's1', turns: 3, owner: 'free' }]);
});

test('strict: the heartbeat of a holder stops if it is replaced while the agent answers', async () => {
	const one = await holding('s1');
	table.edit((row) => ({ ...row, owner: 'another 1' }));
	one.opened('k', 's2', one.find('k'));
	await clock.advance(5_000);
	await clock.run(one.settle());
	expect(one.isLost('k')).toBe(true);
	await clock.run(one.release('k'));
	await clock.run(one.flush());
	expect(clock.sleepers).toBe(0);
});

test('a key that could not be released at once is released when the run ends', async () => {
	const one = await holding('s1');
	let fails = 3;
	table.mishap = (call) => (call === 'updateAlike' && fails-- > 0 ? 'before' : 'none');
	await clock.run(one.release('k'));
	expect(await clock.run(one.flush())).toMatchObject({ ok: true });
	expect(table.all()).toMatchObject([{ sessionId: 's1', owner: 'free' }]);
});

test.each([
	['swap', 2],
	['read', 3],
])(
	'a key follows a session that was used by ID and changed it, even if %s failed %d times at first',
	async (operation, times) => {
		table.put(await rowOf('s1'));
		const one = store('one');
		one.resumedById('s1', 's2');
		let fails = times;
		table.mishap = (call) => (call === operation && fails-- > 0 ? 'before' : 'none');
		expect(await clock.run(one.flush())).toMatchObject({ ok: true });
		expect(table.all()).toMatchObject([{ sessionId: 's2', turns: 1 }]);
	},
);

test('reports a session that was used by ID and whose key cannot be read', async () => {
	const one = store('one');
	one.resumedById('s1', 's2');
	table.mishap = (call) => (call === 'read' ? 'before' : 'none');
	expect(await clock.run(one.flush())).toMatchObject({ ok: false });
	expect(clock.sleepers).toBe(0);
});

test('strict: nothing is lost if the last write took effect, although the table then failed for a minute', async () => {
	const one = await holding('s1');
	one.used('k', one.find('k'));
	table.mishap = (call) => (call === 'swap' ? 'after' : 'none');
	await clock.run(one.release('k'));
	table.mishap = () => 'before';
	await clock.advance(SILENT_MS);
	table.mishap = () => 'none';
	await clock.run(one.settle());
	expect(one.isLost('k')).toBe(false);
	await clock.run(one.flush());
	expect(table.all()).toMatchObject([{ sessionId: 's1', turns: 1, owner: 'free' }]);
});

describe('strict: another execution continues a session whose last write was not answered', () => {
	const byOther = (turns: number) =>
		table.edit((row) => ({ ...row, turns, owner: 'free', lastExecutionId: 'other' }));

	test('after the write took effect', async () => {
		const one = await holding('s1');
		one.used('k', one.find('k'));
		table.mishap = (call) => (call === 'swap' ? 'after' : 'none');
		await clock.run(one.release('k'));
		byOther(2);
		table.mishap = () => 'none';
		await clock.run(one.flush());
		await clock.run(one.settle());
		expect(one.isLost('k')).toBe(false);
		expect(table.all()).toMatchObject([{ sessionId: 's1', turns: 2, lastExecutionId: 'other' }]);
	});

	test('before the write took effect, because it assumed that this execution was dead', async () => {
		const one = await holding('s1');
		table.mishap = (call) => (call === 'updateAlike' ? 'before' : 'none');
		await clock.advance(SILENT_MS + 1_000);
		byOther(1);
		table.mishap = (call) => (call === 'swap' ? 'before' : 'none');
		one.used('k', one.find('k'));
		await clock.run(one.release('k'));
		await clock.advance(20_000);
		table.mishap = () => 'none';
		await clock.run(one.settle());
		expect(one.isLost('k')).toBe(true);
		await clock.run(one.flush());
		expect(clock.sleepers).toBe(0);
	});
});

test('a holder that was replaced does not overwrite the current session', async () => {
	const one = store('one');
	await clock.run(one.obtain('k', waiting()));
	table.edit((row) => ({ ...row, sessionId: 's2', turns: 1, owner: 'free' }));
	one.opened('k', 's1');
	await clock.advance(5_000);
	expect(one.find('k')).toBe('s2');
	// A repeated call opens another session, in which its turn ends.
	one.opened('k', 's3');
	one.used('k', 's3');
	await clock.run(one.release('k'));
	await clock.run(one.settle());
	expect(one.isLost('k')).toBe(true);
	await clock.run(one.flush());
	expect(table.all()).toMatchObject([{ sessionId: 's2', turns: 1 }]);
	expect(one.find('k')).toBe('s2');
	// The next turn continues the current session, whatever its ID becomes.
	one.opened('k', 's4', 's2');
	one.used('k', 's4');
	await clock.run(one.flush());
	expect(table.all()).toMatchObject([{ sessionId: 's4', turns: 2 }]);
});
