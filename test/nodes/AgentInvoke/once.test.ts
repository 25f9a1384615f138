import { createHash } from 'node:crypto';

import type { FaultRule } from '../../platform';
import { repeated, type HarnessRun, type ItemInput } from '../harness';
import { RETRY, sayings, sharedStage } from '../harness/stage';
import { noDataTables } from '../harness/dataTables';
import { CONTINUE, openAgentStage } from './agent.fixture';

/* Whatever fails at whatever point, the agent never runs twice for one item. */

const stage = sharedStage(openAgentStage);

const ITEMS = 4;
const FAST = { options: { requestsPerSecond: 0, retries: 0 } };

/** Items that each ask for a side effect that must not happen twice. */
function orders(count = ITEMS): ItemInput[] {
	return sayings(...Array.from({ length: count }, (_, i) => `order ${i} [side effect: order ${i}]`));
}

function expectNothingTwice(): void {
	const { effects, duplicateInvocations } = stage.platform.books();
	for (const times of Object.values(effects)) expect(times).toBe(1);
	expect(duplicateInvocations).toBe(0);
}

function expectEachOnce(run: HarnessRun): void {
	expect(run.error).toBeUndefined();
	expect(run.items()).toHaveLength(ITEMS);
	expectNothingTwice();
	expect(Object.keys(stage.platform.books().effects)).toHaveLength(ITEMS);
}

type Mishap = Omit<FaultRule, 'on'>;
const PROVABLY_NOT_RUN: Mishap[] = [
	{ kind: 'code', code: 40000 },
	{ kind: 'tokenExpired' },
	{ kind: '429', retryAfter: 'none' },
	{ kind: '5xx', status: 503 },
];
const MAYBE_RUN: Mishap[] = [
	{ kind: 'resetAfter' },
	{ kind: 'truncatedJson', cut: 'length' },
	{ kind: 'truncatedJson', cut: 'connection' },
	{ kind: '5xx', status: 502, body: 'html', afterWork: true },
	{ kind: '5xx', status: 503, body: 'empty', afterWork: true },
	{ kind: 'html200', afterWork: true },
];
const PLACES = Array.from({ length: ITEMS }, (_, k) => k);

describe.each(PROVABLY_NOT_RUN)('a call that cannot have run: %j', (mishap) => {
	test.each(PLACES)('is repeated by Retry On Fail, after %d request(s)', async (skip) => {
		stage.platform.faults.add({ on: 'invoke', ...mishap, skip, times: 1 });
		expectEachOnce(await stage.run(orders(), FAST, RETRY));
	});

	test.each(PLACES)('is repeated by Retry Execution, after %d request(s)', async (skip) => {
		const rule = stage.platform.faults.add({ on: 'invoke', ...mishap, skip });
		const failed = await stage.run(orders(), FAST);
		expect(failed.status).toBe('error');
		rule.remove();
		expectEachOnce(await stage.harness.retry(failed));
	});
});

describe.each(MAYBE_RUN)('a call that may have run: %j', (mishap) => {
	test.each(PLACES)(
		'is not repeated by Retry On Fail or Retry Execution, after %d request(s)',
		async (skip) => {
			stage.platform.faults.add({ on: 'invoke', ...mishap, skip, times: 1 });
			const run = await stage.run(orders(), FAST, RETRY);
			expect(run.error?.message).toContain('and got no usable answer, so the agent may have run');
			expect(run.error?.description).toContain('The earlier error was: ');
			expectNothingTwice();
			const retried = await stage.harness.retry(run);
			expect(retried.error?.message).toContain('may have run');
			expectNothingTwice();
			const rest = await stage.harness.retry(run, stage.workflow(FAST, CONTINUE));
			expect(rest.items().filter(({ json }) => 'error' in json)).toHaveLength(1);
			expect(Object.keys(stage.platform.books().effects)).toHaveLength(ITEMS);
			expectNothingTwice();
		},
	);
});

test('neither kind of retry repeats a call whose agent failed, unless the option allows it', async () => {
	const items = sayings('[side effect: a] [fail: no fuel]');
	const run = await stage.run(items, FAST, RETRY);
	expect(run.error?.description).toContain('The earlier error was: The agent failed: ');
	expect(stage.platform.books().effects).toEqual({ a: 1 });
	const options = { ...FAST.options, retryAmbiguous: true };
	await stage.harness.retry(run, stage.workflow({ options }));
	expect(stage.platform.books().effects).toEqual({ a: 2 });
});

describe('a call within one try', () => {
	test.each<Mishap>([
		{ kind: '429', retryAfter: 'seconds', retryAfterSeconds: 0.05 },
		{ kind: '5xx', status: 503 },
		{ kind: 'code', code: 42900 },
		{ kind: 'code', code: 50300 },
	])('is repeated if it did not run: %j', async (mishap) => {
		stage.platform.faults.add({ on: 'invoke', ...mishap, times: 1 });
		const run = await stage.run(orders(1), { options: { requestsPerSecond: 0 } });
		expect(run.jsons()[0]?.trace).toMatchObject({ attempts: 2 });
		expect(stage.platform.books().requests.invoke).toBe(2);
		expectNothingTwice();
	});

	test.each<Mishap>([...MAYBE_RUN, { kind: 'hang', afterWork: true }, { kind: 'resetBefore' }])(
		'is not repeated if it may have run, unless the option allows it: %j',
		async (mishap) => {
			stage.platform.faults.add({ on: 'invoke', ...mishap, times: 1 });
			const options = { requestsPerSecond: 0, timeoutSeconds: mishap.kind === 'hang' ? 1 : 60 };
			const run = await stage.run(orders(1), { options });
			expect(run.status).toBe('error');
			expect(run.error?.context).toMatchObject({ mayHaveRun: true });
			expect(stage.platform.books().requests.invoke).toBe(1);
			if (mishap.kind === 'hang') return;
			stage.platform.faults.add({ on: 'invoke', ...mishap, times: 1 });
			const again = await stage.run(orders(1), { options: { ...options, retryAmbiguous: true } });
			expect(again.items()).toHaveLength(1);
		},
	);

	test('did not run if the server could not be reached', async () => {
		const run = await stage.run(
			orders(1),
			{ options: { retries: 1 } },
			{ account: { baseUrl: 'http://127.0.0.1:9' } },
		);
		expect(run.error?.message).toMatch(/could not be reached.* after 2 tries/);
		expect(run.error?.context).not.toHaveProperty('mayHaveRun');
	});
});

test('with Continue On Fail and Retry On Fail, the first item is tried five times and the others once', async () => {
	stage.platform.faults.add({ on: 'invoke', kind: 'code', code: 40000, match: 'order 0' });
	const settings = { onError: 'continueErrorOutput', ...RETRY, maxTries: 5 } as const;
	const run = await stage.run(orders(), { ...FAST, sessionMode: 'new' }, settings);
	expect(run.error).toBeUndefined();
	expect(stage.platform.books().requests.invoke).toBe(ITEMS - 1 + 5);
	expectNothingTwice();
});

test('an expression whose value changes with each try does not make an item run twice', async () => {
	stage.platform.faults.add({ on: 'invoke', kind: 'code', code: 40000, skip: 2, times: 1 });
	const message = '={{ $json.say }} {{ $now.toMillis() }} {{ Math.random() }}';
	expectEachOnce(await stage.run(orders(), { ...FAST, message }, RETRY));
});

test('output options are read before anything is sent', async () => {
	const run = await stage.run(orders(1), {
		...FAST,
		simplify: '={{ $("Nowhere").item.json.x }}',
	});
	expect(run.status).toBe('error');
	expect(stage.platform.books().requests.invoke).toBe(0);
});

test('a retry with another body runs the agent again, and one with another timeout does not', async () => {
	const rule = stage.platform.faults.add({ on: 'invoke', kind: 'code', code: 40000, skip: 1 });
	const failed = await stage.run(orders(2), FAST);
	rule.remove();
	const options = { ...FAST.options, timeoutSeconds: 30 };
	await stage.harness.retry(failed, stage.workflow({ options }));
	expect(stage.platform.books().requests.invoke).toBe(3);
	const edited = stage.platform.faults.add({ on: 'invoke', kind: 'code', code: 40000, skip: 1 });
	const again = await stage.run(orders(2), FAST);
	edited.remove();
	const withBody = { options: { ...options, extraBody: '{"lang":"de"}' } };
	await stage.harness.retry(again, stage.workflow(withBody));
	expect(stage.platform.books().requests.invoke).toBe(3 + 2 + 2);
});

test('an execution without failures keeps answers only in its items', async () => {
	const run = await stage.run(sayings('[answer: unmistakable]'), FAST);
	const { contextData } = run.raw.data.executionData!;
	expect(JSON.stringify(contextData)).not.toContain('unmistakable');
});

test('a loop runs the agent again for the same items', async () => {
	const run = await stage.runWorkflow(repeated(stage.workflow(FAST), { say: 'x' }), sayings('x'));
	expect(run.error).toBeUndefined();
	expect(stage.platform.books().invocations).toHaveLength(3);
});

describe('with an idempotency key', () => {
	const KEYED = {
		options: { ...FAST.options, idempotencyKey: '={{ $json.id ?? "k" }}' },
	};
	const asked = (say = 'do it [side effect: a]', id = 'k'): ItemInput => ({ json: { say, id } });

	test('a repeated execution outputs the recorded answer, and the agent runs once', async () => {
		const first = await stage.run([asked()], KEYED);
		const second = await stage.run([asked()], { ...KEYED, simplify: false });
		const [one, two] = [first, second].map((run) => run.jsons()[0]);
		expect(one).not.toHaveProperty('replayed');
		expect(two).toMatchObject({ answer: one?.answer, session: one?.session, replayed: true });
		expect(two?.raw).toMatchObject({ success_response: true });
		expect(stage.platform.books().effects).toEqual({ a: 1 });
		expect(stage.platform.books().requests.invoke).toBe(1);
	});

	test('an interrupt is replayed as an interrupt', async () => {
		const say = '[tool: refund {"order": 7}]';
		await stage.run([asked(say)], KEYED);
		const second = await stage.run([asked(say)], KEYED);
		expect(second.jsons(1)[0]).toMatchObject({
			interrupt: { kind: 'tool', tool: 'refund', arguments: { order: 7 } },
			replayed: true,
		});
	});

	test('a call needs three table operations: a read, the claim with another read, and the result', async () => {
		await stage.run([asked('makes the table', 'first')], KEYED);
		stage.tables.operations.length = 0;
		await stage.run([asked()], KEYED);
		expect(stage.tables.operations.map((one) => one.replace(' flow_task_ledger', ''))).toEqual([
			'get',
			'insert, then get',
			'insert, then deleteRows',
		]);
	});

	describe('with a digest instead of answers', () => {
		const DIGEST = { options: { ...KEYED.options, idempotencyAnswers: 'digest' } };

		test('a repeat outputs that the call is done, and the table contains no text of the conversation', async () => {
			const say = 'my secret [side effect: a]';
			const first = await stage.run([asked(say)], DIGEST);
			const second = await stage.run([asked(say)], DIGEST);
			const [one, two] = [first, second].map((run) => run.jsons()[0]);
			expect(one?.answer).toContain('my secret');
			expect(one).not.toHaveProperty('answerDigest');
			const answerDigest = createHash('sha256')
				.update(one?.answer as string)
				.digest('base64url');
			expect(two).toMatchObject({ answer: '', answerDigest, replayed: true, session: one?.session });
			expect(two?.hint).toContain(`execution ${first.executionId}`);
			expect(JSON.stringify(stage.tables.rows('flow_task_ledger'))).not.toContain('secret');
			expect(stage.platform.books().effects).toEqual({ a: 1 });
			expect(stage.platform.books().requests.invoke).toBe(1);
		});

		test('an interrupt without its arguments is not replayed as an interrupt', async () => {
			const say = '[tool: refund {"order": 7}]';
			const first = await stage.run([asked(say)], DIGEST);
			expect(first.items(1)).toHaveLength(1);
			const second = await stage.run([asked(say)], DIGEST);
			expect(second.items(1)).toEqual([]);
			expect(second.jsons()[0]).toMatchObject({ answer: '', replayed: true });
			expect(JSON.stringify(stage.tables.rows('flow_task_ledger'))).not.toContain('refund');
		});
	});

	test('the same key is replayed within a run, and refused for another message', async () => {
		const run = await stage.run([asked(), asked(), asked('something else')], KEYED, CONTINUE);
		expect(run.jsons()).toMatchObject([
			{ answer: expect.any(String) },
			{ replayed: true },
			{
				error: expect.stringContaining('was used by execution'),
				details: { kind: 'badInput', idempotencyKey: 'k' },
			},
		]);
		expect(stage.platform.books().requests.invoke).toBe(1);
	});

	test('a long answer is reported as not kept, and a medium one is saved without its raw form', async () => {
		const say = (length: number): string => `[answer: ${'x'.repeat(length)}]`;
		await stage.run([asked(say(20_000), 'mid'), asked(say(40_000), 'long')], KEYED);
		const run = await stage.run([asked(say(20_000), 'mid'), asked(say(40_000), 'long')], KEYED, CONTINUE);
		expect(run.jsons()).toMatchObject([
			{ answer: 'x'.repeat(20_000), replayed: true },
			{
				error: expect.stringContaining('too long or too deeply nested to be kept'),
				message: expect.stringContaining('execution '),
			},
		]);
		expect(stage.platform.books().requests.invoke).toBe(2);
	});

	test('a key applies to one node or to the whole project', async () => {
		const runAs = async (id: string, idempotencyScope: string) =>
			await stage.run([asked()], { options: { ...KEYED.options, idempotencyScope } }, { id });
		for (const id of ['a', 'b']) await runAs(id, 'node');
		expect(stage.platform.books().effects).toEqual({ a: 2 });
		for (const id of ['a', 'b']) await runAs(id, 'project');
		expect(stage.platform.books().effects).toEqual({ a: 3 });
	});

	test('a key of the whole project is refused for another agent, and each agent keeps its own session', async () => {
		const parameters = {
			...{ sessionMode: 'mapped', sessionKey: 'anna' },
			options: { ...KEYED.options, idempotencyScope: 'project' },
		};
		const first = await stage.run([asked()], parameters, { id: 'a' });
		const mapped = stage.tables.rows('flow_agent_sessions');
		expect(mapped).toHaveLength(1);
		// The scope differs from that of tasks, so the same key can be used for a task as well.
		expect(new Set(stage.tables.rows('flow_task_ledger').map(({ scope }) => scope))).toEqual(
			new Set(['agent']),
		);
		const other = { id: 'b', account: { invokePath: '/api/agents/Invoke?of=another' } };
		const second = await stage.run([asked()], parameters, other);
		expect(second.error?.message).toContain('was used by execution');
		expect(second.error?.message).toContain('to ask another agent');
		expect(stage.tables.rows('flow_agent_sessions')).toEqual(mapped);
		expect(stage.platform.books().effects).toEqual({ a: 1 });
		const third = await stage.run([asked('hello', 'other key')], parameters, other);
		const sessionOf = (run: HarnessRun) => run.jsons()[0]?.session as { id: string };
		expect(sessionOf(third).id).not.toBe(sessionOf(first).id);
	});

	test.each<Mishap>([...MAYBE_RUN.slice(0, 2), { kind: 'hang', afterWork: true }])(
		'another execution sends nothing if the outcome of the first call is unknown: %j',
		async (mishap) => {
			stage.platform.faults.add({ on: 'invoke', ...mishap, times: 1 });
			const parameters = { options: { ...KEYED.options, timeoutSeconds: 1 } };
			await stage.run([asked()], parameters);
			const second = await stage.run([asked()], parameters);
			expect(second.error?.message).toContain(
				'The agent may have run for the idempotency key "k" in execution',
			);
			expect(stage.platform.books().effects).toEqual({ a: 1 });
			const third = await stage.run([asked()], { options: { ...KEYED.options, retryAmbiguous: true } });
			expect(third.jsons()[0]?.answer).toBeDefined();
		},
	);

	test('the key is also kept after an agent failed or a call was cancelled', async () => {
		await stage.run([asked('[side effect: a] [fail: x]')], KEYED);
		const second = await stage.run([asked('[side effect: a] [fail: x]')], KEYED);
		expect(second.error?.message).toContain('may have run for the idempotency key');

		const live = await stage.start([asked('[side effect: b] [hold]', 'held')], KEYED);
		while (stage.platform.agent.held === 0) await new Promise((resolve) => setTimeout(resolve, 5));
		live.cancel();
		await live.done;
		await new Promise((resolve) => setTimeout(resolve, 300));
		stage.platform.agent.release();
		const next = await stage.run([asked('[side effect: b] [hold]', 'held')], KEYED);
		expect(next.error?.message).toContain('may have run for the idempotency key');
		expect(stage.platform.books().effects).toEqual({ a: 1, b: 1 });
	});

	test('a refusal releases the key', async () => {
		stage.platform.faults.add({ on: 'invoke', kind: 'code', code: 40000, times: 1 });
		expect((await stage.run([asked()], KEYED)).status).toBe('error');
		expect((await stage.run([asked()], KEYED)).jsons()[0]?.replayed).toBeUndefined();
	});

	test('nothing is sent without a key or a table, or if the table is full', async () => {
		const empty = await stage.run([asked('x', '')], KEYED);
		expect(empty.error?.message).toContain("'Idempotency Key' is empty");
		const none = await stage.run([asked()], KEYED, { executeWorkflow: noDataTables });
		expect(none.error?.message).toContain('no Data Tables');
		stage.tables.before = (operation) => {
			if (operation.startsWith('insert')) throw new Error('Data table size limit exceeded');
		};
		expect((await stage.run([asked()], KEYED)).error?.message).toContain('is full');
		expect(stage.platform.books().requests.invoke).toBe(0);
	});
});
