import {
	TableLedger,
	type Ledger,
	type LedgerAnswer,
	type LedgerSettings,
} from '../../../../nodes/shared/effects/ledger';
import type { HeldKey } from '../../../../nodes/shared/effects/heldKey';
import type { DataTable } from '../../../../nodes/shared/dataTable/table';
import { DEAD_MS, Liveness } from '../../../../nodes/shared/dataTable/claims';
import { LEDGER_TABLE } from '../../../../nodes/shared/effects/ledgerRows';
import { TestClock } from '../../testClock';
import { guardedTable } from '../guardedTable';
import { MemoryTable } from '../memoryTable';
import { valueOf } from '../../results';

const HOUR_MS = 3_600_000;
const ENTRY = { key: 'order 1', payloadHash: 'p' };

let clock: TestClock;
let table: MemoryTable;
let ending: AbortController;
let liveness: Liveness;

beforeEach(() => {
	clock = new TestClock();
	table = new MemoryTable(clock);
	ending = new AbortController();
	liveness = new Liveness();
});

/** The ledger of one run of a node. */
function open(over: Partial<LedgerSettings> = {}, dataTable: DataTable = table.open()): Ledger {
	const settings = {
		scope: 'task',
		workflowId: 'w1',
		executionId: '7',
		ttlMs: HOUR_MS,
		sendAgain: false,
		deadlineMs: clock.now() + HOUR_MS,
		...over,
	} as const;
	return new TableLedger(settings, {
		table: dataTable,
		clock,
		random: () => 0.5,
		signal: ending.signal,
		liveness,
	});
}

/** A ledger without a lifetime whose first claim is answered only after `delay`. */
function openDelayed(delay: () => unknown): Ledger {
	const inner = table.open();
	let claims = 0;
	const insertThenRead: DataTable['insertThenRead'] = async (rows) => {
		const shown = await inner.insertThenRead(rows);
		if (claims++ === 0) await delay();
		return shown;
	};
	return open({ ttlMs: 0 }, { ...inner, insertThenRead });
}

async function claim(ledger: Ledger, entry = ENTRY): Promise<LedgerAnswer> {
	return valueOf(await clock.run(ledger.claim(entry)));
}

async function mine(ledger: Ledger, entry = ENTRY): Promise<HeldKey> {
	const answer = await claim(ledger, entry);
	if (answer.kind !== 'mine') throw new Error(`The key is not free but "${answer.kind}"`);
	return answer.held;
}

/** A run that has claimed the key, and dies. */
async function died(over: Partial<LedgerSettings> = {}): Promise<void> {
	let isDead = false;
	const mortal = guardedTable(table.open(), async (call) => {
		return isDead ? await new Promise<never>(() => undefined) : await call();
	});
	await mine(open(over, mortal));
	isDead = true;
}

async function flush(ledger: Ledger): Promise<void> {
	expect(await clock.run(ledger.flush())).toEqual({ ok: true, value: undefined });
	expect(clock.sleepers).toBe(0);
}

/** The ledger of a run that has claimed the key, and whose request was answered with the ID "t1" or not at all. */
async function claimed(outcome: 'sent' | 'unclear', over: Partial<LedgerSettings> = {}): Promise<Ledger> {
	const ledger = open(over);
	const held = await mine(ledger);
	if (outcome === 'sent') held.sent('t1');
	else held.unclear();
	await flush(ledger);
	return ledger;
}

const column = (name: string): unknown[] => table.all().map((row) => row[name]);

it('a flush waits for a claim that also writes queued rows, and writes them itself if the claim fails', async () => {
	table = new MemoryTable(clock, () => 1);
	const ledger = open();
	const first = await mine(ledger);
	let failures = 1;
	table.mishap = (call) => (call.startsWith('insert') && failures-- > 0 ? 'before' : 'none');
	first.sent('t1');
	const second = ledger.claim({ ...ENTRY, key: 'order 2' });
	const hasBegun = () => table.calls.filter((call) => call.startsWith('insert')).length === 2;
	const ending = (async () => {
		while (!hasBegun()) await clock.sleep(1);
		return await ledger.flush();
	})();
	expect(await clock.run(ending)).toEqual({ ok: true, value: undefined });
	expect(column('reference')).toContain('t1');
	await clock.run(second);
});

describe('a key', () => {
	it('is claimed once, and all later claims find its task', async () => {
		await claimed('sent');
		const second = open({ executionId: '8' });
		expect(await claim(second)).toMatchObject({
			...{ kind: 'exists', reference: 't1', finished: false },
			by: { executionId: '7' },
		});
		await flush(second);
		expect(column('state')).toEqual(['sent']);
	});

	it('makes others wait while it is being submitted', async () => {
		const ledger = open();
		const held = await mine(ledger);
		const waiting = open().claim(ENTRY);
		await clock.advance(30_000);
		held.sent('t1');
		await clock.advance(3_000);
		expect(valueOf(await waiting)).toMatchObject({ kind: 'exists', reference: 't1' });
	});

	it('goes to the next one waiting when it is released', async () => {
		const ledger = open();
		const held = await mine(ledger);
		const waiting = open().claim(ENTRY);
		await clock.advance(5_000);
		held.refused();
		expect(valueOf(await clock.run(waiting)).kind).toBe('mine');
		expect(column('state')).toEqual(['claimed']);
	});

	it('is free once its task has failed, whoever reports it', async () => {
		const ledger = open();
		const held = await mine(ledger);
		held.sent('t1');
		held.ended('failed');
		await flush(ledger);
		const second = open();
		(await mine(second)).sent('t2');
		await flush(second);

		const third = open();
		const answer = await claim(third);
		expect(answer).toMatchObject({ kind: 'exists', reference: 't2' });
		if (answer.kind === 'exists') answer.ended('failed');
		await flush(third);
		expect((await claim(open())).kind).toBe('mine');
	});

	it('is free at once for the run that saw a reused task fail', async () => {
		await claimed('sent');
		const second = open({ executionId: '8' });
		const answer = await claim(second);
		if (answer.kind === 'exists') answer.ended('failed');
		expect((await claim(second)).kind).toBe('mine');
	});

	it.each(['failed', 'was refused'])(
		'whose task %s is free at once for the next item of the run',
		async (end) => {
			const ledger = open();
			const held = await mine(ledger);
			const sinceMs = clock.elapsedMs;
			if (end === 'was refused') held.refused();
			else held.ended('failed');
			expect((await claim(ledger)).kind).toBe('mine');
			// Two statements of 30 ms and the write of the first claim's outcome.
			expect(clock.elapsedMs - sinceMs).toBeLessThan(100);
		},
	);

	it('keeps a task that succeeded, and says that it is finished', async () => {
		const ledger = open();
		const held = await mine(ledger);
		held.sent('t1');
		held.ended('succeeded');
		held.ended('failed');
		await flush(ledger);
		const answer = await claim(open());
		expect(answer).toMatchObject({ kind: 'exists', reference: 't1', finished: true });
		if (answer.kind === 'exists') answer.ended('failed');
		expect(column('state')).toEqual(['succeeded']);
	});

	it('is a conflict if the payload differs', async () => {
		await claimed('sent');
		expect(await claim(open(), { ...ENTRY, payloadHash: 'q' })).toMatchObject({ kind: 'conflict' });
	});

	it('is hashed as a whole, however long it is', async () => {
		const long = 'x'.repeat(100_000);
		const ledger = open();
		(await mine(ledger, { ...ENTRY, key: `${long}1` })).sent('t1');
		(await mine(ledger, { ...ENTRY, key: `${long}2` })).sent('t2');
		await flush(ledger);
		expect(new Set(column('entryKey')).size).toBe(2);
		expect(column('keyText')[0]).toHaveLength(200);
	});

	it.each(['={{ 1+1 }}', '{{ $json }}', '"\'`', 'a\r\nb', '😀', ' ', '__proto__', 'nul\0'])(
		'may be %j',
		async (key) => {
			const ledger = open();
			(await mine(ledger, { ...ENTRY, key })).sent('t1');
			await flush(ledger);
			expect(column('keyText')[0]).toBe(key.replace('\0', '\uFFFD'));
			expect(await claim(open(), { ...ENTRY, key })).toMatchObject({ kind: 'exists' });
		},
	);

	it('is never cut within a character', async () => {
		await mine(open(), { ...ENTRY, key: `${'x'.repeat(199)}😀` });
		expect(column('keyText')[0]).toBe('x'.repeat(199));
	});
});

describe('an unknown outcome', () => {
	it('is reported at once if a submit had no answer', async () => {
		await claimed('unclear');
		const askedMs = clock.now();
		expect(await claim(open())).toMatchObject({ kind: 'unknown', by: { executionId: '7' } });
		expect(clock.now() - askedMs).toBeLessThan(1_000);
	});

	it('is reported once a dead run has been silent for a minute and a half', async () => {
		await died();
		const claimedMs = clock.now();
		expect((await claim(open())).kind).toBe('unknown');
		expect(clock.now() - claimedMs).toBeGreaterThanOrEqual(DEAD_MS);
		expect(clock.now() - claimedMs).toBeLessThan(DEAD_MS + 5_000);
	});

	it('is reported to runs that cannot wait so long, once their process has watched for that time', async () => {
		await died();
		const kinds: string[] = [];
		for (let run = 0; run < 5; run++) {
			const answer = await clock.run(open({ deadlineMs: clock.now() + 30_000 }).claim(ENTRY));
			kinds.push(answer.ok ? answer.value.kind : answer.failure.kind);
			await clock.advance(60_000);
		}
		// The pause between two executions counts as half a minute.
		expect(kinds).toEqual(['notSubmitted', 'unknown', 'unknown', 'unknown', 'unknown']);
	});

	it('is not reported while the holder lives, however long its request takes', async () => {
		const ledger = open();
		const held = await mine(ledger);
		const waiting = open().claim(ENTRY);
		await clock.advance(10 * 60_000);
		expect(column('state')).toEqual(['claimed']);
		held.sent('t1');
		expect(valueOf(await clock.run(waiting))).toMatchObject({ kind: 'exists' });
		await flush(ledger);
	});

	it('is a conflict with another payload, even if the operator wants to submit again', async () => {
		await claimed('unclear');
		const answer = await claim(open({ sendAgain: true }), { ...ENTRY, payloadHash: 'q' });
		expect(answer.kind).toBe('conflict');
	});
});

describe('adjusted wall clocks', () => {
	const again = (): Ledger => open({ sendAgain: true, executionId: '8' });

	it.each([1, -1])('do not free a held claim: %d h', async (hours) => {
		const held = await mine(open({ ttlMs: 1 }));
		clock.wallAheadMs = hours * HOUR_MS;
		const waiting = again().claim(ENTRY);
		await clock.advance(120_000);
		held.sent('t1');
		const answer = valueOf(await clock.run(waiting));
		expect(answer).toMatchObject({ kind: 'exists', reference: 't1' });
	});

	it('let the claim of a dead run be taken only after the longest silence that a held claim can have', async () => {
		await died();
		await clock.advance(HOUR_MS);
		const askedMs = clock.now();
		await mine(again());
		expect(clock.now() - askedMs).toBeGreaterThanOrEqual(DEAD_MS);
		expect(clock.now() - askedMs).toBeLessThan(DEAD_MS + 10_000);
	});

	it('delay nothing if the claim is older than clocks can differ', async () => {
		await died({ ttlMs: 0 });
		await clock.advance(2 * HOUR_MS);
		const askedMs = clock.now();
		await mine(again());
		expect(clock.now() - askedMs).toBeLessThan(1_000);
	});

	it('never let a claim be used that was obtained while the machine slept', async () => {
		// Only the wall clock moves.
		await mine(openDelayed(() => (clock.wallAheadMs += HOUR_MS)));
		expect(column('atMs')).toEqual([expect.any(Number)]);
		expect(clock.wallNow() - Number(column('atMs')[0])).toBeLessThan(5_000);
	});
});

describe('the same key twice in a run', () => {
	it('makes one task', async () => {
		const ledger = open();
		const second = ledger.claim(ENTRY);
		const third = ledger.claim({ ...ENTRY, payloadHash: 'q' });
		const answers: string[] = [];
		for (const asked of [second, third]) {
			void asked.then((answer) => answers.push(answer.ok ? answer.value.kind : 'failure'));
		}
		await clock.advance(1_000);
		expect(answers).toEqual(['mine']);
		const first = valueOf(await second);
		if (first.kind === 'mine') first.held.sent('t1');
		await clock.advance(0);
		expect(answers).toEqual(['mine', 'conflict']);
		expect(await claim(ledger)).toMatchObject({ kind: 'exists', reference: 't1', by: { executionId: '7' } });
	});

	it('goes to the next item if the first is released or fails', async () => {
		for (const nothing of ['released', 'failed'] as const) {
			const ledger = open({ scope: nothing });
			const first = await mine(ledger);
			const second = ledger.claim(ENTRY);
			await clock.advance(500);
			if (nothing === 'released') first.refused();
			else first.ended('failed');
			expect(valueOf(await clock.run(second)).kind).toBe('mine');
		}
	});

	it('has an unknown outcome for the next item if the first had no answer', async () => {
		const ledger = open();
		(await mine(ledger)).unclear();
		expect((await claim(ledger)).kind).toBe('unknown');
	});
});

describe('a table that does not show a new row at once', () => {
	it('does not show that of another run either: nothing is claimed until it does', async () => {
		const shownMs = clock.now() + 10_000;
		table.hides = (ageMs) => clock.now() < shownMs && ageMs < 5_000;
		const ledgers = [open(), open({ executionId: '8' })];
		const kinds: string[] = [];
		const asked = ledgers.map(async (ledger) => {
			const answer = valueOf(await ledger.claim(ENTRY));
			kinds.push(answer.kind);
			if (answer.kind === 'mine') answer.held.sent('t1');
			await ledger.flush();
		});
		await clock.advance(9_000);
		expect(kinds).toEqual([]);
		await clock.run(Promise.all(asked));
		expect(kinds.toSorted()).toEqual(['exists', 'mine']);
	});
});

describe('the lifetime of entries', () => {
	it.each([1, 60_000])(
		'is at least ten minutes, so that %d ms do not free a key that is in use',
		async (ttlMs) => {
			const first = open({ ttlMs });
			const held = await mine(first);
			const waiting = open({ ttlMs }).claim(ENTRY);
			await clock.advance(150_000);
			held.sent('t1');
			expect(valueOf(await clock.run(waiting))).toMatchObject({ kind: 'exists' });
			const submittedMs = clock.now();
			await flush(first);
			await clock.advance(submittedMs + 9 * 60_000 - clock.now());
			expect(await claim(open({ ttlMs }))).toMatchObject({ kind: 'exists' });
			await clock.advance(2 * 60_000);
			expect((await claim(open({ ttlMs }))).kind).toBe('mine');
		},
	);

	it('never ends if it is 0', async () => {
		await claimed('sent', { ttlMs: 0 });
		await clock.advance(50 * 365 * 24 * HOUR_MS);
		expect(await claim(open())).toMatchObject({ kind: 'exists' });
	});
});

describe('sub-executions', () => {
	it('are one per step, however many keys are claimed together', async () => {
		const ledger = open();
		const claims = await clock.run(
			Promise.all(
				Array.from({ length: 500 }, async (_, index) => await ledger.claim({ ...ENTRY, key: `k${index}` })),
			),
		);
		expect(table.calls).toEqual(['read', 'insertThenRead']);
		for (const [index, answer] of claims.entries()) {
			const value = valueOf(answer);
			if (value.kind === 'mine') value.held.sent(`t${index}`);
		}
		await flush(ledger);
		expect(table.calls.slice(2)).toEqual(['replace']);
		expect(table.all()).toHaveLength(500);
	});

	it('write a result within a fifth of a second', async () => {
		const held = await mine(open());
		held.sent('t1');
		await clock.advance(200);
		expect(column('reference')).toEqual(['t1']);
	});
});

describe('permits for claims', () => {
	const keys = (count: number): string[] => Array.from({ length: count }, (_, index) => `k${index}`);

	it('are as many as configured, and free once the outcome of a claim is known', async () => {
		const ledger = open({ claimsAtOnce: 4 });
		const held: HeldKey[] = [];
		for (const key of keys(9)) {
			void ledger.claim({ ...ENTRY, key }).then((answer) => {
				if (answer.ok && answer.value.kind === 'mine') held.push(answer.value.held);
			});
		}
		await clock.advance(5_000);
		expect(held).toHaveLength(4);
		const [a, b, c, d] = held;
		a?.sent('t1');
		b?.unclear();
		await clock.advance(500);
		expect(held).toHaveLength(6);
		c?.refused();
		await clock.advance(500);
		expect(held).toHaveLength(7);
		d?.ended('failed');
		held[4]?.sent('t2');
		await clock.advance(500);
		expect(held).toHaveLength(9);
		for (const claim of held) claim.sent('t');
		await flush(ledger);
	});

	it('are not needed for keys that have a task, nor for those that another run holds', async () => {
		const other = await claimed('sent');
		const ledger = open({ claimsAtOnce: 1 });
		await mine(ledger, { ...ENTRY, key: 'mine' });
		expect(await claim(ledger)).toMatchObject({ kind: 'exists' });
		await mine(other, { ...ENTRY, key: 'theirs' });
		const waiting = ledger.claim({ ...ENTRY, key: 'theirs' });
		await clock.advance(DEAD_MS + 5_000);
		void other.flush();
		expect(valueOf(await clock.run(waiting))).toMatchObject({ kind: 'unknown' });
	});

	it('are no longer waited for once the run ends or the item is no longer wanted', async () => {
		const ledger = open({ claimsAtOnce: 1 });
		const first = await mine(ledger, { ...ENTRY, key: 'first' });
		const stop = { kind: 'notSubmitted', message: 'Enough', advice: '' } as const;
		let isEnough = false;
		const whyStop = () => (isEnough ? stop : undefined);
		const unwanted = ledger.claim({ ...ENTRY, key: 'unwanted', whyStop });
		await clock.advance(500);
		isEnough = true;
		first.refused();
		expect(await clock.run(unwanted)).toEqual({ ok: false, failure: stop });

		await mine(ledger, { ...ENTRY, key: 'second' });
		const late = keys(3).map(async (key) => await ledger.claim({ ...ENTRY, key }));
		await clock.advance(500);
		ending.abort();
		for (const asked of late) {
			expect(await clock.run(asked)).toMatchObject({ ok: false, failure: { kind: 'cancelled' } });
		}
		await flush(ledger);
		expect(column('keyText')).toEqual(['second']);
	});

	it('that come late are released if another run has submitted the task meanwhile', async () => {
		const ledger = open({ claimsAtOnce: 1 });
		const first = await mine(ledger, { ...ENTRY, key: 'first' });
		const waiting = ledger.claim(ENTRY);
		await clock.advance(2_000);
		const other = open({ executionId: '8' });
		(await mine(other)).sent('t1');
		await clock.run(other.flush());
		first.refused();
		expect(valueOf(await clock.run(waiting))).toMatchObject({ kind: 'exists', reference: 't1' });
		await flush(ledger);
		// The first key's claim row has been removed as well.
		expect(column('state')).toEqual(['sent']);
		expect(column('executionId')).toEqual(['8']);
	});
});

it('writes the outcomes of claims before, or with, the claims that follow', async () => {
	const ledger = open({ claimsAtOnce: 1 });
	const first = await mine(ledger, { ...ENTRY, key: 'first' });
	const waiting = ledger.claim({ ...ENTRY, key: 'second' });
	await clock.advance(500);
	first.sent('t1');
	await clock.run(waiting);
	expect(column('state')).toEqual(['claimed', 'sent', 'claimed']);
	expect(table.calls).toEqual(['read', 'insertThenRead', 'read', 'insertThenRead']);
	await flush(ledger);
	// What was replaced goes with the next write.
	expect(column('state')).toEqual(['sent', 'claimed']);
});

it('keeps the outcome of a claim if it could not be written with the claims that follow', async () => {
	const ledger = open({ claimsAtOnce: 1 });
	const first = await mine(ledger, { ...ENTRY, key: 'first' });
	const waiting = ledger.claim({ ...ENTRY, key: 'second' });
	await clock.advance(500);
	first.sent('t1');
	table.mishap = (name) => (name === 'insertThenRead' ? 'before' : 'none');
	expect(await clock.run(waiting)).toMatchObject({ ok: false });
	table.mishap = () => 'none';
	await clock.advance(3_000);
	expect(column('reference')).toEqual(['t1']);
});

describe('a table that fails', () => {
	it.each(['read', 'insertThenRead'])('fails the item if nothing was submitted yet (%s)', async (call) => {
		table.mishap = (name) => (name === call ? 'before' : 'none');
		const ledger = open();
		const failed = await clock.run(ledger.claim(ENTRY));
		expect(failed).toMatchObject({ ok: false, failure: { kind: 'badInput' } });
		if (!failed.ok) expect(failed.failure.advice).toMatch(/^Nothing was sent for this item\./);
		await flush(ledger);
		expect(table.all()).toEqual([]);
	});

	it('leaves no claim behind if the row was added in spite of the failure', async () => {
		table.mishap = (name) => (name === 'insertThenRead' ? 'after' : 'none');
		const ledger = open();
		expect(await clock.run(ledger.claim(ENTRY))).toMatchObject({ ok: false });
		await flush(ledger);
		expect(table.all()).toEqual([]);
	});

	it('for a while gets the pending rows a little later', async () => {
		const held = await mine(open());
		table.mishap = () => 'before';
		held.sent('t1');
		await clock.advance(3_000);
		table.mishap = () => 'none';
		await clock.advance(6_000);
		expect(column('state')).toEqual(['sent']);
	});

	it('until the end is reported by flush, which tries once more', async () => {
		const ledger = open();
		const held = await mine(ledger);
		table.mishap = () => 'before';
		held.sent('t1');
		await clock.advance(HOUR_MS);
		expect(await clock.run(ledger.flush())).toMatchObject({ ok: false });
		table.mishap = () => 'none';
		await flush(ledger);
		expect(column('state')).toEqual(['sent']);
	});

	it.each(['replace', 'remove'])('once at the end of the run loses nothing (%s)', async (call) => {
		const ledger = open();
		const held = await mine(ledger);
		let refusals = 0;
		table.mishap = (name) => (name === call && refusals++ === 0 ? 'before' : 'none');
		if (call === 'replace') held.sent('t1');
		else held.refused();
		await flush(ledger);
		expect(column('state')).toEqual(call === 'replace' ? ['sent'] : []);
	});

	it('when a claim is withdrawn is tried again', async () => {
		const other = open({ executionId: '8' });
		(await mine(other)).refused();
		const seen = table.all()[0];
		await flush(other);
		let refusals = 0;
		table.mishap = (name) => {
			// Another run claims the key at the same moment, and is first.
			if (name === 'insertThenRead' && refusals === 0) table.put({ ...seen, holder: 'another' });
			return name === 'remove' && ++refusals <= 3 ? 'before' : 'none';
		};
		const ledger = open({ deadlineMs: clock.now() + 60_000 });
		expect(await clock.run(ledger.claim(ENTRY))).toMatchObject({ ok: false });
		await flush(ledger);
		expect(refusals).toBe(4);
		expect(column('holder')).toEqual(['another']);
	});
});

describe('the end of a run', () => {
	it('does not miss a claim that is released while the last rows are written', async () => {
		table = new MemoryTable(clock, () => 1, 1_000);
		const ledger = open();
		const held = await mine(ledger);
		const flushed = ledger.flush();
		await clock.advance(20);
		held.refused();
		await clock.run(flushed);
		await clock.advance(10_000);
		expect(table.all()).toEqual([]);
	});

	it('ends all waiting without a claim', async () => {
		const other = open();
		await mine(other);
		const ledger = open();
		const waiting = ledger.claim(ENTRY);
		const twice = ledger.claim(ENTRY);
		await clock.advance(5_000);
		ending.abort();
		for (const asked of [waiting, twice]) {
			expect(await clock.run(asked)).toMatchObject({ ok: false, failure: { kind: 'cancelled' } });
		}
		await clock.run(other.flush());
		await flush(ledger);
		expect(table.all()).toHaveLength(1);
	});

	it('by a timeout names the key that was waited for', async () => {
		await mine(open());
		const failed = await clock.run(open({ deadlineMs: clock.now() + 20_000 }).claim(ENTRY));
		expect(failed).toMatchObject({ ok: false, failure: { kind: 'notSubmitted' } });
		if (!failed.ok) expect(failed.failure.message).toContain('"order 1"');
		expect(table.all()).toHaveLength(1);
	});

	it('does not keep pending rows from being written', async () => {
		const ledger = open();
		const held = await mine(ledger);
		ending.abort();
		held.sent('t1');
		await flush(ledger);
		expect(column('state')).toEqual(['sent']);
	});
});

describe('a claim', () => {
	it('may be used as long as it is renewed, and not once renewals fail', async () => {
		const held = await mine(open());
		for (let second = 0; second < 300; second++) {
			expect(held.maySend()).toBe(true);
			await clock.advance(1_000);
		}
		table.mishap = () => 'before';
		await clock.advance(31_000);
		expect(held.maySend()).toBe(false);
	});

	it('may be used again after a short outage of the table, but never after one in which it may have been taken', async () => {
		const [short, long] = [await mine(open()), await mine(open(), { ...ENTRY, key: 'other' })];
		const outage = async (ms: number) => {
			table.mishap = () => 'before';
			await clock.advance(ms);
			table.mishap = () => 'none';
			await clock.advance(2_000);
		};
		await outage(50_000);
		expect([short.maySend(), long.maySend()]).toEqual([true, true]);
		await outage(100_000);
		await clock.advance(60_000);
		expect([short.maySend(), long.maySend()]).toEqual([false, false]);
	});

	it('that took too long is dropped and made again', async () => {
		const held = await mine(openDelayed(async () => await clock.sleep(40_000)));
		expect(held.maySend()).toBe(true);
		expect(table.all()).toHaveLength(1);
	});

	it('ends if a person deletes its row', async () => {
		const held = await mine(open());
		table.edit(() => undefined);
		await clock.advance(30_000);
		expect(held.maySend()).toBe(false);
		expect((await claim(open())).kind).toBe('mine');
	});

	it('accepts only the first final outcome', async () => {
		const ledger = open();
		const held = await mine(ledger);
		held.sent('t1');
		held.refused();
		held.unclear();
		held.sent('t2');
		await flush(ledger);
		expect(column('reference')).toEqual(['t1']);
	});
});

it('rows contain the columns of the table and nothing else', async () => {
	const ledger = open();
	const held = await mine(ledger);
	held.sent('t1');
	held.ended('succeeded');
	await flush(ledger);
	const names = LEDGER_TABLE.columns.map(({ name }) => name).sort();
	for (const { id, ...row } of table.all()) expect(Object.keys(row).sort()).toEqual(names);
});
