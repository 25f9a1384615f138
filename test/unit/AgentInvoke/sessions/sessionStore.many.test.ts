import { WaitLimit } from '../../../../nodes/AgentInvoke/turns/waitLimit';
import type { DataTable, TableRow } from '../../../../nodes/shared/dataTable/table';
import { ok, type Result } from '../../../../nodes/shared/errors/failure';
import { MemoryTable } from '../../shared/memoryTable';
import { TestClock } from '../../testClock';
import { openStore } from './worker.scene';

/* Many keys at once: n8n runs all its executions in one thread. */

const MANY = 300;

test('each key checks only its own of the rows that are read together', async () => {
	const clock = new TestClock();
	const table = new MemoryTable(clock).open();
	let looks = 0;
	const watched = (read: Result<readonly TableRow[]>): Result<readonly TableRow[]> => {
		if (!read.ok) return read;
		const withLooks = ({ entryKey = null, ...others }: TableRow): TableRow => ({
			...others,
			get entryKey() {
				looks++;
				return entryKey;
			},
		});
		return ok(read.value.map(withLooks));
	};
	const counting: DataTable = {
		...table,
		insertThenRead: async (rows) => watched(await table.insertThenRead(rows)),
		swap: async (swaps) => watched(await table.swap(swaps)),
	};
	const settings = { agent: 'a', workflowId: 'w', executionId: 'e', ttlMs: 0 };
	const sessions = openStore(settings, counting, clock);
	const keys = Array.from({ length: MANY }, (_, index) => `k${index}`);
	const { signal } = new AbortController();
	const waiting = new WaitLimit(clock, 60_000, signal, signal, () => undefined);
	await clock.run(Promise.all(keys.map(async (key) => await sessions.obtain(key, waiting))));
	for (const key of keys) sessions.opened(key, `s ${key}`);
	expect(await clock.run(sessions.flush())).toEqual(ok(undefined));
	expect(looks).toBeLessThan(10 * MANY);
});
