import {
	TableLedger,
	ledgerScope,
	type Ledger,
	type LedgerAnswer,
	type LedgerSettings,
} from '../../../../nodes/shared/idempotency/ledger';
import type { LedgerClaim } from '../../../../nodes/shared/idempotency/claim';
import type { Result } from '../../../../nodes/shared/errors/failure';
import { CLAIM_FRESH_MS, LEDGER_TABLE } from '../../../../nodes/shared/idempotency/rows';
import { TestClock } from '../../testClock';
import { MemoryTable } from '../memoryTable';

const HOUR_MS = 3_600_000;
const ENTRY = { key: 'order 1', payloadHash: 'p' };

let clock: TestClock;
let table: MemoryTable;
let ending: AbortController;

beforeEach(() => {
	clock = new TestClock();
	table = new MemoryTable(clock);
	ending = new AbortController();
});

/** One run of a node. */
function open(over: Partial<LedgerSettings> = {}): Ledger {
	const settings = {
		scope: 'task',
		workflowId: 'w1',
		executionId: '7',
		ttlMs: HOUR_MS,
		onUnknown: 'error',
		deadlineMs: clock.now() + HOUR_MS,
		...over,
	} as const;
	return new TableLedger(settings, { table: table.open(), clock, random: () => 0.5, signal: ending.signal });
}

async function claim(ledger: Ledger, entry = ENTRY): Promise<LedgerAnswer> {
	return valueOf(await clock.run(ledger.claim(entry)));
}

function valueOf<T>(result: Result<T>): T {
	if (!result.ok) throw new Error(result.failure.message);
	return result.value;
}

async function mine(ledger: Ledger, entry = ENTRY): Promise<LedgerClaim> {
	const answer = await claim(ledger, entry);
	if (answer.kind !== 'mine') throw new Error(`The key is not free but "${answer.kind}"`);
	return answer.claim;
}

async function flush(ledger: Ledger): Promise<void> {
	expect(await clock.run(ledger.flush())).toEqual({ ok: true, value: undefined });
	expect(clock.sleepers).toBe(0);
}

const column = (name: string): unknown[] => table.all().map((row) => row[name]);

it('a flush waits for a claim whose write takes waiting rows along, and writes them if it fails', async () => {
	table = new MemoryTable(clock, () => 1);
	const ledger = open();
	const first = await mine(ledger);
	let failures = 1;
	table.mishap = (call) => (call.startsWith('insert') && failures-- > 0 ? 'before' : 'none');
	first.submitted('t1');
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
	it('is claimed once, and its task is there for all later ones', async () => {
		const first = open();
		(await mine(first)).submitted('t1');
		await flush(first);
		const second = open({ executionId: '8' });
		expect(await claim(second)).toMatchObject({
			...{ kind: 'exists', reference: 't1', finished: false },
			by: { executionId: '7', workflowId: 'w1' },
		});
		await flush(second);
		expect(column('kind')).toEqual(['claim', 'submitted']);
	});

	it('that is being submitted is waited for', async () => {
		const ledger = open();
		const held = await mine(ledger);
		const waiting = open().claim(ENTRY);
		await clock.advance(30_000);
		held.submitted('t1');
		await clock.advance(3_000);
		expect(valueOf(await waiting)).toMatchObject({ kind: 'exists', reference: 't1' });
	});

	it('that was released goes to who waits for it', async () => {
		const ledger = open();
		const held = await mine(ledger);
		const waiting = open().claim(ENTRY);
		await clock.advance(5_000);
		held.released();
		expect(valueOf(await clock.run(waiting)).kind).toBe('mine');
		expect(column('kind')).toEqual(['claim']);
	});

	it('of a task that failed is free, whoever says so', async () => {
		const ledger = open();
		const held = await mine(ledger);
		held.submitted('t1');
		held.ended('failed');
		await flush(ledger);
		const second = open();
		(await mine(second)).submitted('t2');
		await flush(second);

		const third = open();
		const answer = await claim(third);
		expect(answer).toMatchObject({ kind: 'exists', reference: 't2' });
		if (answer.kind === 'exists') answer.ended('failed');
		await flush(third);
		expect((await claim(open())).kind).toBe('mine');
	});

	it('of a reused task that failed is free at once for the run that saw it', async () => {
		const first = open();
		(await mine(first)).submitted('t1');
		await flush(first);
		const second = open({ executionId: '8' });
		const answer = await claim(second);
		if (answer.kind === 'exists') answer.ended('failed');
		expect((await claim(second)).kind).toBe('mine');
	});

	it.each(['failed', 'was refused'])(
		'of a task that %s is free at once for the next item of the run',
		async (end) => {
			const ledger = open();
			const held = await mine(ledger);
			const sinceMs = clock.elapsedMs;
			if (end === 'was refused') held.released();
			else held.ended('failed');
			expect((await claim(ledger)).kind).toBe('mine');
			// Two statements of 30 ms and the write of the first one's end.
			expect(clock.elapsedMs - sinceMs).toBeLessThan(100);
		},
	);

	it('of a task that succeeded keeps it, and says that it is finished', async () => {
		const ledger = open();
		const held = await mine(ledger);
		held.submitted('t1');
		held.ended('succeeded');
		held.ended('failed');
		await flush(ledger);
		const answer = await claim(open());
		expect(answer).toMatchObject({ kind: 'exists', reference: 't1', finished: true });
		if (answer.kind === 'exists') answer.ended('failed');
		expect(column('outcome')).toEqual(['', '', 'succeeded']);
	});

	it('can keep an answer instead of an id', async () => {
		const ledger = open();
		(await mine(ledger)).ended('succeeded', '{"answer":" 42\\n"}');
		await flush(ledger);
		expect(await claim(open())).toMatchObject({ reference: '{"answer":" 42\\n"}', finished: true });
	});

	it('with another payload is a conflict', async () => {
		const ledger = open();
		(await mine(ledger)).submitted('t1');
		await flush(ledger);
		expect(await claim(open(), { ...ENTRY, payloadHash: 'q' })).toMatchObject({ kind: 'conflict' });
	});

	it('is another one in another scope', async () => {
		const ledger = open();
		(await mine(ledger)).submitted('t1');
		await flush(ledger);
		expect((await claim(open({ scope: 'other' }))).kind).toBe('mine');
	});

	it('is hashed whole, however long it is', async () => {
		const long = 'x'.repeat(100_000);
		const ledger = open();
		(await mine(ledger, { ...ENTRY, key: `${long}1` })).submitted('t1');
		(await mine(ledger, { ...ENTRY, key: `${long}2` })).submitted('t2');
		await flush(ledger);
		expect(new Set(column('entryKey')).size).toBe(2);
		expect(column('keyText')[0]).toHaveLength(200);
	});

	it.each(['={{ 1+1 }}', '{{ $json }}', '"\'`', 'a\r\nb', '😀', ' ', '__proto__', 'nul\0'])(
		'may be %j',
		async (key) => {
			const ledger = open();
			(await mine(ledger, { ...ENTRY, key })).submitted('t1');
			await flush(ledger);
			expect(column('keyText')[0]).toBe(key.replace('\0', '\uFFFD'));
			expect(await claim(open(), { ...ENTRY, key })).toMatchObject({ kind: 'exists' });
		},
	);

	it('is not cut in the middle of a character', async () => {
		await mine(open(), { ...ENTRY, key: `${'x'.repeat(199)}😀` });
		expect(column('keyText')[0]).toBe('x'.repeat(199));
	});
});

describe('what nobody knows', () => {
	it('is told at once where a submit had no answer', async () => {
		const ledger = open();
		(await mine(ledger)).unanswered();
		await flush(ledger);
		const askedMs = clock.now();
		expect(await claim(open())).toMatchObject({ kind: 'unknown', by: { executionId: '7' } });
		expect(clock.now() - askedMs).toBeLessThan(1_000);
	});

	it('is told when the claim of somebody who died is old enough', async () => {
		await mine(open());
		const claimedMs = clock.now();
		expect((await claim(open())).kind).toBe('unknown');
		expect(clock.now() - claimedMs).toBeGreaterThanOrEqual(CLAIM_FRESH_MS - 1_000);
		expect(clock.now() - claimedMs).toBeLessThan(CLAIM_FRESH_MS + 3_000);
	});

	it('is not told as long as the answer of a request may come that left at the last moment', async () => {
		const ledger = open();
		const askedMs = clock.now();
		const held = await mine(ledger);
		// A minute for the head of the answer, and one for its body.
		const lastWordMs = held.sendByMs + 2 * 60_000;
		let told: string | undefined;
		void open()
			.claim(ENTRY)
			.then((answer) => {
				told = valueOf(answer).kind;
			});
		await clock.advance(lastWordMs + 10_000 - clock.now());
		expect(told).toBeUndefined();
		// And no later than the docs say: three and a half minutes.
		await clock.advance(askedMs + 215_000 - clock.now());
		expect(told).toBe('unknown');
	});

	it('is not told of a claim that is renewed', async () => {
		const ledger = open();
		const held = await mine(ledger);
		const waiting = open().claim(ENTRY);
		for (let minute = 0; minute < 5; minute++) {
			await clock.advance(60_000);
			held.renew();
		}
		held.submitted('t1');
		expect(valueOf(await clock.run(waiting))).toMatchObject({ kind: 'exists' });
	});

	it('is done again where the operator wants that', async () => {
		const ledger = open();
		(await mine(ledger)).unanswered();
		await flush(ledger);
		const again = open({ onUnknown: 'again' });
		(await mine(again)).submitted('t2');
		await flush(again);
		expect(await claim(open())).toMatchObject({ kind: 'exists', reference: 't2' });
	});

	it('with another payload stays a conflict, even then', async () => {
		const ledger = open();
		(await mine(ledger)).unanswered();
		await flush(ledger);
		const answer = await claim(open({ onUnknown: 'again' }), { ...ENTRY, payloadHash: 'q' });
		expect(answer.kind).toBe('conflict');
	});
});

describe('wall clocks that are set', () => {
	const again = (): Ledger => open({ onUnknown: 'again', executionId: '8' });

	it.each([1, -1])('free no claim that is held, to be done again: %d h', async (hours) => {
		const held = await mine(open({ ttlMs: 1 }));
		clock.wallAheadMs = hours * HOUR_MS;
		const waiting = again().claim(ENTRY);
		await clock.advance(120_000);
		held.submitted('t1');
		const answer = valueOf(await clock.run(waiting));
		expect(answer).toMatchObject({ kind: 'exists', reference: 't1' });
	});

	it('let the claim of one who died be taken after it was silent for as long as a held one can be', async () => {
		await mine(open());
		await clock.advance(HOUR_MS);
		const askedMs = clock.now();
		await mine(again());
		expect(clock.now() - askedMs).toBeGreaterThanOrEqual(CLAIM_FRESH_MS);
		expect(clock.now() - askedMs).toBeLessThan(CLAIM_FRESH_MS + 10_000);
	});

	it('hold up nobody where the claim is older than clocks can differ', async () => {
		await mine(open({ ttlMs: 0 }));
		await clock.advance(2 * HOUR_MS);
		const askedMs = clock.now();
		await mine(again());
		expect(clock.now() - askedMs).toBeLessThan(1_000);
	});

	it('let nothing be sent by a claim that was got while the machine slept', async () => {
		const inner = table.open();
		let sleptMs = HOUR_MS;
		const sleepy = {
			...inner,
			insert: async (rows: Parameters<typeof inner.insert>[0]) => {
				const added = await inner.insert(rows);
				// The steady clock has not moved.
				clock.wallAheadMs += sleptMs;
				sleptMs = 0;
				return added;
			},
		};
		const settings = { scope: 's', workflowId: 'w', executionId: '1', ttlMs: 0, onUnknown: 'error' } as const;
		const ledger = new TableLedger(
			{ ...settings, deadlineMs: clock.now() + HOUR_MS },
			{ table: sleepy, clock, random: () => 0.5, signal: ending.signal },
		);
		await mine(ledger);
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
		if (first.kind === 'mine') first.claim.submitted('t1');
		await clock.advance(0);
		expect(answers).toEqual(['mine', 'conflict']);
		expect(await claim(ledger)).toMatchObject({ kind: 'exists', reference: 't1', by: { executionId: '7' } });
	});

	it('goes to the next where the first comes to nothing', async () => {
		for (const nothing of ['released', 'failed'] as const) {
			const ledger = open({ scope: nothing });
			const first = await mine(ledger);
			const second = ledger.claim(ENTRY);
			await clock.advance(500);
			if (nothing === 'released') first.released();
			else first.ended('failed');
			expect(valueOf(await clock.run(second)).kind).toBe('mine');
		}
	});

	it('is unknown to the next where the first had no answer', async () => {
		const ledger = open();
		(await mine(ledger)).unanswered();
		expect((await claim(ledger)).kind).toBe('unknown');
	});
});

describe('a table that does not show one’s own row for a moment', () => {
	it('does not show that of another either: nothing is claimed until it does', async () => {
		const shownMs = clock.now() + 10_000;
		table.hides = (ageMs) => clock.now() < shownMs && ageMs < 5_000;
		const ledgers = [open(), open({ executionId: '8' })];
		const kinds: string[] = [];
		const asked = ledgers.map(async (ledger) => {
			const answer = valueOf(await ledger.claim(ENTRY));
			kinds.push(answer.kind);
			if (answer.kind === 'mine') answer.claim.submitted('t1');
			await ledger.flush();
		});
		await clock.advance(9_000);
		expect(kinds).toEqual([]);
		await clock.run(Promise.all(asked));
		expect(kinds.toSorted()).toEqual(['exists', 'mine']);
	});
});

describe('the life of entries', () => {
	it.each([1, 60_000])(
		'is ten minutes at least, so that %d ms free no key that somebody is at',
		async (ttlMs) => {
			const first = open({ ttlMs });
			const held = await mine(first);
			const waiting = open({ ttlMs }).claim(ENTRY);
			await clock.advance(150_000);
			held.submitted('t1');
			expect(valueOf(await clock.run(waiting))).toMatchObject({ kind: 'exists' });
			const submittedMs = clock.now();
			await flush(first);
			await clock.advance(submittedMs + 9 * 60_000 - clock.now());
			expect(await claim(open({ ttlMs }))).toMatchObject({ kind: 'exists' });
			await clock.advance(2 * 60_000);
			expect((await claim(open({ ttlMs }))).kind).toBe('mine');
		},
	);

	it('ends after the time that was set', async () => {
		const ledger = open();
		(await mine(ledger)).submitted('t1');
		await flush(ledger);
		await clock.advance(HOUR_MS + 1);
		const next = open({ executionId: '8' });
		expect((await claim(next)).kind).toBe('mine');
	});

	it('does not end where 0 was set', async () => {
		const ledger = open({ ttlMs: 0 });
		(await mine(ledger)).submitted('t1');
		await flush(ledger);
		await clock.advance(50 * 365 * 24 * HOUR_MS);
		expect(await claim(open())).toMatchObject({ kind: 'exists' });
	});
});

describe('sub-executions', () => {
	it('are one a step, however many keys come together', async () => {
		const ledger = open();
		const claims = await clock.run(
			Promise.all(
				Array.from({ length: 500 }, async (_, index) => await ledger.claim({ ...ENTRY, key: `k${index}` })),
			),
		);
		expect(table.calls).toEqual(['read', 'insertThenRead']);
		for (const [index, answer] of claims.entries()) {
			const value = valueOf(answer);
			if (value.kind === 'mine') value.claim.submitted(`t${index}`);
		}
		await flush(ledger);
		expect(table.calls.slice(2)).toEqual(['insert']);
		expect(table.all()).toHaveLength(1_000);
	});

	it('write what is known within a fifth of a second', async () => {
		const held = await mine(open());
		held.submitted('t1');
		await clock.advance(200);
		expect(column('reference')).toEqual(['', 't1']);
	});
});

describe('places for claims', () => {
	const keys = (count: number): string[] => Array.from({ length: count }, (_, index) => `k${index}`);

	it('are as many as were set, and free when it is known what came of a claim', async () => {
		const ledger = open({ claimsAtOnce: 4 });
		const held: LedgerClaim[] = [];
		for (const key of keys(9)) {
			void ledger.claim({ ...ENTRY, key }).then((answer) => {
				if (answer.ok && answer.value.kind === 'mine') held.push(answer.value.claim);
			});
		}
		await clock.advance(5_000);
		expect(held).toHaveLength(4);
		const [a, b, c, d] = held;
		a?.submitted('t1');
		b?.unanswered();
		await clock.advance(500);
		expect(held).toHaveLength(6);
		c?.released();
		await clock.advance(500);
		expect(held).toHaveLength(6);
		await clock.advance(1_000);
		expect(held).toHaveLength(7);
		d?.ended('failed');
		held[4]?.submitted('t2');
		await clock.advance(500);
		expect(held).toHaveLength(9);
		for (const claim of held) claim.submitted('t');
		await flush(ledger);
	});

	it('are of no concern to keys that stand for a task, nor to those that another is at', async () => {
		const other = open();
		(await mine(other)).submitted('t1');
		await flush(other);
		const ledger = open({ claimsAtOnce: 1 });
		await mine(ledger, { ...ENTRY, key: 'mine' });
		expect(await claim(ledger)).toMatchObject({ kind: 'exists' });
		await mine(other, { ...ENTRY, key: 'theirs' });
		const waiting = ledger.claim({ ...ENTRY, key: 'theirs' });
		await clock.advance(CLAIM_FRESH_MS + 5_000);
		expect(valueOf(await waiting)).toMatchObject({ kind: 'unknown' });
	});

	it('are waited for no longer when the run ends, or when the item is not wanted any more', async () => {
		const ledger = open({ claimsAtOnce: 1 });
		const first = await mine(ledger, { ...ENTRY, key: 'first' });
		const stop = { kind: 'notSubmitted', message: 'Enough', advice: '' } as const;
		let isEnough = false;
		const whyStop = () => (isEnough ? stop : undefined);
		const unwanted = ledger.claim({ ...ENTRY, key: 'unwanted', whyStop });
		await clock.advance(500);
		isEnough = true;
		first.released();
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

	it('that were waited for long are given back where another has done it meanwhile', async () => {
		const ledger = open({ claimsAtOnce: 1 });
		const first = await mine(ledger, { ...ENTRY, key: 'first' });
		const waiting = ledger.claim(ENTRY);
		await clock.advance(2_000);
		const other = open({ executionId: '8' });
		(await mine(other)).submitted('t1');
		await clock.run(other.flush());
		first.released();
		expect(valueOf(await clock.run(waiting))).toMatchObject({ kind: 'exists', reference: 't1' });
		await flush(ledger);
		// Those of the first key are taken back as well.
		expect(column('kind')).toEqual(['claim', 'submitted']);
		expect(column('executionId')).toEqual(['8', '8']);
	});
});

it('writes what came of claims before, or with, the claims that follow', async () => {
	const ledger = open({ claimsAtOnce: 1 });
	const first = await mine(ledger, { ...ENTRY, key: 'first' });
	const waiting = ledger.claim({ ...ENTRY, key: 'second' });
	await clock.advance(500);
	first.submitted('t1');
	await clock.run(waiting);
	expect(column('kind')).toEqual(['claim', 'submitted', 'claim']);
	expect(table.calls).toEqual(['read', 'insertThenRead', 'read', 'insertThenRead']);
});

it('keeps what came of a claim where it could not be written with the claims that follow', async () => {
	const ledger = open({ claimsAtOnce: 1 });
	const first = await mine(ledger, { ...ENTRY, key: 'first' });
	const waiting = ledger.claim({ ...ENTRY, key: 'second' });
	await clock.advance(500);
	first.submitted('t1');
	table.mishap = (name) => (name === 'insertThenRead' ? 'before' : 'none');
	expect(await clock.run(waiting)).toMatchObject({ ok: false });
	table.mishap = () => 'none';
	await clock.advance(3_000);
	expect(column('reference')).toEqual(['', 't1']);
});

describe('a table that fails', () => {
	it.each(['read', 'insertThenRead'])('before anything is submitted fails the item (%s)', async (call) => {
		table.mishap = (name) => (name === call ? 'before' : 'none');
		const ledger = open();
		const failed = await clock.run(ledger.claim(ENTRY));
		expect(failed).toMatchObject({ ok: false, failure: { kind: 'badInput' } });
		if (!failed.ok) expect(failed.failure.advice).toMatch(/^Nothing was submitted for this item\./);
		await flush(ledger);
		expect(table.all()).toEqual([]);
	});

	it('leaves no claim behind where it was added all the same', async () => {
		table.mishap = (name) => (name === 'insertThenRead' ? 'after' : 'none');
		const ledger = open();
		expect(await clock.run(ledger.claim(ENTRY))).toMatchObject({ ok: false });
		await flush(ledger);
		expect(table.all()).toEqual([]);
	});

	it('for a while gets what is to be written a little later', async () => {
		const held = await mine(open());
		table.mishap = () => 'before';
		held.submitted('t1');
		await clock.advance(3_000);
		table.mishap = () => 'none';
		await clock.advance(6_000);
		expect(column('kind')).toEqual(['claim', 'submitted']);
	});

	it('until the end is told by flush, which tries once more', async () => {
		const ledger = open();
		const held = await mine(ledger);
		table.mishap = () => 'before';
		held.submitted('t1');
		await clock.advance(HOUR_MS);
		expect(await clock.run(ledger.flush())).toMatchObject({ ok: false });
		table.mishap = () => 'none';
		await flush(ledger);
		expect(column('kind')).toEqual(['claim', 'submitted']);
	});

	it.each(['insert', 'remove'])('once as the run ends loses nothing (%s)', async (call) => {
		const ledger = open();
		const held = await mine(ledger);
		let refusals = 0;
		table.mishap = (name) => (name === call && refusals++ === 0 ? 'before' : 'none');
		if (call === 'insert') held.submitted('t1');
		else held.released();
		await flush(ledger);
		expect(column('kind')).toEqual(call === 'insert' ? ['claim', 'submitted'] : []);
	});

	it('when a claim is taken back is asked again', async () => {
		const other = open({ executionId: '8' });
		(await mine(other)).released();
		const seen = table.all()[0];
		await flush(other);
		let refusals = 0;
		table.mishap = (name) => {
			// Another claims at the same moment, and was first.
			if (name === 'insertThenRead' && refusals === 0) table.put({ ...seen, owner: 'another' });
			return name === 'remove' && ++refusals <= 3 ? 'before' : 'none';
		};
		const ledger = open({ deadlineMs: clock.now() + 60_000 });
		expect(await clock.run(ledger.claim(ENTRY))).toMatchObject({ ok: false });
		await flush(ledger);
		expect(refusals).toBe(4);
		expect(column('owner')).toEqual(['another']);
	});
});

describe('the end of a run', () => {
	it('is not overtaken by what is said of a claim while the last rows are written', async () => {
		table = new MemoryTable(clock, () => 1, 1_000);
		const ledger = open();
		const held = await mine(ledger);
		held.renew();
		const flushed = ledger.flush();
		await clock.advance(20);
		held.released();
		await clock.run(flushed);
		await clock.advance(10_000);
		expect(table.all()).toEqual([]);
	});

	it('ends all waiting, and nothing is claimed', async () => {
		await mine(open());
		const ledger = open();
		const waiting = ledger.claim(ENTRY);
		const twice = ledger.claim(ENTRY);
		await clock.advance(5_000);
		ending.abort();
		for (const asked of [waiting, twice]) {
			expect(await clock.run(asked)).toMatchObject({ ok: false, failure: { kind: 'cancelled' } });
		}
		await flush(ledger);
		expect(table.all()).toHaveLength(1);
	});

	it('by its timeout names the key that was waited for', async () => {
		await mine(open());
		const failed = await clock.run(open({ deadlineMs: clock.now() + 20_000 }).claim(ENTRY));
		expect(failed).toMatchObject({ ok: false, failure: { kind: 'notSubmitted' } });
		if (!failed.ok) expect(failed.failure.message).toContain('"order 1"');
		expect(table.all()).toHaveLength(1);
	});

	it('does not keep from being written what is to be written', async () => {
		const ledger = open();
		const held = await mine(ledger);
		ending.abort();
		held.submitted('t1');
		await flush(ledger);
		expect(column('kind')).toEqual(['claim', 'submitted']);
	});
});

describe('a claim', () => {
	it('says by when it must be used', async () => {
		const askedMs = clock.now();
		const held = await mine(open());
		expect(held.sendByMs).toBeGreaterThan(clock.now() + 30_000);
		expect(held.sendByMs).toBeLessThanOrEqual(askedMs + 61_000);
	});

	it('that took too long to get is given up and asked for again', async () => {
		let slow = true;
		const inner = table.open();
		const dataTable = {
			...inner,
			insert: async (rows: Parameters<typeof inner.insert>[0]) => {
				if (slow) await clock.sleep(40_000);
				slow = false;
				return await inner.insert(rows);
			},
		};
		const settings = { scope: 's', workflowId: 'w', executionId: '1', ttlMs: 0, onUnknown: 'error' } as const;
		const ledger = new TableLedger(
			{ ...settings, deadlineMs: clock.now() + HOUR_MS },
			{ table: dataTable, clock, random: () => 0.5, signal: ending.signal },
		);
		const held = await mine(ledger);
		expect(held.sendByMs).toBeGreaterThan(clock.now() + 30_000);
		expect(table.all()).toHaveLength(1);
	});

	it('takes the first word that counts', async () => {
		const ledger = open();
		const held = await mine(ledger);
		held.submitted('t1');
		held.released();
		held.unanswered();
		held.renew();
		held.submitted('t2');
		await flush(ledger);
		expect(column('reference')).toEqual(['', 't1']);
	});
});

it('rows hold the columns of the table and nothing else', async () => {
	const ledger = open();
	const held = await mine(ledger);
	held.submitted('t1');
	held.ended('succeeded');
	await flush(ledger);
	const names = LEDGER_TABLE.columns.map(({ name }) => name).sort();
	for (const { id, ...row } of table.all()) expect(Object.keys(row).sort()).toEqual(names);
});

it('scopes a key to the node, or to the project', () => {
	const place = { workflowId: 'w', nodeId: 'n' };
	expect(ledgerScope('task', 'node', place)).toBe('task w n');
	expect(ledgerScope('task', 'project', place)).toBe('task');
	expect(ledgerScope('task', 'node', { ...place, nodeId: 'm' })).not.toBe(ledgerScope('task', 'node', place));
});
