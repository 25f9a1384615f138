import { DEAD_MS } from '../../../../nodes/shared/dataTable/claims';
import { SESSION_TABLE } from '../../../../nodes/AgentInvoke/sessions/sessionRows';
import { KnownSessions, type SessionStore } from '../../../../nodes/AgentInvoke/sessions/sessionStore';
import type { TurnOutcome } from '../../../../nodes/AgentInvoke/turns/turn';
import { openTable } from '../../../../nodes/shared/dataTable/table';
import { MemoryTable } from '../../shared/memoryTable';
import { TestClock } from '../../testClock';
import { OneAtATime, WorkerProcess, openStore } from './worker.scene';

/* Tests how executions of one process, and of several, share sessions. */

const HOUR = 3_600_000;
let clock: TestClock;
let table: MemoryTable;
let agent: OneAtATime;
beforeEach(() => {
	clock = new TestClock();
	table = new MemoryTable(clock);
	agent = new OneAtATime(clock);
});

/** Never removes expired rows, and always pauses as long as possible. */
const worker = (): WorkerProcess => new WorkerProcess(clock, table, agent, () => 0.9);
const ask = (said: string, key = 'k') => [{ key, said }];
const heard = (): string[] => agent.heard.map(({ said, sessionId }) => `${said} in ${sessionId}`);
const kinds = (outcomes: TurnOutcome[] | 'died'): string[] =>
	outcomes === 'died'
		? ['died']
		: outcomes.map(({ result }) => (result.ok ? result.value.session.source : result.failure.kind));

function store(executionId = 'other'): SessionStore {
	return openStore({ executionId }, table.open(), clock);
}

async function forget(key = 'k'): Promise<void> {
	expect((await store().forget([key])).ok).toBe(true);
}

test.each([
	['new', undefined, ['read', 'insertThenRead', 'swap']],
	['known', 0, ['read']],
	['known', HOUR, ['read', 'swap']],
])('a turn in a %s session, last used %j ms ago, costs the operations %j', async (_, agoMs, operations) => {
	if (agoMs !== undefined) {
		await clock.run(worker().run(ask('first')));
		await clock.advance(agoMs);
	}
	table.calls.length = 0;
	await clock.run(worker().run(ask('second')));
	expect(table.calls).toEqual(operations);
});

test('a database that takes ten seconds per statement costs a new session no additional operations except renewals', async () => {
	table = new MemoryTable(clock, () => 1, 2_500);
	await clock.run(worker().run(ask('m')));
	const [first, ...rest] = table.calls;
	expect([first, ...rest.filter((call) => call !== 'replace')]).toEqual([
		...['read', 'insertThenRead', 'swap'],
	]);
});

test('the session of a stream is in the table while the agent is still answering, and what follows costs no more', async () => {
	Object.assign(agent, { takesMs: () => 10_000, tellsAfterMs: 100 });
	const run = worker().run(ask('m'));
	await clock.advance(1_500);
	expect(table.all()).toMatchObject([{ sessionId: 's1' }]);
	await clock.run(run);
	expect(table.all()).toMatchObject([{ sessionId: 's1' }]);
	expect(table.calls).toEqual(['read', 'insertThenRead', 'swap']);
});

test('an item that waits for a key does not delay the other items of its run', async () => {
	agent.takesMs = (said) => (said === 'slow' ? 60_000 : 100);
	const n8n = worker();
	const slow = n8n.run(ask('slow'));
	await clock.advance(500);
	const asks = [{ key: 'k', said: 'waits' }, ...['x', 'y', 'z'].map((key) => ({ key, said: key }))];
	const run = n8n.run(asks, { concurrency: 1 });
	await clock.advance(5_000);
	expect(agent.heard.map(({ said }) => said)).toEqual(['slow', 'x', 'y', 'z']);
	await clock.run(Promise.all([slow, run]));
	expect(agent.heard.at(-1)?.said).toBe('waits');
});

test.each(['one process', 'two processes'])(
	'waiting ends with the timeout, and nothing is sent (%s)',
	async (where) => {
		agent.takesMs = () => 30_000;
		agent.tellsAfterMs = undefined;
		const n8n = worker();
		const first = n8n.run(ask('one'));
		await clock.advance(500);
		const second = (where === 'one process' ? n8n : worker()).run(ask('two'), { timeoutMs: 5_000 });
		const [outcome] = (await clock.run(second)) as TurnOutcome[];
		expect(outcome?.result).toMatchObject({
			failure: {
				kind: 'notSubmitted',
				message: expect.stringContaining('other messages of its session or key took more than 5 seconds'),
			},
		});
		expect(clock.elapsedMs).toBeLessThan(9_000);
		await clock.run(first);
		expect(heard()).toEqual(['one in s1']);
		expect([n8n.queue.size, clock.sleepers]).toEqual([0, 0]);
	},
);

test.each(['one process', 'two processes'])(
	'waiting ends when the execution is stopped (%s)',
	async (where) => {
		agent.takesMs = () => 30_000;
		const n8n = worker();
		const first = n8n.run(ask('one'));
		await clock.advance(500);
		const stop = new AbortController();
		const second = (where === 'one process' ? n8n : worker()).run(ask('two'), {}, stop.signal);
		await clock.advance(2_000);
		stop.abort();
		expect(kinds(await clock.run(second))).toEqual(['cancelled']);
		expect(clock.elapsedMs).toBeLessThan(4_000);
		await clock.run(first);
		expect(heard()).toEqual(['one in s1']);
	},
);

test('a busy session is waited for until the timeout, and no longer', async () => {
	await clock.run(worker().run(ask('opens')));
	agent.takesMs = (said) => (said === 'slow' ? 100_000 : 10);
	const slow = worker().run(ask('slow'));
	await clock.advance(500);
	const startMs = clock.elapsedMs;
	const patient = worker().run(ask('patient'));
	const hasty = worker().run(ask('hasty'), { timeoutMs: 20_000 });
	expect(kinds(await clock.run(hasty))).toEqual(['refused']);
	expect(clock.elapsedMs - startMs).toBeGreaterThanOrEqual(20_000);
	expect(clock.elapsedMs - startMs).toBeLessThan(20_200);
	const [, outcome] = await clock.run(Promise.all([slow, patient]));
	expect(kinds(outcome)).toEqual(['mapped']);
	expect(outcome).toMatchObject([{ result: { value: { attempts: expect.any(Number) } } }]);
	// Each pause is longer than the one before.
	expect(agent.refusedAsBusy).toBeLessThan(50);
	expect(heard().map((one) => one.split(' ')[0])).toEqual(['opens', 'slow', 'patient']);
});

test('a key that is forgotten while its session is opened starts a new one, and the old one is not stored', async () => {
	agent.takesMs = () => 5_000;
	const n8n = worker();
	const first = n8n.run(ask('one'));
	await clock.advance(1_000);
	await clock.run(forget());
	const second = worker().run(ask('two'));
	await clock.advance(1_000);
	expect(heard()).toEqual(['one in s1', 'two in s2']);
	await clock.run(Promise.all([first, second]));
	expect(table.all()).toMatchObject([{ sessionId: 's2' }]);
});

test('if a person deletes a row, the next waiting turn opens another session', async () => {
	await clock.run(worker().run(ask('opens')));
	agent.takesMs = () => 5_000;
	const n8n = worker();
	const runs = ['one', 'two', 'three'].map(async (said) => await n8n.run(ask(said)));
	await clock.advance(1_000);
	table.edit(() => undefined);
	await clock.run(Promise.all(runs));
	expect(heard()).toEqual(['opens in s1', 'one in s1', 'two in s2', 'three in s2']);
});

test.each(['one process', 'two processes'])(
	'a session that no longer exists is renewed once (%s)',
	async (where) => {
		await clock.run(worker().run(ask('opens')));
		agent.expire();
		const [one, other] = [worker(), worker()];
		const workers = where === 'one process' ? [one, one, one] : [one, other, worker()];
		const runs = workers.map(async (n8n, i) => await n8n.run(ask(`m${i}`), { renewExpired: true }));
		const outcomes = await clock.run(Promise.all(runs));
		expect(outcomes.flatMap(kinds).toSorted()).toEqual(['mapped', 'mapped', 'renewed']);
		expect(agent.opened).toEqual(['s1', 's2']);
		expect(table.all()).toMatchObject([{ sessionId: 's2' }]);
	},
);

test('a claim whose owner died is taken over after it expires, even by turns that cannot wait that long', async () => {
	agent.tellsAfterMs = undefined;
	agent.takesMs = () => 10_000;
	const dying = worker();
	const lost = dying.run(ask('lost'));
	await clock.advance(1_000);
	dying.die();
	await lost;
	const n8n = worker();
	const told: string[] = [];
	for (let i = 0; i < 7; i++)
		told.push(...kinds(await clock.run(n8n.run(ask(`m${i}`), { timeoutMs: 20_000 }))));
	expect(told).toEqual([...Array(4).fill('notSubmitted'), 'new', 'mapped', 'mapped']);
	expect(clock.elapsedMs).toBeLessThan(DEAD_MS + 60_000);
	expect(table.all().filter(({ sessionId }) => sessionId)).toMatchObject([{ sessionId: 's2' }]);
});

test('a session that takes minutes to open is waited for, and renewals keep its claim alive', async () => {
	agent.takesMs = () => 5 * DEAD_MS;
	agent.tellsAfterMs = undefined;
	const runs = ['one', 'two'].map(async (said, at) => {
		await clock.sleep(at * 100);
		return await worker().run(ask(said));
	});
	await clock.run(Promise.all(runs));
	expect(heard()).toEqual(['one in s1', 'two in s1']);
	expect(clock.elapsedMs).toBeGreaterThan(10 * DEAD_MS);
});

test('an owner that slept until its claim expired does not take the key back', async () => {
	const sleeper = store('sleeper');
	const waiting = {
		...{ untilMs: Infinity, signal: new AbortController().signal, pause: () => undefined },
		...{ whyStop: () => undefined, again: () => waiting },
	};
	expect(await clock.run(sleeper.obtain('k', waiting))).toEqual({ ok: true, value: '' });
	// Its renewals are lost until another worker has taken its owner for dead.
	table.mishap = (call) => (call === 'replace' ? 'before' : 'none');
	agent.takesMs = () => 30_000;
	agent.tellsAfterMs = undefined;
	const awake = worker().run(ask('awake'));
	await clock.advance(DEAD_MS + 10_000);
	expect(heard()).toEqual(['awake in s1']);
	table.mishap = () => 'none';
	await clock.run(awake);
	sleeper.opened('k', 's9');
	await clock.run(sleeper.flush());
	expect(kinds(await clock.run(worker().run(ask('last'))))).toEqual(['mapped']);
	expect(heard()).toEqual(['awake in s1', 'last in s1']);
	expect(table.all().some(({ sessionId }) => sessionId === 's9')).toBe(false);
});

test('nothing is sent if it is uncertain who opens a session', async () => {
	let reads = 0;
	table.mishap = (call) => {
		if (call === 'insertThenRead') return 'after';
		return call === 'read' && ++reads > 1 ? 'before' : 'none';
	};
	const [outcome] = (await clock.run(worker().run(ask('m')))) as TurnOutcome[];
	expect(outcome?.result).toMatchObject({ failure: { advice: expect.stringMatching(/^Nothing was sent/) } });
	expect([heard(), table.all()]).toEqual([[], []]);
});

test('if the table accepts no row, nothing is sent for any key', async () => {
	table.mishap = (call) => (call === 'insertThenRead' ? 'before' : 'none');
	const asks = ['a', 'b', 'c'].map((key) => ({ key, said: key }));
	const outcomes = (await clock.run(worker().run(asks))) as TurnOutcome[];
	for (const { result } of outcomes) {
		expect(result).toMatchObject({ failure: { advice: expect.stringMatching(/^Nothing was sent/) } });
	}
	expect([heard(), table.all()]).toEqual([[], []]);
});

test('a run whose renewals fail keeps its session if no other run wants it', async () => {
	agent.takesMs = () => 90_000;
	table.mishap = (call) => (call === 'replace' && clock.elapsedMs < 80_000 ? 'before' : 'none');
	await clock.run(worker().run(ask('first')));
	expect(table.all().map(({ sessionId }) => sessionId)).toEqual(['s1']);
	agent.takesMs = () => 10;
	await clock.run(worker().run(ask('second')));
	expect(heard()).toEqual(['first in s1', 'second in s1']);
});

test('a run whose wall clock jumps keeps its session', async () => {
	agent.takesMs = () => 30_000;
	const run = worker().run(ask('first'));
	await clock.advance(10_000);
	clock.wallAheadMs = 60_000;
	await clock.run(run);
	expect(table.all().map(({ sessionId }) => sessionId)).toEqual(['s1']);
});

test.each(['before', 'after'] as const)(
	'a write that fails once %s its execution is repeated, and the mapping is kept',
	async (mishap) => {
		agent.takesMs = (said) => (said === 'long' ? 40_000 : 10);
		let writes = 0;
		table.mishap = (call) => (call.startsWith('swap') && ++writes === 1 ? mishap : 'none');
		const long = worker().run([
			{ key: 'k', said: 'short' },
			{ key: 'l', said: 'long' },
		]);
		await clock.advance(20_000);
		expect(table.all().map(({ sessionId }) => sessionId)).toContain('s1');
		await clock.run(long);
		expect(table.all()).toMatchObject([
			{ sessionId: expect.stringMatching(/^s\d$/) },
			{ sessionId: expect.stringMatching(/^s\d$/) },
		]);
	},
);

test('after a failure that ends the run, claimed keys are free', async () => {
	agent.refuses = (said) => said === 'k0';
	const asks = ['k0', 'k1', 'k2', 'k3'].map((key) => ({ key, said: key }));
	const outcomes = await clock.run(worker().run(asks, { concurrency: 1, stopAtFailure: true }));
	expect(kinds(outcomes)).toEqual(['refused', 'notSubmitted', 'notSubmitted', 'notSubmitted']);
	expect(table.all()).toEqual([]);
	expect(clock.sleepers).toBe(0);
});

test('in strict order, a turn whose row becomes visible late still runs alone', async () => {
	await clock.run(worker().run(ask('opens')));
	agent.takesMs = () => 4_000;
	const turns = ['first', 'second', 'third'];
	table.hides = (ageMs) => ageMs < 1_500;
	const runs = turns.map(async (said, at) => {
		await clock.sleep(at * 20);
		return await worker().run(ask(said), { turnOrder: 'strict' });
	});
	await clock.run(Promise.all(runs));
	expect(agent.refusedAsBusy).toBe(0);
	expect(heard().toSorted()).toEqual(['first in s1', 'opens in s1', 'second in s1', 'third in s1']);
});

test('in strict order, a message that waits in its own worker precedes one that reaches another worker later', async () => {
	agent.takesMs = () => 10_000;
	const [one, other] = [worker(), worker()];
	const come = async (atMs: number, n8n: WorkerProcess, said: string) => {
		await clock.sleep(atMs);
		return await n8n.run(ask(said), { turnOrder: 'strict' });
	};
	await clock.run(
		Promise.all([
			come(0, one, 'at 0 s'),
			come(1_000, one, 'at 1 s'),
			come(3_000, other, 'at 3 s'),
			come(4_000, one, 'at 4 s'),
		]),
	);
	expect(heard()).toEqual(['at 0 s in s1', 'at 1 s in s1', 'at 3 s in s1', 'at 4 s in s1']);
	expect([agent.refusedAsBusy, one.queue.size, clock.sleepers]).toEqual([0, 0, 0]);
	expect(table.all()).toMatchObject([{ sessionId: 's1' }]);
});

test('in strict order, a message that is not sent after all leaves the queue, so other workers continue', async () => {
	agent.takesMs = () => 10_000;
	const [one, other] = [worker(), worker()];
	const strict = { turnOrder: 'strict' } as const;
	const first = one.run(ask('first'), strict);
	await clock.advance(500);
	const impatient = one.run(ask('gives up'), { ...strict, timeoutMs: 2_000 });
	const doomed = one.run([...ask('fails'), ...ask('not asked')], {
		...strict,
		timeoutMs: 3_000,
		stopAtFailure: true,
	});
	await clock.advance(500);
	await clock.run(Promise.all([first, impatient, doomed, other.run(ask('of another'), strict)]));
	expect(heard()).toEqual(['first in s1', 'of another in s1']);
	expect(table.all()).toMatchObject([{ sessionId: 's1' }]);
	expect(clock.elapsedMs).toBeLessThan(25_000);
});

test('in strict order, an execution has one place in the queue for all its messages of a key, and precedes later ones', async () => {
	const asks = Array.from({ length: 40 }, (_, index) => ({ key: 'k', said: `m${index}` }));
	const many = worker().run(asks, { turnOrder: 'strict' });
	await clock.advance(500);
	const late = worker().run(ask('late'), { turnOrder: 'strict' });
	await clock.advance(500);
	expect(table.all().filter(({ waitsSinceMs }) => waitsSinceMs !== null)).toHaveLength(2);
	await clock.run(Promise.all([many, late]));
	expect(agent.heard.map(({ said }) => said)).toEqual([...asks.map(({ said }) => said), 'late']);
	expect(table.all()).toMatchObject([{ sessionId: 's1' }]);
});

test('in strict order, an abandoned place in the queue delays others no longer than that of a dead run', async () => {
	const broken = store('broken');
	broken.queueUp('k', 0);
	await clock.advance(100);
	await clock.run(broken.flush());
	await clock.run(worker().run(ask('of another'), { turnOrder: 'strict' }), 2 * DEAD_MS);
	expect(heard()).toEqual(['of another in s1']);
});

test('in strict order, a turn needs only these operations, alone or behind another turn of its process', async () => {
	await clock.run(worker().run(ask('first')));
	const n8n = worker();
	table.calls.length = 0;
	await clock.run(n8n.run(ask('alone'), { turnOrder: 'strict' }));
	expect(table.calls).toEqual(['insertThenRead', 'remove']);
	const alone = n8n.run(ask('one'), { turnOrder: 'strict' });
	await clock.advance(100);
	table.calls.length = 0;
	await clock.run(Promise.all([alone, n8n.run(ask('behind'), { turnOrder: 'strict' })]));
	expect(table.calls.filter((call) => call !== 'swap')).toEqual([
		...['insertThenRead', 'remove', 'insertThenRead', 'remove', 'remove'],
	]);
});

test('in strict order, the session that a worker opened before it died is continued', async () => {
	Object.assign(agent, { takesMs: (said: string) => (said === 'lost' ? 600_000 : 2_000), tellsAfterMs: 100 });
	const dying = worker();
	void dying.run(ask('lost'), { turnOrder: 'strict' });
	await clock.advance(1_500);
	expect(table.all().map(({ sessionId }) => sessionId)).toEqual(expect.arrayContaining(['s1', '']));
	dying.die();
	await clock.run(worker().run(ask('next'), { turnOrder: 'strict' }), 10 * DEAD_MS);
	expect(heard()).toContain('next in s1');
	expect(table.all().filter(({ sessionId }) => sessionId === '')).toEqual([]);
});

test('in strict order, a key is free once its turn is over, even if its session was still being written', async () => {
	Object.assign(agent, { takesMs: (said: string) => (said === 'slow' ? 60_000 : 2_000), tellsAfterMs: 100 });
	table = new MemoryTable(clock, () => 1, 1_500);
	const first = worker().run([...ask('m', 'k'), ...ask('slow', 'other')], { turnOrder: 'strict' });
	await clock.advance(500);
	const second = worker().run(ask('of another'), { turnOrder: 'strict' });
	await clock.run(Promise.all([first, second]));
	expect(agent.heard.find(({ said }) => said === 'of another')?.fromMs).toBeLessThan(60_000);
});

test('in strict order, the turns of all workers run in queue order, and those of a dead worker are skipped', async () => {
	agent.takesMs = () => 2_000;
	const workers = [worker(), worker(), worker()];
	const runs = [0, 1, 2, 3, 4, 5].map(async (number) => {
		await clock.sleep(number * 300);
		return await workers[number % 3]?.run(ask(`m${number}`), { turnOrder: 'strict' });
	});
	await clock.advance(3_000);
	workers[1]?.die();
	await clock.run(Promise.all(runs));
	expect(agent.heard.map(({ said }) => said)).toEqual(expect.arrayContaining(['m0', 'm2', 'm3', 'm5']));
	const living = agent.heard.map(({ said }) => said).filter((said) => !['m1', 'm4'].includes(said));
	expect(living).toEqual(['m0', 'm2', 'm3', 'm5']);
	expect(agent.opened).toEqual(['s1']);
});

test('in strict order, executions that wait for each other at different keys let their other turns go first', async () => {
	agent.takesMs = () => 2_000;
	const [one, other] = [worker(), worker()];
	const runs = [[one, 'b'] as const, [other, 'a'] as const, [one, 'ab'] as const, [other, 'ba'] as const].map(
		async ([n8n, keys]) =>
			await n8n.run(
				Array.from(keys, (key) => ({ key, said: key })),
				{ turnOrder: 'strict', concurrency: 1 },
			),
	);
	await clock.run(Promise.all(runs), 60_000);
	expect(agent.heard).toHaveLength(6);
	expect(clock.sleepers).toBe(0);
});

test('in strict order, two workers never wait for each other over a key that several agents use', async () => {
	agent.takesMs = () => 5_000;
	const strict = { turnOrder: 'strict' } as const;
	const asks = ['a', 'b'].map((name) => ({ key: 'k', said: name, agent: name }));
	const before = asks.map(async (one) => await worker().run([one], strict));
	await clock.advance(500);
	const runs = [worker().run(asks, strict), worker().run(asks.toReversed(), strict)];
	await clock.run(Promise.all([...before, ...runs]));
	expect(agent.heard).toHaveLength(6);
	expect([agent.refusedAsBusy, clock.sleepers]).toEqual([0, 0]);
	expect(clock.elapsedMs).toBeLessThan(60_000);
});

describe('a session that is used by ID', () => {
	const settings = { agent: 'a', workflowId: 'w2', executionId: 'e2', ttlMs: 720 * HOUR };
	const keep = async (from = table.open()) => {
		const resuming = openStore(settings, from, clock);
		for (let turns = 0; turns < 2; turns++) resuming.resumedById('s1', 's1');
		return await clock.run(resuming.flush());
	};

	async function remember(ttlMs: number, name = 'a'): Promise<void> {
		const sessions = openStore({ ...settings, agent: name, ttlMs }, table.open(), clock);
		sessions.opened('k', 's1');
		sessions.used('k', sessions.find('k'));
		await clock.run(sessions.flush());
		table.calls.length = 0;
	}

	test('keeps the mapping of its key alive, with turns, last use and its own lifetime', async () => {
		await remember(HOUR);
		await clock.advance(HOUR - 1_000);
		expect((await keep()).ok).toBe(true);
		expect(table.calls).toEqual(['read', 'swap']);
		const [row] = table.all();
		expect(row).toMatchObject({ lastExecutionId: 'e2', workflowId: 'w2' });
		expect(Date.parse(String(row?.lastUsedAt))).toBeGreaterThan(clock.wallNow() - 1_000);
		expect(Number(row?.expiresAtMs) - clock.wallNow()).toBeGreaterThan(HOUR - 1_000);
		expect(Number(row?.expiresAtMs) - clock.wallNow()).toBeLessThanOrEqual(HOUR);
	});

	test('is stored under the last of the IDs under which it continued', async () => {
		await remember(HOUR);
		const sessions = openStore(settings, table.open(), clock);
		for (const [from, to] of [
			['s1', 's2'],
			['s2', 's3'],
			['x1', 'x2'],
		] as const)
			sessions.resumedById(from, to);
		await clock.run(sessions.flush());
		expect(table.all()).toMatchObject([{ sessionId: 's3', lastExecutionId: 'e2' }]);
	});

	test('is not matched with that of another agent, nor with an expired mapping', async () => {
		await remember(HOUR, 'b');
		await keep();
		expect(table.calls).toEqual(['read']);
		table = new MemoryTable(clock);
		await remember(HOUR);
		await clock.advance(HOUR + 1);
		await keep();
		expect(table.calls).toEqual(['read']);
	});

	test('needs no Data Tables', async () => {
		const executeWorkflow = async () => await Promise.reject(new Error('Unrecognized node type: dataTable'));
		const none = openTable({ executeWorkflow }, SESSION_TABLE);
		expect(await keep(none)).toEqual({ ok: true, value: undefined });
		expect(clock.elapsedMs).toBe(0);
	});
});

describe('an agent that opens the same session for every key', () => {
	beforeEach(() => {
		agent.onlySession = 'default';
	});

	test.each(['one execution', 'two executions'])('does not mix the keys of %s unnoticed', async (where) => {
		const one = worker();
		const asks = [...ask('I am Anna', 'anna'), ...ask('Who am I?', 'ben')];
		const runs = where === 'one execution' ? [asks] : asks.map((each) => [each]);
		const outcomes: TurnOutcome[] = [];
		for (const run of runs) {
			const done = await clock.run(one.run(run));
			if (done !== 'died') outcomes.push(...done);
		}
		expect(kinds(outcomes)).toEqual(['new', 'agentFailed']);
		expect(outcomes[1]?.result).toMatchObject({
			failure: {
				message: 'The platform answered this key in session default, which belongs to another key',
				details: {
					mayHaveRun: true,
					sessionId: 'default',
					answer: 're Who am I?',
				},
			},
		});
		expect(table.all().map(({ sessionKey, sessionId }) => [sessionKey, sessionId])).toEqual([
			['anna', 'default'],
		]);
		expect(kinds(await clock.run(one.run(ask('It is me', 'anna'))))).toEqual(['mapped']);
	});
});

test('a key keeps its session while another execution reads its row, which does not name it yet', async () => {
	const known = new KnownSessions();
	const open = (): SessionStore => openStore({}, table.open(), clock, { known });
	const waiting = { whyStop: () => undefined, pause: () => undefined };
	const [one, other] = [open(), open()];
	expect(await clock.run(one.obtain('anna', waiting))).toEqual({ ok: true, value: '' });
	one.opened('anna', 'default');
	await clock.run(other.load(['anna', 'ben']));
	expect(other.isOfAnother('ben', 'default')).toBe(true);
	await clock.run(one.flush());
	await clock.run(forget('anna'));
	await clock.run(other.load(['anna']));
	expect(other.isOfAnother('ben', 'default')).toBe(false);
});

test('a session is free again once its key is forgotten or has another one, or after ten thousand others', () => {
	const known = new KnownSessions();
	const isFree = (sessionId: string): boolean => !known.isOfAnother('a', 'other', sessionId);
	known.keep('a', 'k', 's1');
	known.keep('a', 'other', 's1');
	expect([isFree('s1'), known.isOfAnother('a', 'k', 's1')]).toEqual([false, false]);
	expect(known.isOfAnother('b', 'other', 's1')).toBe(false);
	known.keep('a', 'k', 's2');
	expect([isFree('s1'), isFree('s2')]).toEqual([true, false]);
	known.forget('k');
	expect(isFree('s2')).toBe(true);
	known.keep('a', 'k', 's1');
	for (let index = 0; index < 10_000; index++) known.keep('a', `key ${index}`, `session ${index}`);
	expect([isFree('s1'), isFree('session 0')]).toEqual([true, false]);
});
