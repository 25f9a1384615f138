import { DEAD_MS } from '../../../../nodes/shared/dataTable/claims';
import type { DataTable } from '../../../../nodes/shared/dataTable/table';
import type { SessionStore } from '../../../../nodes/AgentInvoke/sessions/sessionStore';
import { WaitLimit } from '../../../../nodes/AgentInvoke/turns/waitLimit';
import { MemoryTable } from '../../shared/memoryTable';
import { TestClock } from '../../testClock';
import { openStore } from './worker.scene';

/* Sessions whose writes fail, take effect despite a failure, or are too late. */

const STRICT = { sinceMs: 0 };
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
	expect(clock.elapsedMs).toBeLessThan(2 * DEAD_MS);
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
	expect(table.all()).toMatchObject([{ sessionId: 's3' }]);
});

test('a session that gets a new ID while it is being written is stored under that', async () => {
	table = new MemoryTable(clock, () => 1, 1_000);
	const one = store('one');
	await clock.run(one.obtain('k', waiting()));
	one.opened('k', 's1');
	await clock.advance(1_500);
	one.opened('k', 's2', 's1');
	expect(await clock.run(one.flush())).toMatchObject({ ok: true });
	expect(one.find('k')).toBe('s2');
	expect(table.all()).toMatchObject([{ sessionId: 's2' }]);
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
	table.edit((row) => ({ ...row, sessionId: 's of another', holder: 'another' }));
	one.opened('k', 's1');
	let fails = 2;
	table.mishap = (call) => (call.startsWith('swap') && fails-- > 0 ? 'before' : 'none');
	await clock.run(one.settle());
	expect(one.isLost('k')).toBe(true);
	expect(one.find('k')).toBe('s of another');
});

test('strict: the rows of dead processes in the queue are removed once the key has been held again', async () => {
	const dead = { ...(await rowOf('s1')) };
	table.put(dead);
	table.put({ ...dead, id: 2, sessionId: '', holder: 'dead', rowKey: 'dead:1', waitsSinceMs: -1 });
	const one = store('one');
	expect(await clock.run(one.obtain('k', waiting(), STRICT))).toMatchObject({ ok: true, value: 's1' });
	expect(clock.elapsedMs).toBeGreaterThan(DEAD_MS / 2);
	one.used('k', one.find('k'));
	await clock.run(one.release('k'));
	await clock.run(one.flush());
	one.leaveQueue('k');
	await clock.run(clock.sleep(1_000));
	expect(table.all()).toMatchObject([{ sessionId: 's1' }]);
});

test('a key that could not be released at once is released when the run ends', async () => {
	const one = await holding('s1');
	let fails = 2;
	table.mishap = (call) => (call === 'remove' && fails-- > 0 ? 'before' : 'none');
	await clock.run(one.release('k'));
	expect(await clock.run(one.flush())).toMatchObject({ ok: true });
	expect(table.all()).toMatchObject([{ sessionId: 's1' }]);
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
		expect(table.all()).toMatchObject([{ sessionId: 's2' }]);
	},
);

test('reports a session that was used by ID and whose key cannot be read', async () => {
	const one = store('one');
	one.resumedById('s1', 's2');
	table.mishap = (call) => (call === 'read' ? 'before' : 'none');
	expect(await clock.run(one.flush())).toMatchObject({ ok: false });
	expect(clock.sleepers).toBe(0);
});

test('a holder that was replaced does not overwrite the current session', async () => {
	const one = store('one');
	await clock.run(one.obtain('k', waiting()));
	table.edit((row) => ({ ...row, sessionId: 's2', holder: 'another' }));
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
	expect(table.all()).toMatchObject([{ sessionId: 's2' }]);
	expect(one.find('k')).toBe('s2');
	// The next turn continues the current session, whatever its ID becomes.
	one.opened('k', 's4', 's2');
	one.used('k', 's4');
	await clock.run(one.flush());
	expect(table.all()).toMatchObject([{ sessionId: 's4' }]);
});

test('strict: a turn whose claim a person has deleted, or whose renewals failed, may have been overtaken and knows it', async () => {
	for (const loss of ['deleted', 'not renewed']) {
		table = new MemoryTable(clock);
		const one = await holding('s1');
		if (loss === 'deleted') table.edit((row) => (row.sessionId ? row : undefined));
		else table.mishap = (call) => (call === 'replace' ? 'before' : 'none');
		await clock.advance(DEAD_MS);
		await clock.run(one.release('k'));
		expect([one.isLost('k'), one.find('k')]).toEqual([true, 's1']);
		await clock.run(one.flush());
		expect(table.all()).toMatchObject([{ sessionId: 's1' }]);
	}
});

describe('a holder that is presumed dead while it opens a session', () => {
	/** Two runs open the key's session: the renewals of the first fail until the second has taken over. */
	async function overtaken(): Promise<[SessionStore, SessionStore]> {
		const [one, two] = [store('one'), store('two')];
		await clock.run(one.obtain('k', waiting()));
		table.mishap = (call) => (call === 'replace' ? 'before' : 'none');
		expect(await clock.run(two.obtain('k', waiting()))).toEqual({ ok: true, value: '' });
		table.mishap = () => 'none';
		return [one, two];
	}

	test.each(['before', 'after'])(
		'and learns its session %s the taker has opened one, is told',
		async (when) => {
			const [one, two] = await overtaken();
			const order = when === 'before' ? ([one, two] as const) : ([two, one] as const);
			for (const run of order) {
				run.opened('k', run === one ? 's1' : 's2');
				await clock.run(run.settle());
			}
			expect([one.isLost('k'), two.isLost('k'), two.find('k')]).toEqual([true, false, 's2']);
			await clock.run(Promise.all([one.flush(), two.flush()]));
			await clock.advance(1_000);
			expect(table.all()).toMatchObject([{ sessionId: 's2' }]);
			const next = store('next');
			await clock.run(next.load(['k']));
			expect(next.find('k')).toBe('s2');
		},
	);

	test('keeps its session, and is told, if the taker is refused', async () => {
		const [one, two] = await overtaken();
		await clock.run(two.release('k'));
		one.opened('k', 's1');
		await clock.run(one.settle());
		await clock.run(Promise.all([one.flush(), two.flush()]));
		expect(table.all()).toMatchObject([{ sessionId: 's1' }]);
		expect(one.find('k')).toBe('s1');
	});

	test('is not heard of again if it is dead, and the taker dies, too', async () => {
		await overtaken();
		table.mishap = (call) => (call === 'replace' ? 'before' : 'none');
		const three = store('three');
		expect(await clock.run(three.obtain('k', waiting()))).toEqual({ ok: true, value: '' });
		three.opened('k', 's3');
		await clock.run(three.settle());
		expect(three.isLost('k')).toBe(false);
		expect(table.all().filter(({ sessionId }) => sessionId)).toMatchObject([{ sessionId: 's3' }]);
	});
});

test('a session that is forgotten, or edited by a person, during a turn is neither revived nor overwritten', async () => {
	for (const what of ['forgotten', 'edited']) {
		table = new MemoryTable(clock);
		table.put(await rowOf('s1'));
		const one = store('one');
		await clock.run(one.load(['k']));
		table.edit((row) => (what === 'edited' ? { ...row, sessionId: 'mine' } : undefined));
		one.opened('k', 's1b', 's1');
		one.used('k', 's1b');
		await clock.run(one.settle());
		expect(one.isLost('k')).toBe(true);
		await clock.run(one.flush());
		expect(table.all().map(({ sessionId }) => sessionId)).toEqual(what === 'edited' ? ['mine'] : []);
	}
});

test('a renewal of the claim that hangs past the end does not remove the row of the session, nor stay', async () => {
	const opened = table.open();
	let hangs = true;
	const slow: DataTable = {
		...opened,
		replace: async (rows, gone) => {
			if (hangs) await clock.sleep(200_000);
			hangs = false;
			return await opened.replace(rows, gone);
		},
	};
	const one = openStore({ executionId: 'one' }, slow, clock, { random: () => 0.5 });
	await clock.run(one.obtain('k', waiting()));
	await clock.advance(28_000);
	one.opened('k', 's1');
	await clock.run(one.flush());
	await clock.advance(300_000);
	const next = store('next');
	await clock.run(next.load(['k']));
	expect([next.find('k'), table.all().length]).toEqual(['s1', 1]);
});

test('no call opens a session while it is uncertain whether the key is still claimed', async () => {
	const one = store('one');
	await clock.run(one.obtain('k', waiting()));
	await clock.advance(10 * 60_000);
	expect(one.maySend('k')).toBe(true);
	table.mishap = () => 'before';
	await clock.advance(31_000);
	expect([one.maySend('k'), one.maySend('other')]).toEqual([false, true]);
	await clock.run(one.flush());
});
