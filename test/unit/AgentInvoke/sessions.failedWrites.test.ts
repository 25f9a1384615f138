import { SILENT_MS } from '../../../nodes/shared/dataTable/heartbeat';
import { SessionStore } from '../../../nodes/AgentInvoke/sessions';
import { startWaiting, type Waiting } from '../../../nodes/AgentInvoke/waiting';
import { MemoryTable } from '../shared/memoryTable';
import { TestClock } from '../testClock';

/* What becomes of sessions where writes fail, are done in spite of a failure, or come too late. */

let clock: TestClock;
let table: MemoryTable;
beforeEach(() => {
	clock = new TestClock();
	table = new MemoryTable(clock);
});

function store(executionId: string): SessionStore {
	const settings = { agent: 'a', workflowId: 'w', executionId, ttlMs: 0 };
	return new SessionStore(settings, table.open(), clock, { random: () => 0.5, isSweepDue: () => false });
}

function waiting(timeoutMs = 600_000): Waiting {
	const { signal } = new AbortController();
	return startWaiting({ clock, timeoutMs, signal, ending: signal, pause: () => undefined });
}

test('a run whose last writes fail stops all the same, and its key is free for others later', async () => {
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
