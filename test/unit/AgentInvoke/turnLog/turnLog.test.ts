import { TurnLog, TURN_TABLE, type EndedTurn } from '../../../../nodes/AgentInvoke/turnLog/turnLog';
import { TurnOwners } from '../../../../nodes/AgentInvoke/turnLog/turnOwners';
import { DayCounts } from '../../../../nodes/shared/effects/dayCounts';
import type { WireInterrupt } from '../../../../nodes/AgentInvoke/wire/answerValues';
import { countTokens } from '../../../../nodes/shared/usage/budgetMessages';
import type { Json } from '../../../../nodes/shared/text/json';
import { MemoryTable } from '../../shared/memoryTable';
import { TestClock } from '../../testClock';
import { answer, callsMade, endedTurn, failure } from './turnRecords';

let clock: TestClock;
let table: MemoryTable;
beforeEach(() => {
	clock = new TestClock();
	table = new MemoryTable(clock);
});

const SETTINGS = {
	executionId: 'e1',
	workflowId: 'w',
	nodeId: 'n',
	node: 'Ask',
	timeZone: 'UTC',
	runId: 'r',
};

async function rowsOf(turns: EndedTurn[], settings: Partial<typeof SETTINGS> = {}): Promise<unknown[]> {
	const owners = new TurnOwners(SETTINGS, new MemoryTable(clock).open());
	const turnLog = new TurnLog({ ...SETTINGS, ...settings }, table.open(), owners, clock, new DayCounts());
	await clock.run(turnLog.open(turns, []));
	for (const turn of turns) turnLog.ended(turn);
	expect((await clock.run(turnLog.flush())).ok).toBe(true);
	return table.all();
}

test('the columns that people look for come first', () => {
	const names = TURN_TABLE.columns.map(({ name }) => name);
	expect(names.slice(0, 3)).toEqual(['sessionKey', 'outcome', 'tokens']);
});

test('a row has all columns, with what a person wants to know', async () => {
	const calls = callsMade(clock, 2);
	await clock.advance(1_500);
	const usage = { total_tokens: 12, invocations: 1 };
	const rows = await rowsOf([endedTurn(clock, { itemIndex: 3, calls, result: answer(usage) })]);
	expect(Object.keys(rows[0] as object).sort()).toEqual(
		['id', ...TURN_TABLE.columns.map(({ name }) => name)].sort(),
	);
	expect(rows).toMatchObject([
		{
			...{ executionId: 'e1', workflowId: 'w', nodeId: 'n', node: 'Ask', item: 4, agent: 'a' },
			...{ sessionKey: 'anna', sessionId: 's1', kind: 'message', outcome: 'answered', mayHaveRun: true },
			...{ attempts: 2, requestId: 'r1', tokens: 12, usage: '{"total_tokens":12,"invocations":1}' },
			...{ startedAt: '2030-01-01T12:00:00.000Z', ms: 1_500, day: '2030-01-01' },
		},
	]);
});

const QUESTION: WireInterrupt = { id: 'i', kind: 'question', tool: '', arguments: {}, question: '?' };
const INTERRUPTED = () => {
	const result = answer();
	return result.ok ? answer(null, { reply: { ...result.value.reply, interrupts: [QUESTION] } }) : result;
};

test.each([
	['answered', true, answer(), false],
	['interrupted', true, INTERRUPTED(), false],
	['refused', false, failure('refused'), false],
	['refused', false, failure('credential'), false],
	['unreached', false, failure('unreachable'), false],
	['failed', true, failure('agentFailed', { mayHaveRun: true }), false],
	['unclear', true, failure('unclear', { mayHaveRun: true }), false],
	['unclear', true, failure('timedOut', { mayHaveRun: true }), false],
	['cancelled', true, failure('unclear', { mayHaveRun: true }), true],
	['cancelled', false, failure('cancelled'), true],
	['answered', true, answer(), true],
])(
	'a turn that ended as %s is logged (may have run: %s)',
	async (outcome, mayHaveRun, result, isCancelled) => {
		expect(await rowsOf([endedTurn(clock, { result, isCancelled })])).toMatchObject([
			{ outcome, mayHaveRun },
		]);
	},
);

test('a turn that was refused after a call without a clear answer may still have run', async () => {
	const calls = callsMade(clock, 2);
	calls.wasUnclear = true;
	expect(await rowsOf([endedTurn(clock, { calls, result: failure('refused') })])).toMatchObject([
		{ outcome: 'refused', mayHaveRun: true },
	]);
});

test("an item for which nothing was sent has no row; another execution's answer has one without costs", async () => {
	const calls = callsMade(clock, 0);
	const usage = { total_tokens: 12 };
	const rows = await rowsOf([
		endedTurn(clock, { calls, result: failure('notSubmitted') }),
		endedTurn(clock, { calls, result: failure('unclear', { mayHaveRun: true }) }),
		endedTurn(clock, { calls, result: answer(usage, { recalled: true }) }),
		endedTurn(clock, { calls, result: answer(usage, { replayed: true, recalled: true }) }),
		endedTurn(clock, { calls, itemIndex: 4, result: answer(usage, { replayed: true }) }),
	]);
	expect(rows).toMatchObject([
		...[{ item: 5, outcome: 'replayed', mayHaveRun: false, attempts: 0, tokens: null, usage: null, ms: 0 }],
	]);
	expect(rows).toHaveLength(1);
});

test('the row of a failure contains session and request if known', async () => {
	const session = { kind: 'explicit', id: 'given' } as const;
	const rows = await rowsOf([
		endedTurn(clock, {
			...{ session, isResume: true },
			result: failure('agentFailed', { sessionId: 's9', requestId: 'r9', mayHaveRun: true, usage: 7 }),
		}),
		endedTurn(clock, { itemIndex: 1, session, result: failure('refused') }),
		endedTurn(clock, { itemIndex: 2, session: { kind: 'new' }, result: failure('refused') }),
	]);
	expect(rows).toMatchObject([
		{ sessionId: 's9', requestId: 'r9', tokens: 7, kind: 'result', sessionKey: '' },
		{ sessionId: 'given', requestId: '', tokens: null, kind: 'message' },
		{ sessionId: '' },
	]);
});

test('rows can be stored whatever they contain', async () => {
	const long = `\0${'x'.repeat(5_000)}`;
	const session = { key: long, id: long, source: 'mapped' as const };
	const calls = callsMade(clock);
	const result = answer({ text: long }, { session });
	const [row] = await rowsOf(
		[endedTurn(clock, { session: { kind: 'mapped', key: long }, client: { agent: long }, calls, result })],
		{
			node: long,
		},
	);
	const cells: unknown[] = Object.values(row as object);
	const texts = cells.filter((cell): cell is string => typeof cell === 'string');
	expect(texts.every((text) => !text.includes('\0') && text.length <= 300)).toBe(true);
	expect(row).toMatchObject({ usage: null, tokens: null });
	expect(String((row as { sessionKey: unknown }).sessionKey)).toHaveLength(200);
});

test.each<[Json, number | undefined]>([
	[{ total_tokens: 8, input_tokens: 1, output_tokens: 2 }, 8],
	[{ input_tokens: 3, output_tokens: 4 }, 7],
	[{ prompt_tokens: '3', completion_tokens: 4 }, 7],
	[{ output_tokens: 4 }, 4],
	[{ total_tokens: '8' }, 8],
	[{ total_tokens: 0 }, 0],
	[{ total_tokens: 0, input_tokens: -3, output_tokens: 4 }, 4],
	[{ total_tokens: 0, input_tokens: 3, output_tokens: 4 }, 7],
	[{ totalTokens: 9, promptTokens: 1 }, 9],
	[-3, undefined],
	[Number.NaN, undefined],
	[9, 9],
	['9', 9],
	[{ total_tokens: -1 }, undefined],
	[{ total_tokens: -5, prompt_tokens: 3, completion_tokens: 4 }, 7],
	[{ units: 8 }, undefined],
	[{}, undefined],
	[null, undefined],
	['', undefined],
	['many', undefined],
	[[8], undefined],
	[true, undefined],
])('the tokens in %j are %s', (usage, tokens) => {
	expect(countTokens(usage)).toBe(tokens);
});
