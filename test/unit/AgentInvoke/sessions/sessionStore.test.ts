import { SESSION_TABLE } from '../../../../nodes/AgentInvoke/sessions/sessionRows';
import { explainTable, type SessionStore } from '../../../../nodes/AgentInvoke/sessions/sessionStore';
import type { WaitLimit } from '../../../../nodes/AgentInvoke/turns/waitLimit';
import { badInput, fail } from '../../../../nodes/shared/errors/failure';
import { MemoryTable } from '../../shared/memoryTable';
import { TestClock } from '../../testClock';
import { openStore } from './worker.scene';

const HOUR = 3_600_000;
const PATIENT: Pick<WaitLimit, 'pause' | 'whyStop'> = {
	pause: () => undefined,
	whyStop: () => undefined,
};
const STRICT = { sinceMs: 0 };
let clock: TestClock;
let table: MemoryTable;
beforeEach(() => {
	clock = new TestClock();
	table = new MemoryTable(clock);
});

function open(settings: { agent?: string; executionId?: string; ttlMs?: number } = {}): SessionStore {
	return openStore({ executionId: 'e1', ...settings }, table.open(), clock);
}

async function loaded(keys: string[], settings?: Parameters<typeof open>[0]): Promise<SessionStore> {
	const store = open(settings);
	expect(await clock.run(store.load(keys))).toEqual({ ok: true, value: undefined });
	return store;
}

async function remember(key: string, id: string, settings?: Parameters<typeof open>[0]): Promise<void> {
	const store = await loaded([key], settings);
	store.opened(key, id);
	store.used(key, store.find(key));
	expect((await clock.run(store.flush())).ok).toBe(true);
}

const found = async (key: string, settings?: Parameters<typeof open>[0]): Promise<string> => {
	const store = await loaded([key], settings);
	await clock.run(store.flush());
	return store.find(key);
};

test('finds a key again, in a row with all its columns', async () => {
	await remember('anna', 's1');
	expect(await found('anna')).toBe('s1');
	expect(Object.keys(table.all()[0]!).sort()).toEqual(
		['id', ...SESSION_TABLE.columns.map(({ name }) => name)].sort(),
	);
	expect(table.all()).toMatchObject([
		{ sessionKey: 'anna', agent: 'a', sessionId: 's1', workflowId: 'w', lastExecutionId: 'e1' },
	]);
});

test('writes a new session within a second, or before a flush ends', async () => {
	const store = await loaded(['k']);
	store.opened('k', 's1');
	await clock.advance(999);
	expect(table.all()).toHaveLength(1);
	store.opened('other', 's2');
	await clock.run(store.flush());
	expect(table.all()).toHaveLength(2);
	expect(clock.sleepers).toBe(0);
});

test.each([
	{ agoMs: 299_000, writes: [] },
	{ agoMs: 301_000, writes: ['swap'] },
	{ agoMs: -299_000, writes: [] }, // the other process's clock is fast
	{ agoMs: -301_000, writes: ['swap'] },
	{ agoMs: 35_000, ttlMs: HOUR, writes: [] },
	{ agoMs: 37_000, ttlMs: HOUR, writes: ['swap'] },
	{ agoMs: 299_000, ttlMs: 0, writes: [] },
	{ agoMs: 301_000, ttlMs: 0, writes: ['swap'] },
	{ agoMs: 1_000, nextTtlMs: 0, writes: ['swap'] },
	{ agoMs: 1_000, nextTtlMs: 99 * HOUR, writes: ['swap'] },
	{ agoMs: 1_000, workflowId: 'other', writes: ['swap'] },
	{ agoMs: 1_000, lastUsedAt: 'yesterday', writes: ['swap'] },
	{ agoMs: 1_000, lastUsedAt: null, writes: ['swap'] },
])('a use is written unless the row tells of one shortly before: %j', async ({ writes, ...use }) => {
	const ttlMs = use.ttlMs ?? 720 * HOUR;
	await remember('k', 's1', { ttlMs });
	table.edit((row) => ({
		...row,
		...(use.workflowId && { workflowId: use.workflowId }),
		...('lastUsedAt' in use && { lastUsedAt: use.lastUsedAt }),
		...(use.agoMs < 0 && {
			lastUsedAt: new Date(clock.wallNow() - use.agoMs).toISOString(),
			expiresAtMs: clock.wallNow() - use.agoMs + ttlMs,
		}),
	}));
	await clock.advance(Math.max(use.agoMs, 0));
	const store = await loaded(['k'], { ttlMs: use.nextTtlMs ?? ttlMs, executionId: 'e2' });
	table.calls.length = 0;
	store.used('k', store.find('k'));
	await clock.run(store.flush());
	expect(table.calls).toEqual(writes);
});

test('uses the first row if a key has several', async () => {
	await remember('k', 's1');
	table.put({ ...table.all()[0], id: 9, sessionId: 's2' });
	expect(await found('k')).toBe('s1');
});

test('marks a held key in the table, and a refused turn leaves its row unchanged', async () => {
	await remember('k', 's1');
	const before = table.all();
	const store = open();
	await clock.run(store.obtain('k', PATIENT, STRICT));
	expect(table.all()).toMatchObject([
		{ sessionId: 's1' },
		{ sessionId: '', holder: expect.stringMatching(/^[\w-]{36}\.\d+$/) },
	]);
	await clock.run(store.release('k'));
	expect(table.all()).toEqual(before);
	await clock.run(store.obtain('new', PATIENT, STRICT));
	expect(table.all()).toHaveLength(2);
	await clock.run(store.release('new'));
	expect(table.all()).toEqual(before);
	await clock.run(store.flush());
	expect(clock.sleepers).toBe(0);
});

test('does not remove a held row, even if its session has expired', async () => {
	await remember('old', 's1', { ttlMs: HOUR });
	await clock.advance(HOUR + 1);
	const store = await loaded(['old']);
	expect(await clock.run(store.obtain('old', PATIENT))).toEqual({ ok: true, value: '' });
	await remember('new', 's2');
	expect(table.all()).toHaveLength(3);
	store.opened('old', 's3');
	await clock.run(store.flush());
	expect(await found('old')).toBe('s3');
});

test('a holder whose row is deleted learns it and writes none', async () => {
	const store = await loaded(['k']);
	await clock.run(store.obtain('k', PATIENT));
	table.edit(() => undefined);
	store.opened('k', 's1');
	await clock.run(store.settle());
	expect(store.isLost('k')).toBe(true);
	expect([store.find('k'), table.all()]).toEqual(['', []]);
	await clock.run(store.flush());
});

test('the next turn of the run first releases a key that could not be released', async () => {
	const store = open();
	await clock.run(store.obtain('k', PATIENT, STRICT));
	store.opened('k', 's1');
	store.used('k', store.find('k'));
	let fails = 3;
	table.mishap = (call) => (call === 'swap' && fails-- > 0 ? 'before' : 'none');
	await clock.run(store.release('k'));
	expect(await clock.run(store.obtain('k', PATIENT, STRICT))).toEqual({ ok: true, value: 's1' });
	expect(clock.elapsedMs).toBeLessThan(3_000);
	store.used('k', store.find('k'));
	await clock.run(store.release('k'));
	await clock.run(store.flush());
	expect(table.all()).toMatchObject([{ sessionId: 's1' }]);
});

test('in strict order, a session that was written during a turn stays if the turn then fails', async () => {
	const store = open();
	await clock.run(store.obtain('k', PATIENT, STRICT));
	store.opened('k', 's1');
	await clock.advance(1_000);
	await clock.run(store.release('k'));
	expect(table.all()).toMatchObject([{ sessionId: 's1' }]);
	await clock.run(store.flush());
});

test('one run renews a session, even if the run that opened it had not written it yet', async () => {
	const [one, other] = [open(), open({ executionId: 'e2' })];
	await clock.run(one.obtain('k', PATIENT));
	one.opened('k', 's1');
	one.used('k', 's1');
	await clock.run(one.release('k'));
	expect(await clock.run(one.obtain('k', PATIENT, { voidId: 's1' }))).toEqual({ ok: true, value: '' });
	const others = other.obtain('k', PATIENT, { voidId: 's1' });
	await clock.advance(5_000);
	one.opened('k', 's2');
	expect(await clock.run(others)).toEqual({ ok: true, value: 's2' });
	await clock.run(Promise.all([one.flush(), other.flush()]));
});

test('a use keeps the session that another execution wrote meanwhile', async () => {
	await remember('k', 's1');
	const store = await loaded(['k']);
	await remember('k', 's2', { executionId: 'e2' });
	store.used('k', store.find('k'));
	await clock.run(store.flush());
	expect(table.all()).toMatchObject([{ sessionId: 's2', lastExecutionId: 'e2' }]);
});

test('records the time of the last use', async () => {
	await remember('k', 's1');
	await clock.advance(HOUR);
	await remember('k', 's1', { executionId: 'e2' });
	const { lastUsedAt, ...row } = table.all()[0]!;
	expect(row).toMatchObject({ lastExecutionId: 'e2' });
	expect(Math.abs(Date.parse(String(lastUsedAt)) - clock.now())).toBeLessThan(1_000);
});

test('writes nothing if the same session is opened again', async () => {
	await remember('k', 's1');
	table.calls.length = 0;
	const store = await loaded(['k']);
	store.opened('k', 's1');
	await clock.run(store.flush());
	expect(table.calls).toEqual(['read']);
});

test('writes sessions that are opened shortly after each other at once', async () => {
	const store = await loaded(['k', 'l']);
	store.opened('k', 's1');
	await clock.advance(300);
	store.opened('l', 's2');
	await clock.advance(600);
	expect(table.calls).toEqual(['read', 'insertThenRead']);
	expect(table.all()).toHaveLength(2);
	await clock.run(store.flush());
});

test('writes one row for a session that is opened and renewed at once', async () => {
	const store = await loaded(['k']);
	store.opened('k', 's1');
	store.opened('k', 's2');
	await clock.run(store.flush());
	expect(table.all()).toMatchObject([{ sessionId: 's2' }]);
});

test('an unused mapping expires, and a used one is kept', async () => {
	await remember('k', 's1', { ttlMs: HOUR });
	await clock.advance(HOUR - 1_000);
	const store = await loaded(['k'], { ttlMs: HOUR });
	store.used('k', store.find('k'));
	await clock.run(store.flush());
	await clock.advance(HOUR - 1_000);
	expect(await found('k', { ttlMs: HOUR })).toBe('s1');
	await clock.advance(1_001);
	expect(await found('k', { ttlMs: HOUR })).toBe('');
});

test('never confuses keys that begin alike, look alike or contain unusual characters', async () => {
	const long = 'x'.repeat(200);
	const keys = [
		`${long}a`,
		`${long}b`,
		long,
		'={{ 1+1 }}',
		'2',
		`'"`,
		'🦊',
		'\uD83E',
		'\0',
		'\uFFFD',
		'a b',
		'a\nb',
		'__proto__',
	];
	const store = await loaded(keys);
	keys.forEach((key, i) => store.opened(key, `s${i}`));
	await clock.run(store.flush());
	const again = await loaded(keys);
	expect(keys.map((key) => again.find(key))).toEqual(keys.map((_, i) => `s${i}`));
	for (const { sessionKey } of table.all()) {
		expect(String(sessionKey).length).toBeLessThanOrEqual(200);
		expect(sessionKey).not.toContain('\0');
		expect(String(sessionKey).isWellFormed() || sessionKey === '\uFFFD').toBe(true);
	}
});

test('keys belong to an agent, and the two parts cannot be confused', async () => {
	await remember('b c', 's1', { agent: 'a' });
	expect(await found('b c', { agent: 'other' })).toBe('');
	expect(await found('c', { agent: 'a b' })).toBe('');
});

test('respects manual changes of the table: another session, none, or no row', async () => {
	for (const key of ['other', 'emptied', 'deleted']) await remember(key, `s ${key}`);
	table.edit((row) => {
		if (row.sessionKey === 'other') return { ...row, sessionId: ' mine ' };
		if (row.sessionKey === 'emptied') return { ...row, sessionId: null };
		return undefined;
	});
	expect(await found('other')).toBe('mine');
	expect(await found('emptied')).toBe('');
	expect(await found('deleted')).toBe('');
});

test('forgetting removes every row of a key and no others', async () => {
	await remember('k', 's1');
	await remember('stays', 's2');
	expect((await clock.run(open().forget(['k', 'never']))).ok).toBe(true);
	expect(table.all()).toMatchObject([{ sessionKey: 'stays' }]);
});

test.each(['read', 'insertThenRead', 'swap'])(
	'reports a table that fails at %s without throwing',
	async (call) => {
		await remember('known', 's0');
		await clock.advance(HOUR);
		table.mishap = (name) => (name === call ? 'before' : 'none');
		const store = open();
		const read = await clock.run(store.load(['known', 'k']));
		store.opened('k', 's1');
		store.used('known', store.find('known'));
		const written = await clock.run(store.flush());
		expect(read.ok && written.ok).toBe(false);
		expect(store.find('k')).toBe('s1');
	},
);

test('names the modes that need no table if it cannot be used', () => {
	expect(explainTable(fail(badInput('No table', 'Update n8n.')))).toMatchObject({
		failure: {
			advice: expect.stringMatching(/^Nothing was sent\. Update n8n\..*'By ID' or 'New Each Time'/),
		},
	});
});
