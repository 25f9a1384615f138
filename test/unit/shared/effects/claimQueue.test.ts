import { KeyedQueue } from '../../../../nodes/shared/time/keyedQueue';
import {
	TableLedger,
	type ClaimQueue,
	type Ledger,
	type LedgerAnswer,
} from '../../../../nodes/shared/effects/ledger';
import type { Result } from '../../../../nodes/shared/errors/failure';
import { Liveness } from '../../../../nodes/shared/dataTable/claims';
import { TestClock } from '../../testClock';
import { MemoryTable } from '../memoryTable';

const ENTRY = { key: 'order 1', payloadHash: 'p' };

let clock: TestClock;
let table: MemoryTable;
let queue: ClaimQueue;
beforeEach(() => {
	clock = new TestClock();
	table = new MemoryTable(clock);
	queue = new KeyedQueue();
});

function open(signal = new AbortController().signal, workflowId = 'w1', timeoutMs = 3_600_000): Ledger {
	const deadlineMs = clock.now() + timeoutMs;
	const settings = {
		scope: 's',
		workflowId,
		executionId: '7',
		ttlMs: 0,
		sendAgain: false,
		deadlineMs,
	} as const;
	return new TableLedger(settings, {
		table: table.open(),
		clock,
		random: () => 0.5,
		signal,
		queue,
		liveness: new Liveness(),
	});
}

const kindOf = (answer: Result<LedgerAnswer>): string =>
	answer.ok ? answer.value.kind : answer.failure.kind;

async function mine(ledger: Ledger) {
	const answer = await clock.run(ledger.claim(ENTRY));
	if (!answer.ok || answer.value.kind !== 'mine') throw new Error(`The key is "${kindOf(answer)}"`);
	return answer.value.held;
}

it('executions in the queue of a key learn its task from the one ahead, without reading the table', async () => {
	const claim = await mine(open());
	const calls = table.calls.length;
	const others = [1, 2, 3].map(async () => await open().claim(ENTRY));
	await clock.advance(5_000);
	expect(table.calls).toHaveLength(calls);
	claim.sent('t1');
	for (const answer of await clock.run(Promise.all(others))) {
		expect(answer).toMatchObject({ ok: true, value: { kind: 'exists', reference: 't1', finished: false } });
	}
	expect(queue.size).toBe(0);
});

it('a stopped or timed-out execution leaves the queue, and those behind it stay', async () => {
	const claim = await mine(open());
	const stop = new AbortController();
	const stopped = open(stop.signal).claim(ENTRY);
	const late = open(undefined, 'w1', 2_000).claim(ENTRY);
	const last = open().claim(ENTRY);
	await clock.advance(500);
	stop.abort();
	await clock.advance(3_000);
	expect([await stopped, await late].map(kindOf)).toEqual(['cancelled', 'notSubmitted']);
	claim.sent('t1');
	expect(kindOf(await clock.run(last))).toBe('exists');
	expect(queue.size).toBe(0);
});

it('executions claim the key one after another if nothing was sent', async () => {
	const first = open();
	const claim = await mine(first);
	const [second, third] = [1, 2].map(async () => await open().claim(ENTRY));
	claim.refused();
	await clock.run(first.flush());
	const next = await clock.run(second!);
	expect(kindOf(next)).toBe('mine');
	if (next.ok && next.value.kind === 'mine') next.value.held.sent('t2');
	expect(kindOf(await clock.run(third!))).toBe('exists');
});

it('an execution asks the table about a run that ended without reporting', async () => {
	const first = open();
	await mine(first);
	const second = open().claim(ENTRY);
	await clock.run(first.flush());
	expect(kindOf(await clock.run(second))).toBe('unknown');
	expect(queue.size).toBe(0);
});

it('an execution does not share a queue with other workflows, whose key may be that of another project', async () => {
	await mine(open());
	const calls = table.calls.length;
	void open(undefined, 'w2').claim(ENTRY);
	await clock.advance(1_000);
	expect(table.calls.length).toBeGreaterThan(calls);
});
