import { wireRequest, type OpenRequest } from '../../../../nodes/AgentInvoke/wire/request';
import type { InvokeCall } from '../../../../nodes/AgentInvoke/api/api';
import { InterruptLimit } from '../../../../nodes/AgentInvoke/turns/interruptLimit';
import {
	runTurns,
	type AgentTurn,
	type SessionChoice,
	type TurnOutcome,
	type TurnSettings,
} from '../../../../nodes/AgentInvoke/turns/turn';
import { badInput, fail, ok, type FailureKind, type Result } from '../../../../nodes/shared/errors/failure';
import type { JsonObject } from '../../../../nodes/shared/text/json';
import { TableLedger, type Ledger } from '../../../../nodes/shared/effects/ledger';
import { createRetryMemory } from '../../../../nodes/shared/run/retryMemory';
import { MemoryTable } from '../../shared/memoryTable';
import { Liveness } from '../../../../nodes/shared/dataTable/claims';
import { valueOf } from '../../results';
import { TestClock } from '../../testClock';
import { replyOf } from '../agentReply.builder';
import { openStore } from '../sessions/worker.scene';
import { wireWith } from '../wire/wire.fixture';

/** An agent in virtual time that opens sessions, takes `takesMs` and fails as a test specifies. */
class ScriptedAgent {
	readonly calls: Array<{ said: string; sessionId: string; fromMs: number; toMs: number }> = [];
	takesMs = 1_000;
	failure: (
		said: string,
		sessionId: string,
	) => { kind: FailureKind; mayHaveRun?: boolean; wasUnclear?: boolean; gone?: boolean } | undefined = () =>
		undefined;
	private opened = 0;

	constructor(private readonly clock: TestClock) {}

	readonly invoke = async ({ request, sessionId, onSession, calls }: InvokeCall) => {
		const { body } = valueOf(request(sessionId));
		const said = textOf(body.message);
		const call = { said, sessionId: textOf(body.session_id), fromMs: this.clock.elapsedMs, toMs: 0 };
		this.calls.push(call);
		await this.clock.sleep(this.takesMs);
		call.toMs = this.clock.elapsedMs;
		const failure = this.failure(said, sessionId);
		if (failure) {
			const { kind, mayHaveRun, wasUnclear, gone = false } = failure;
			if (wasUnclear) calls.wasUnclear = true;
			const details: JsonObject = { ...(mayHaveRun && { mayHaveRun }) };
			return fail({ kind, message: 'It failed', advice: '', details, isSessionUnknown: gone });
		}
		const id = sessionId || `s${++this.opened}`;
		onSession(id);
		return ok(replyOf(`re ${said}`, id, { raw: { said } }));
	};
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

let clock: TestClock;
let agent: ScriptedAgent;
let table: MemoryTable;
let ledgerTable: MemoryTable;
let nodeContext: Record<string, unknown>;
beforeEach(() => {
	clock = new TestClock();
	agent = new ScriptedAgent(clock);
	table = new MemoryTable(clock);
	ledgerTable = new MemoryTable(clock);
	nodeContext = {};
});

const key = (name: string): SessionChoice => ({ kind: 'mapped', key: name });
const byId = (id: string): SessionChoice => ({ kind: 'explicit', id });
const NEW: SessionChoice = { kind: 'new' };

interface Question extends Omit<AgentTurn, 'client'> {
	readonly payload: string;
	readonly prepare: () => Promise<Result<OpenRequest>>;
}

const wire = wireWith();

function saying(message: string): OpenRequest {
	const said = { kind: 'message', message, files: [] } as const;
	return (sessionId) => wireRequest(wire, said, { sessionId, stream: false, uuid: 'u' });
}

function turn(itemIndex: number, session: SessionChoice, over: Partial<Question> = {}): Question {
	return {
		...{ itemIndex, session, isResume: false, idempotencyKey: undefined, fingerprint: 'f', simplify: true },
		...{ payload: 'p', sinceMs: 0 },
		prepare: async () => ok(saying(`m${itemIndex}`)),
		...over,
	};
}

function ledgerOf(executionId: string): Ledger {
	return new TableLedger(
		{ scope: 'x', workflowId: 'w', executionId, ttlMs: 0, sendAgain: false, deadlineMs: Infinity },
		{
			table: ledgerTable.open(),
			clock,
			random: () => 0,
			signal: new AbortController().signal,
			liveness: new Liveness(),
		},
	);
}

async function take(
	turns: Question[],
	settings: Partial<TurnSettings> = {},
	{
		ledger,
		signal,
		agentName = 'a',
		interruptLimit = new InterruptLimit({}, 0),
		received,
	}: {
		ledger?: Ledger;
		signal?: AbortSignal;
		agentName?: string;
		interruptLimit?: InterruptLimit;
		received?: (itemIndex: number) => void;
	} = {},
): Promise<TurnOutcome[]> {
	const sessions = openStore({ agent: agentName }, table.open(), clock);
	const keys = turns.flatMap(({ session }) => (session.kind === 'mapped' ? [session.key] : []));
	await clock.run(sessions.load(settings.turnOrder === 'strict' ? [] : keys));
	const usual = {
		concurrency: 8,
		maxInvocations: 0,
		timeoutMs: 1_000,
		attempts: 1,
		sendAgain: false,
		renewExpired: false,
		idempotencyAnswers: 'keep' as const,
		stopAtFailure: false,
		turnOrder: 'arrival' as const,
	};
	const work = async () => {
		const outcomes = await runTurns(
			turns.map((one) => ({ ...one, client: { agent: agentName, api: agent, sessions } })),
			{ ...usual, ...settings },
			{
				...{ clock, ledger, random: () => 0 },
				memory: createRetryMemory(nodeContext, { node: 'n', run: 0, part: 'turns' }),
				interruptLimit,
				signal: signal ?? new AbortController().signal,
				payloadOf: async ({ payload }) => await Promise.resolve(ok(payload)),
				prepare: async ({ prepare }) => await prepare(),
				onDelta: async () => undefined,
				received: async (outcome) => received?.(outcome.turn.itemIndex),
			},
		);
		await Promise.all([sessions.flush(), ledger?.flush()]);
		return outcomes;
	};
	return await clock.run(work());
}

const kinds = (outcomes: TurnOutcome[]): string[] =>
	outcomes.map(({ result }) => (result.ok ? result.value.session.source : result.failure.kind));

test('turns of one session run in order, while those of other sessions run at the same time', async () => {
	const turns = [0, 1, 2, 3, 4, 5].map((i) => turn(i, key(`k${i % 2}`)));
	expect(kinds(await take(turns))).toEqual(['new', 'new', 'mapped', 'mapped', 'mapped', 'mapped']);
	expect(
		agent.calls.map(({ said, sessionId, fromMs }) => [said, sessionId, fromMs - agent.calls[0]!.fromMs]),
	).toEqual([
		['m0', '', 0],
		['m1', '', 0],
		['m2', 's1', 1_000],
		['m3', 's2', 1_000],
		['m4', 's1', 2_000],
		['m5', 's2', 2_000],
	]);
});

test('a turn that waits for its session occupies no slot, so others can use it', async () => {
	const turns = [0, 1, 2, 3, 4, 5].map((i) => turn(i, i < 3 ? key('k') : NEW));
	await take(turns, { concurrency: 2 });
	expect(agent.calls.slice(0, 2).map(({ said }) => said)).toEqual(['m3', 'm0']);
	// The turn claims its key before it calls the agent.
	expect((agent.calls[1]?.fromMs ?? 0) - (agent.calls[0]?.fromMs ?? 0)).toBeLessThan(100);
});

test.each([1, 3])(
	'after a failure no further turn begins, and running ones finish (%d at once)',
	async (concurrency) => {
		agent.failure = (said) => (said === 'm1' ? { kind: 'refused' } : undefined);
		const outcomes = await take(
			[0, 1, 2, 3, 4, 5].map((i) => turn(i, NEW)),
			{ concurrency, stopAtFailure: true },
		);
		expect(kinds(outcomes)).toEqual(
			concurrency === 1
				? ['new', 'refused', ...Array<string>(4).fill('notSubmitted')]
				: ['new', 'refused', 'new', ...kinds(outcomes).slice(3)],
		);
		expect(kinds(outcomes).slice(concurrency === 1 ? 2 : 4)).toEqual(
			Array(concurrency === 1 ? 4 : 2).fill('notSubmitted'),
		);
	},
);

test('the end of a turn is reported before the turn that waits for its permit is prepared', async () => {
	const steps: string[] = [];
	const turns = [0, 1, 2].map((i) =>
		turn(i, NEW, {
			prepare: async () => {
				steps.push(`prepare ${i}`);
				return await Promise.resolve(ok(saying(`m${i}`)));
			},
		}),
	);
	await take(turns, { concurrency: 1 }, { received: (i) => void steps.push(`end ${i}`) });
	expect(steps).toEqual([0, 1, 2].flatMap((i) => [`prepare ${i}`, `end ${i}`]));
});

test('turns of a session given by ID also run one after another', async () => {
	await take([turn(0, byId('s9')), turn(1, byId('s9')), turn(2, byId('s8'))]);
	const [firstMs = 0] = agent.calls.map(({ fromMs }) => fromMs);
	expect(agent.calls.map(({ said, fromMs }) => [said, fromMs - firstMs])).toEqual([
		['m0', 0],
		['m2', 0],
		['m1', 1_000],
	]);
});

test('an answer that asks for nothing does not count as an interrupt, however often the session is resumed', async () => {
	const interruptLimit = new InterruptLimit({}, 1);
	const resumes = [0, 1, 2, 3].map((i) => turn(i, byId('s9'), { isResume: true }));
	expect(kinds(await take(resumes, {}, { interruptLimit }))).toEqual(Array(4).fill('explicit'));
});

test.each(['arrival', 'strict'] as const)(
	'a recalled answer does not replace the session that its key has been given since (%s)',
	async (turnOrder) => {
		await take([turn(0, key('k'))], { turnOrder });
		table.edit((row) => ({ ...row, sessionId: 's9' }));
		await take([turn(0, key('k'))], { turnOrder });
		expect(table.all()).toMatchObject([{ sessionId: 's9' }]);
	},
);

test('an unknown session is renewed once and its later turns continue in the new one, but never for a resume', async () => {
	await take([turn(0, key('k'))]);
	agent.failure = (_said, sessionId) => (sessionId === 's1' ? { kind: 'refused', gone: true } : undefined);
	nodeContext = {};
	expect(kinds(await take([turn(0, key('k')), turn(1, key('k'))], { renewExpired: true }))).toEqual([
		'renewed',
		'mapped',
	]);
	expect(table.all()).toMatchObject([{ sessionId: 's2' }]);
	const resume = turn(3, byId('s1'), { isResume: true });
	expect(kinds(await take([resume], { renewExpired: true }))).toEqual(['refused']);
});

test('a second try sends only what was not answered and cannot have run', async () => {
	agent.failure = (said) =>
		said === 'm1'
			? { kind: 'refused' }
			: said === 'm2'
				? { kind: 'unclear', mayHaveRun: true }
				: said === 'm3'
					? { kind: 'agentFailed', mayHaveRun: true }
					: undefined;
	const turns = [0, 1, 2, 3].map((i) => turn(i, NEW));
	await take(turns);
	agent.failure = () => undefined;
	agent.calls.length = 0;
	expect(kinds(await take(turns))).toEqual(['new', 'new', 'unclear', 'unclear']);
	expect(agent.calls.map(({ said }) => said)).toEqual(['m1']);
	expect(kinds(await take(turns, { sendAgain: true }))).toEqual(['new', 'new', 'new', 'new']);
});

test('the raw answer is remembered only if the item shows it', async () => {
	await take([turn(0, NEW), turn(1, NEW, { simplify: false })]);
	const again = await take([turn(0, NEW), turn(1, NEW, { simplify: false })]);
	expect(again.map(({ result }) => result.ok && result.value.reply.raw)).toEqual([{}, { said: 'm1' }]);
	expect(agent.calls).toHaveLength(2);
});

test('a recalled answer restores its session if the table has lost it', async () => {
	await take([turn(0, key('k'))]);
	table = new MemoryTable(clock);
	expect(kinds(await take([turn(0, key('k')), turn(1, key('k'))]))).toEqual(['new', 'mapped']);
	expect(agent.calls.map(({ sessionId }) => sessionId)).toEqual(['', 's1']);
	expect(table.all()).toMatchObject([{ sessionId: 's1' }]);
});

test('an answer of another agent is remembered, and its session is not stored for this agent', async () => {
	await take([turn(0, key('k'))]);
	const outcomes = await take([turn(0, key('k'))], {}, { agentName: 'b' });
	expect(outcomes[0]?.result).toMatchObject({ value: { recalled: true, session: { id: 's1' } } });
	expect(table.all()).toMatchObject([{ agent: 'a', sessionId: 's1' }]);
	expect(agent.calls).toHaveLength(1);
});

describe('with a ledger', () => {
	const keyed = (i: number, payload = 'p', over: Partial<Question> = {}): Question =>
		turn(i, NEW, { idempotencyKey: 'order 7', payload, ...over });

	test('an item waits no longer than its timeout for another execution that asks with its key', async () => {
		await clock.run(ledgerOf('e1').claim({ key: 'order 7', payloadHash: 'p' }));
		const startedMs = clock.elapsedMs;
		const [outcome] = await take([keyed(0)], { timeoutMs: 5_000 }, { ledger: ledgerOf('e2') });
		expect(outcome?.result).toMatchObject({
			failure: {
				kind: 'notSubmitted',
				message: expect.stringContaining('other messages of its session or key took more than 5 seconds'),
			},
		});
		expect(clock.elapsedMs - startedMs).toBeLessThan(9_000);
		expect(agent.calls).toEqual([]);
	});

	test('a replay restores its session if the table has lost it', async () => {
		const idempotencyKey = 'order 7';
		await take([turn(0, key('k'), { idempotencyKey })], {}, { ledger: ledgerOf('e1') });
		nodeContext = {};
		table = new MemoryTable(clock);
		await take([turn(0, key('k'), { idempotencyKey })], {}, { ledger: ledgerOf('e2') });
		expect(table.all()).toMatchObject([{ sessionId: 's1' }]);
		expect(agent.calls).toHaveLength(1);
	});

	test.each([10, 40_000])(
		'an answer of another agent is an error for this one, and no session is taken over (%d characters)',
		async (length) => {
			const idempotencyKey = 'order 7';
			const say = { prepare: async () => ok(saying('x'.repeat(length))) };
			await take([turn(0, key('k'), { idempotencyKey, ...say })], {}, { ledger: ledgerOf('e1') });
			nodeContext = {};
			const again = [turn(0, key('k'), { idempotencyKey })];
			const outcomes = await take(again, {}, { ledger: ledgerOf('e2'), agentName: 'b' });
			expect(outcomes[0]?.result).toMatchObject({
				failure: {
					kind: 'badInput',
					message: 'The idempotency key "order 7" was used by execution e1 to ask another agent',
				},
			});
			expect(table.all()).toMatchObject([{ agent: 'a' }]);
			expect(agent.calls).toHaveLength(1);
		},
	);

	test('nothing is prepared for a replay, and a failed preparation frees the key', async () => {
		const prepare = jest.fn(async () => fail(badInput('No file', 'Check it.')));
		await take([keyed(0, 'p', { prepare })], {}, { ledger: ledgerOf('e1') });
		expect(kinds(await take([keyed(0)], {}, { ledger: ledgerOf('e2') }))).toEqual(['new']);
		nodeContext = {};
		await take([keyed(0, 'p', { prepare })], {}, { ledger: ledgerOf('e3') });
		expect(prepare).toHaveBeenCalledTimes(1);
	});

	test('a claim is kept alive for as long as the agent takes', async () => {
		agent.takesMs = 30 * 60_000;
		const first = take([keyed(0)], {}, { ledger: ledgerOf('e1') });
		await first;
		expect(ledgerTable.calls.filter((call) => call === 'replace').length).toBeGreaterThan(20);
		expect(clock.sleepers).toBe(0);
	});

	test('a turn that waits for another turn with the same key gets its answer', async () => {
		agent.takesMs = 10 * 60_000;
		const turns = [keyed(0), keyed(1)];
		const outcomes = await take(turns, { timeoutMs: 11 * 60_000 }, { ledger: ledgerOf('e1') });
		expect(outcomes.map(({ result }) => result.ok && result.value.replayed)).toEqual([false, true]);
		expect(agent.calls).toHaveLength(1);
	});

	test.each<[FailureKind, boolean, string]>([
		['refused', false, 'new'],
		['unclear', true, 'unclear'],
		['timedOut', true, 'unclear'],
		['agentFailed', true, 'unclear'],
		['cancelled', true, 'unclear'],
	])('after %s (may have run: %s), the next execution ends as "%s"', async (kind, mayHaveRun, then) => {
		agent.failure = () => ({ kind, mayHaveRun });
		await take([keyed(0)], {}, { ledger: ledgerOf('e1') });
		agent.failure = () => undefined;
		nodeContext = {};
		expect(kinds(await take([keyed(0)], {}, { ledger: ledgerOf('e2') }))).toEqual([then]);
	});

	test('a refusal after an unclear call does not free the key, because the agent may have run', async () => {
		agent.failure = () => ({ kind: 'refused', wasUnclear: true });
		await take([keyed(0)], { sendAgain: true }, { ledger: ledgerOf('e1') });
		agent.failure = () => undefined;
		nodeContext = {};
		expect(kinds(await take([keyed(0)], {}, { ledger: ledgerOf('e2') }))).toEqual(['unclear']);
		expect(agent.calls).toHaveLength(1);
	});

	test('an item whose saved answer a person made unreadable is not sent again', async () => {
		await take([keyed(0)], {}, { ledger: ledgerOf('e1') });
		ledgerTable.edit((row) => (row.state === 'succeeded' ? { ...row, reference: 'scribble' } : row));
		nodeContext = {};
		expect(kinds(await take([keyed(0)], {}, { ledger: ledgerOf('e2') }))).toEqual(['notSubmitted']);
		expect(agent.calls).toHaveLength(1);
	});
});
