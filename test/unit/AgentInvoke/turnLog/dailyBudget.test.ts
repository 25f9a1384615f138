import { DayCounts } from '../../../../nodes/shared/effects/dayCounts';
import {
	TURN_TABLE,
	TurnLog,
	type TurnLimit,
	type EndedTurn,
} from '../../../../nodes/AgentInvoke/turnLog/turnLog';
import { TurnOwners, type OwnedTurn } from '../../../../nodes/AgentInvoke/turnLog/turnOwners';
import type { SessionChoice } from '../../../../nodes/AgentInvoke/turns/turn';
import { notCounted } from '../../../../nodes/shared/effects/dailyLimit';
import { explainTableFailure } from '../../../../nodes/shared/dataTable/failures';
import { sha256 } from '../../../../nodes/shared/text/sha256';
import { MemoryTable } from '../../shared/memoryTable';
import { TestClock } from '../../testClock';
import { answer, endedTurn, failure } from './turnRecords';
import { failureOf } from '../../results';

let clock: TestClock;
let table: MemoryTable;
let sessions: MemoryTable;
beforeEach(() => {
	clock = new TestClock();
	table = new MemoryTable(clock);
	sessions = new MemoryTable(clock);
});

const key = (name: string): SessionChoice => ({ kind: 'mapped', key: name });
const byId = (id: string): SessionChoice => ({ kind: 'explicit', id });
const due = (itemIndex: number, session: SessionChoice = key('anna'), agent = 'a'): OwnedTurn => ({
	...{ itemIndex, session, client: { agent }, isResume: false },
});

let runs = 0;

interface Place {
	timeZone?: string;
	workflowId?: string;
	nodeId?: string;
}

/** One run of a node, with its budget and its turn log. */
class Run {
	readonly turnLog: TurnLog;

	/** @param counts the counts of its process */
	constructor(limit: Partial<TurnLimit>, place: Place = {}, counts = new DayCounts()) {
		const settings = { timeZone: 'UTC', workflowId: 'w', nodeId: 'n', runId: `run ${++runs}`, ...place };
		const usual = { per: 'key', unit: 'turns', most: 2 } as const;
		const owners = new TurnOwners(settings, sessions.open());
		this.turnLog = new TurnLog(
			{ ...settings, executionId: 'e', node: 'Ask', limit: { ...usual, ...limit } },
			table.open(),
			owners,
			clock,
			counts,
		);
	}

	async open(turns: OwnedTurn[]): Promise<this> {
		const opened = await clock.run(this.turnLog.open(turns, []));
		expect(opened.ok).toBe(true);
		return this;
	}

	async admits(turn: OwnedTurn): Promise<boolean> {
		return (await clock.run(this.turnLog.admit(turn))).ok;
	}

	async refusal(turn: OwnedTurn) {
		return failureOf(await clock.run(this.turnLog.admit(turn)));
	}

	end(turn: OwnedTurn, over: Partial<EndedTurn> = {}): void {
		const ended = endedTurn(clock, { ...turn, ...over });
		this.turnLog.ended(ended);
	}

	async close(): Promise<void> {
		await clock.run(this.turnLog.flush());
	}
}

/** Runs these turns one after another. @returns which were admitted */
async function takes(
	limit: Partial<TurnLimit>,
	turns: OwnedTurn[],
	over: Partial<EndedTurn> = {},
	place: Place = {},
) {
	const run = await new Run(limit, place).open(turns);
	const admitted: boolean[] = [];
	for (const turn of turns) {
		admitted.push(await run.admits(turn));
		if (admitted.at(-1)) run.end(turn, over);
	}
	await run.close();
	return admitted;
}

test('the refusal states the limit and its use, where to raise it and when the count restarts', async () => {
	await takes({}, [due(0), due(1)]);
	const run = await new Run({}).open([due(0)]);
	expect(await run.refusal(due(0))).toEqual({
		kind: 'notSubmitted',
		message: '\'Limit per Day\' allows 2 turns a day for the key "anna"; used so far: 2',
		advice:
			"Nothing was sent for this item. Raise 'Limit per Day' under 'Cost and Speed', or run the item again from 2030-01-02 on: the count restarts at midnight (UTC).",
		details: {
			budget: { per: 'key', unit: 'turns', most: 2, used: 2, day: '2030-01-01' },
			freeFrom: '2030-01-02',
		},
	});
});

test('counting takes one read, and one row before the first turn, however many items and keys there are', async () => {
	await takes(
		{},
		Array.from({ length: 200 }, (_, i) => due(i, key(`k${i % 50}`))),
	);
	expect(table.calls).toEqual(['read', 'replace', 'replace']);
});

describe('which turns count together', () => {
	test("a node's turns count together, with all keys and agents", async () => {
		await takes({ per: 'node' }, [due(0), due(1, key('ben'), 'other')]);
		expect(await takes({ per: 'node' }, [due(0, key('carl'))])).toEqual([false]);
		expect(await takes({ per: 'node' }, [due(0)], {}, { nodeId: 'm' })).toEqual([true]);
		expect(await takes({ per: 'node' }, [due(0)], {}, { workflowId: 'v' })).toEqual([true]);
	});

	test('without a key, the turns of a session count together, as do those of new sessions', async () => {
		const [one, two] = [byId('s1'), byId('s2')];
		expect(await takes({}, [due(0, one), due(1, one), due(2, one), due(3, two)])).toEqual([
			...[true, true, false, true],
		]);
		const fresh: SessionChoice = { kind: 'new' };
		expect(await takes({}, [due(0, fresh), due(1, fresh), due(2, fresh)])).toEqual([true, true, false]);
		const run = await new Run({}).open([due(0, fresh), due(1, one)]);
		expect((await run.refusal(due(0, fresh))).message).toContain(
			'for all items of this node that have no key',
		);
		expect((await run.refusal(due(1, one))).message).toContain('for the session "s1"');
	});

	test('a session given by ID counts for the key that opened it, with the same agent', async () => {
		const row = { sessionKey: 'anna', entryKey: sha256(JSON.stringify(['a', 'anna'])), sessionId: 's1' };
		sessions.put({ ...row, agent: 'other', sessionKey: 'ben', entryKey: 'x' });
		sessions.put({ ...row, agent: 'a' });
		expect(await takes({}, [due(0), due(1, byId('s1')), due(2, byId('s1'))])).toEqual([true, true, false]);
		expect(table.all().map(({ sessionKey }) => sessionKey)).toEqual(['anna', 'anna']);
		expect(sessions.calls).toEqual(['read']);
		const run = await new Run({}).open([due(0)]);
		expect((await run.refusal(due(0))).message).toContain('for the key "anna"; used so far: 2');
	});

	test('keys that share their first 200 characters do not share a budget', async () => {
		const long = 'x'.repeat(200);
		expect(await takes({ most: 1 }, [due(0, key(`${long}a`)), due(1, key(`${long}b`))])).toEqual([
			true,
			true,
		]);
	});
});

describe('tokens', () => {
	const TOKENS = { unit: 'tokens', most: 100 } as const;

	test('count once the answer has arrived, so the turn that crosses the limit is still admitted', async () => {
		const result = answer({ total_tokens: 60 });
		expect(await takes(TOKENS, [due(0), due(1), due(2)], { result })).toEqual([true, true, false]);
		const run = await new Run(TOKENS).open([due(0)]);
		expect((await run.refusal(due(0))).message).toBe(
			'\'Limit per Day\' allows 100 tokens a day for the key "anna"; used so far: 120',
		);
		expect(run.turnLog.hint).toBe('');
	});

	test('that are not reported do not count, and a hint says so', async () => {
		const run = await new Run(TOKENS).open([due(0), due(1)]);
		expect(await run.admits(due(0))).toBe(true);
		run.end(due(0), { result: answer({ units: 5 }) });
		expect(run.turnLog.hint).toContain('1 turn(s) reported no tokens');
		expect(run.turnLog.hint).toContain('"answer.usage"');
		run.end(due(1), { result: failure('refused') });
		run.end(due(1), { result: answer({ total_tokens: 5 }) });
		expect(run.turnLog.hint).toContain('1 turn(s)');
	});

	test('of a failed agent count if they are reported', async () => {
		const result = failure('agentFailed', { mayHaveRun: true, usage: { total_tokens: 100 } });
		expect(await takes(TOKENS, [due(0), due(1)], { result })).toEqual([true, false]);
	});
});

test('in a run that crosses midnight, the turns of other processes on the new day count for each key', async () => {
	const keys = Array.from({ length: 20 }, (_, index) => key(`customer ${index}`));
	const turns = keys.map((session, index) => due(index, session));
	await clock.advance(12 * 3_600_000 - 60_000);
	const run = await new Run({ most: 1 }).open(turns);
	await clock.advance(120_000);
	expect(await takes({ most: 1 }, turns)).toEqual(turns.map(() => true));
	await clock.advance(60_000);
	for (const turn of turns) {
		expect(await run.admits(turn)).toBe(false);
		await clock.advance(300);
	}
});

describe('a table that people or accidents changed', () => {
	test('deleted rows, and rows marked as not run, no longer count, nor do odd cells', async () => {
		await takes({}, [due(0), due(1)]);
		table.edit((row) => (row.item === 1 ? undefined : { ...row, mayHaveRun: null, tokens: -5 }));
		expect(await takes({}, [due(0), due(1)])).toEqual([true, false]);
		table.edit((row) => ({ ...row, mayHaveRun: false }));
		expect(await takes({}, [due(0)])).toEqual([true]);
		table.edit((row) => ({ ...row, tokens: -5, mayHaveRun: true }));
		expect(await takes({ unit: 'tokens', most: 1 }, [due(0)])).toEqual([true]);
	});

	test('if it cannot be read, nothing is admitted, and the message says why', async () => {
		table.mishap = () => 'before';
		const { turnLog } = new Run({});
		const opened = await clock.run(turnLog.open([due(0)], []));
		expect(opened).toMatchObject({
			ok: false,
			failure: {
				message: 'The Data Table could not be used',
				advice: expect.stringMatching(
					/^Nothing was sent, because the count for 'Limit per Day' is kept in Data Tables\. /,
				) as string,
			},
		});
		expect((await clock.run(turnLog.admit(due(0)))).ok).toBe(false);
	});
});

test('if the timeout of the workflow has passed, the message says so, and not to do without the table', async () => {
	const late = explainTableFailure(TURN_TABLE, 'The execution was cancelled because it timed out');
	const { advice } = notCounted(late);
	expect(advice).toContain('Raise "Timeout Workflow" in the settings of the workflow');
	expect(advice).not.toContain("remove 'Limit per Day'");
});

test('a turn counts for the day on which it was admitted, even if it is sent after midnight', async () => {
	await clock.advance(12 * 3_600_000 - 1_000);
	const run = await new Run({ most: 1 }).open([due(0)]);
	expect(await run.admits(due(0))).toBe(true);
	await clock.advance(2_000);
	run.end(due(0));
	await run.close();
	expect(table.all()).toMatchObject([{ day: '2030-01-01', outcome: 'answered' }]);
	expect(await takes({ most: 1 }, [due(0), due(1)])).toEqual([true, false]);
});

describe('runs at the same time', () => {
	const LIMIT = { most: 20 };
	/** Opens sixty executions of one message each. */
	async function sixty(countsOf: (run: number) => DayCounts): Promise<Run[]> {
		const all = Array.from({ length: 60 }, (_, run) => new Run(LIMIT, {}, countsOf(run)));
		await clock.run(Promise.all(all.map(async (run) => await run.turnLog.open([due(0)], []))));
		return all;
	}

	async function admitted(all: readonly Run[]): Promise<Run[]> {
		const asked = await clock.run(
			Promise.all(all.map(async (run) => [run, (await run.turnLog.admit(due(0))).ok] as const)),
		);
		return asked.flatMap(([run, isAdmitted]) => (isAdmitted ? [run] : []));
	}

	test('in one process do not exceed the limit one after another, whether or not the table shows their turns', async () => {
		const counts = new DayCounts();
		const all = await sixty(() => counts);
		let count = 0;
		for (const [index, run] of all.entries()) {
			if (await run.admits(due(0))) {
				count++;
				run.end(due(0));
				if (index % 2 === 0) await run.close();
			}
			await clock.advance(3_000);
		}
		expect(count).toBe(20);
	});

	test('in one process do not use up turns that did not run', async () => {
		const counts = new DayCounts();
		const [first, ...others] = await sixty(() => counts);
		expect(await first!.admits(due(0))).toBe(true);
		first!.end(due(0), { result: failure('refused') });
		expect(await admitted(others)).toHaveLength(20);
	});

	test('in two processes do not exceed the limit once the turns of the other are in the table', async () => {
		const processes = [new DayCounts(), new DayCounts()];
		const all = await sixty((run) => processes[run % 2]!);
		const before = await admitted(all.filter((_, run) => run % 2 === 0));
		expect(before).toHaveLength(20);
		for (const run of before) {
			run.end(due(0));
			await run.close();
		}
		await clock.advance(2_000);
		// The late runs began before any of those turns was in the table, and ask only now.
		const late = all.filter((_, run) => run % 2 === 1);
		expect(await admitted(late)).toHaveLength(0);
	});

	test('leave no account behind once they are over', async () => {
		const counts = new DayCounts();
		const run = await new Run(LIMIT, {}, counts).open([due(0)]);
		expect(counts.size).toBe(1);
		await run.close();
		expect(counts.size).toBe(0);
	});
});

describe('a run that stops at its first failure', () => {
	const opened = async (turns: OwnedTurn[], limit: Partial<TurnLimit> = {}, allOrNone = turns) =>
		await clock.run(new Run(limit).turnLog.open(turns, allOrNone));

	test('sends nothing if the turns of a key exceed what is left, and says how many may be sent', async () => {
		await takes({ most: 3 }, [due(0)]);
		const { message, advice } = failureOf(
			await opened([due(0), due(1), due(2), due(3, key('ben'))], { most: 3 }),
		);
		expect(message).toBe(
			'This run has 3 turns for the key "anna", but \'Limit per Day\' (3) leaves only 2 for today',
		);
		expect(advice).toMatch(/^Nothing was sent\. To send the first 2, .* Or run it again from 2030-01-02 on/);
		// A whole day is not enough for four.
		const four = [due(0), due(1), due(2), due(3, key('ben'))];
		const ofNode = failureOf(await opened(four, { per: 'node', most: 3 }));
		expect(ofNode.message).toBe("This run has 4 turns, but 'Limit per Day' (3) leaves only 2 for today");
		expect(ofNode.advice).toMatch(/under 'Cost and Speed'\.$/);
	});

	test.each<[string, Partial<TurnLimit>, OwnedTurn[]]>([
		['whose turns fit', { most: 2 }, [due(0), due(1), due(2, key('ben'))]],
		['whose tokens cannot be known', { unit: 'tokens', most: 2 }, [due(0), due(1), due(2)]],
	])('is begun if it is one %s', async (_, limit, turns) => {
		expect((await opened(turns, limit)).ok).toBe(true);
	});

	test('counts no turn that may have been taken before', async () => {
		const turns = [due(0), due(1), due(2)];
		expect((await opened(turns, {}, turns.slice(1))).ok).toBe(true);
	});
});
