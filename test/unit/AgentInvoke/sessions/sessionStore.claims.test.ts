import type { SessionStore } from '../../../../nodes/AgentInvoke/sessions/sessionStore';
import { WaitLimit } from '../../../../nodes/AgentInvoke/turns/waitLimit';
import { DEAD_MS } from '../../../../nodes/shared/dataTable/claims';
import type { DataTable } from '../../../../nodes/shared/dataTable/table';
import { MemoryTable } from '../../shared/memoryTable';
import { TestClock } from '../../testClock';
import { openStore } from './worker.scene';

/* Claims of a key whose write takes very long or has an unknown outcome. */

const STRICT = { sinceMs: 0 };
const NOTHING_SENT = {
	ok: false,
	failure: { advice: expect.stringContaining('Nothing was sent') as string },
};
let clock: TestClock;
let table: MemoryTable;
beforeEach(() => {
	clock = new TestClock();
	table = new MemoryTable(clock);
});

function store(executionId: string, ownTable: DataTable = table.open()): SessionStore {
	return openStore({ executionId }, ownTable, clock, { random: () => 0.5 });
}

function waiting(): WaitLimit {
	const { signal } = new AbortController();
	return new WaitLimit(clock, 600_000, signal, signal, () => undefined);
}

test("a claim that is answered after another execution has replaced it continues that execution's session", async () => {
	const open = table.open();
	const slowTable: DataTable = {
		...open,
		insertThenRead: async (...claim) => {
			const shown = await open.insertThenRead(...claim);
			await clock.sleep(DEAD_MS + 20_000);
			return shown;
		},
		replace: async (...signs) => {
			await clock.sleep(2 * DEAD_MS);
			return await open.replace(...signs);
		},
	};
	const slow = store('slow', slowTable);
	const claimed = slow.obtain('k', waiting());
	await clock.advance(1_000);
	const other = store('other');
	const obtained = other.obtain('k', waiting());
	await clock.advance(DEAD_MS + 10_000);
	expect(await obtained).toEqual({ ok: true, value: '' });
	other.opened('k', 's1');
	other.used('k', other.find('k'));
	await clock.advance(1_000);
	await clock.run(other.flush());
	expect(await clock.run(claimed)).toEqual({ ok: true, value: 's1' });
});

test('a claim that was added despite a failure is made again, and does not stay', async () => {
	table.mishap = (call) =>
		table.calls.filter((one) => one === call).length === 1 && call === 'insertThenRead' ? 'after' : 'none';
	const one = store('one');
	expect(await clock.run(one.obtain('k', waiting()))).toEqual({ ok: true, value: '' });
	expect(table.all()).toHaveLength(1);
});

test.each(['a message that waited for another one', 'a session that the platform no longer knows'])(
	'%s opens no session if the key cannot be read',
	async (reason) => {
		const one = store('one');
		await clock.run(one.obtain('k', waiting()));
		one.opened('k', 's1');
		one.used('k', one.find('k'));
		await clock.run(one.release('k', true));
		table.mishap = (call) => (call === 'read' ? 'before' : 'none');
		const again = reason.startsWith('a message') ? { isOld: true } : { voidId: 's1' };
		expect(await clock.run(one.obtain('k', waiting(), again))).toMatchObject(NOTHING_SENT);
	},
);

test('strict: no session is opened if the table accepts no row for the key', async () => {
	table.mishap = (call) => (call === 'insertThenRead' ? 'before' : 'none');
	expect(await clock.run(store('one').obtain('k', waiting(), STRICT))).toMatchObject(NOTHING_SENT);
});

test('no session is opened if it is unknown whether the key is still held', async () => {
	const one = store('one');
	await clock.run(one.obtain('k', waiting()));
	one.opened('k', 's1');
	one.used('k', one.find('k'));
	table.mishap = (call) => (call.startsWith('swap') || call === 'read' ? 'before' : 'none');
	await clock.run(one.release('k', true));
	expect(await clock.run(one.obtain('k', waiting(), { voidId: 's1' }))).toMatchObject(NOTHING_SENT);
});
