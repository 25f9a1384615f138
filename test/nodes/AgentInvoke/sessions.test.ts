import { type HarnessRun, type ItemInput } from '../harness';
import { everythingSaid, sharedStage } from '../harness/stage';
import { harnessWorkflowId, noDataTables } from '../harness/dataTables';
import { CONTINUE, openAgentStage } from './agent.fixture';

const TABLE = 'flow_agent_sessions';
const MAPPED = { sessionMode: 'mapped', sessionKey: '={{ $json.key }}' };

const stage = sharedStage(openAgentStage);

const said = (key: unknown, say = 'hi'): ItemInput => ({ json: { key: key as string, say } });

function sessionsOf(run: HarnessRun): unknown[] {
	expect(run.error).toBeUndefined();
	return run.jsons().map(({ session }) => session);
}

const idsOf = (run: HarnessRun): unknown[] =>
	sessionsOf(run).map((session) => (session as { id: unknown }).id);

/** The sessions in the table were last used so long ago that a use is written again. */
function lastUsedDaysAgo(days: number): void {
	const lastUsedAt = new Date(Date.now() - days * 24 * 3_600_000).toISOString();
	stage.tables.edit(TABLE, (row) => ({ ...row, lastUsedAt }));
}

test('two items with one key are turns of one session, as is the next execution', async () => {
	const first = await stage.run([said('anna', 'one'), said('anna', 'two')], MAPPED);
	expect(sessionsOf(first)).toMatchObject([
		{ key: 'anna', source: 'new' },
		{ key: 'anna', source: 'mapped' },
	]);
	lastUsedDaysAgo(1);
	const second = await stage.run([said('anna', '[recall]')], MAPPED);
	expect(second.jsons()[0]).toMatchObject({
		answer: 'one | two',
		session: { key: 'anna', source: 'mapped' },
	});
	expect(new Set([...idsOf(first), ...idsOf(second)]).size).toBe(1);
	expect(stage.tables.rows(TABLE)).toMatchObject([
		{
			sessionKey: 'anna',
			sessionId: idsOf(first)[0],
			workflowId: harnessWorkflowId(),
			lastExecutionId: second.executionId,
			lastUsedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
		},
	]);
});

test('a session key whose expression changes with each evaluation is evaluated once', async () => {
	const run = await stage.run([said([])], { ...MAPPED, sessionKey: '={{ $json.key.push(1) }}' });
	expect(sessionsOf(run)).toMatchObject([{ key: '1' }]);
});

test('an empty key stands for the session of the chat, but not if an expression returned nothing', async () => {
	const chat = { json: { sessionId: 'chat-1', say: 'hi' } };
	const run = await stage.run([chat, said('no chat'), chat], { sessionMode: 'mapped' });
	expect(sessionsOf(run)).toMatchObject([
		{ key: 'chat-1', source: 'new' },
		{ key: '', source: 'new' },
		{ key: 'chat-1', source: 'mapped' },
	]);
	expect(sessionsOf(await stage.run([chat], MAPPED))).toMatchObject([{ key: '', source: 'new' }]);
	const forgotten = await stage.run([chat], { operation: 'forgetSession' });
	expect(forgotten.jsons()[0]).toMatchObject({ key: 'chat-1', deleted: true });
});

test.each([1, 8])(
	'20 items with 5 keys keep their order within each session (concurrency %d)',
	async (concurrency) => {
		// Turns take longer than the interval between the first requests to an account.
		const items = Array.from({ length: 20 }, (_, i) => said(`k${i % 5}`, `${i} [takes: 300]`));
		const run = await stage.run(items, { ...MAPPED, options: { concurrency, requestsPerSecond: 0 } });
		expect(new Set(idsOf(run)).size).toBe(5);
		const books = stage.platform.books();
		expect(books.concurrentPerSession).toBe(1);
		expect(books.mostInvocationsAtOnce).toBe(Math.min(5, concurrency));
		for (const { messages } of books.sessions) {
			const order = messages.map((message) => Number.parseInt(message, 10));
			expect(order).toHaveLength(4);
			expect(order).toEqual([...order].sort((a, b) => a - b));
			expect(new Set(order.map((i) => i % 5)).size).toBe(1);
		}
		expect(run.items().map(({ pairedItem }) => pairedItem)).toEqual(items.map((_, item) => ({ item })));
	},
);

test.each([
	"={{ '  ' }}",
	'={{ null }}',
	'={{ undefined }}',
	'={{ NaN }}',
	"={{ new Date('x') }}",
	'={{ [] }}',
	'={{ ({}) }}',
	'={{ [$json.missing] }}',
	'=customer-{{ $json.missing }}',
])('the key %s counts as none, so each item gets a new session', async (sessionKey) => {
	const run = await stage.run([said('a'), said('b')], { sessionMode: 'mapped', sessionKey });
	expect(new Set(idsOf(run)).size).toBe(2);
	expect(sessionsOf(run)).toMatchObject([{ key: '', source: 'new' }, { source: 'new' }]);
	expect(run.hints()).toEqual([expect.stringContaining('no session key')]);
	expect(stage.tables.operations).toEqual([]);
});

test.each(['=customer-{{ $json.key }}', "={{ '' + $json.missing }}", '={{ [$json.missing, $json.say] }}'])(
	'two persons never share the key %s, whose value is missing: it is refused, and nothing is sent',
	async (sessionKey) => {
		const persons = [said({ id: 1 }, 'hi'), said({ id: 2 }, 'hi')];
		for (const operation of ['invoke', 'forgetSession']) {
			const parameters = { operation, sessionMode: 'mapped', sessionKey, forgetKey: sessionKey };
			const run = await stage.run(persons, parameters, CONTINUE);
			expect(run.jsons().map(({ error }) => error)).toEqual(
				persons.map(() => expect.stringContaining('stands where a value should be')),
			);
		}
		expect(stage.platform.books().invocations).toEqual([]);
	},
);

test('keys that look like expressions, contain unusual characters or share their beginning are never confused', async () => {
	const keys = [
		'={{ 1+1 }}',
		'2',
		'{{ $json }}',
		'\u0000',
		'\uFFFD',
		'Anna',
		'anna',
		' anna',
		0,
		'false',
		{ a: 1 },
	];
	const first = await stage.run(
		keys.map((key) => said(key)),
		MAPPED,
	);
	expect(new Set(idsOf(first)).size).toBe(keys.length);
	const second = await stage.run(
		keys.map((key) => said(key)),
		MAPPED,
	);
	expect(idsOf(second)).toEqual(idsOf(first));
	expect(stage.tables.rows(TABLE)).toHaveLength(keys.length);
	expect(JSON.stringify(stage.tables.rows(TABLE))).not.toContain('\\u0000');
});

test('300 items cost few operations if their sessions are new, and one or two if they are known', async () => {
	const items = Array.from({ length: 300 }, (_, i) => said(`k${i}`));
	const options = { concurrency: 50, requestsPerSecond: 0 };
	const run = await stage.run(items, { ...MAPPED, options });
	expect(new Set(idsOf(run)).size).toBe(300);
	expect(stage.tables.rows(TABLE)).toHaveLength(300);
	const count = (operation: string): number =>
		stage.tables.operations.filter((one) => one.startsWith(operation)).length;
	// Items whose turns come at the same time claim their keys together, and all items write together.
	expect(count('get')).toBeLessThan(2);
	expect(count('insert, then get')).toBeLessThan(200);
	expect(count('update')).toBeLessThan(20);
	stage.tables.operations.length = 0;
	await stage.run(items, { ...MAPPED, options });
	// The earlier run has already found the table.
	expect(stage.tables.operations).toEqual([`get ${TABLE}`]);
	lastUsedDaysAgo(1);
	stage.tables.operations.length = 0;
	await stage.run(items, { ...MAPPED, options });
	expect(stage.tables.operations).toEqual([`get ${TABLE}`, `update, then get ${TABLE}`]);
});

test('simultaneous executions share operations, and each gets its own session', async () => {
	await stage.run([said('makes the table')], MAPPED);
	const keys = Array.from({ length: 30 }, (_, index) => `together ${index}`);
	// A sub-execution in n8n takes about this long.
	stage.tables.before = async () => await new Promise((resolve) => setTimeout(resolve, 30));
	const ask = async (): Promise<unknown[]> => {
		stage.tables.operations.length = 0;
		const runs = await Promise.all(keys.map(async (key) => await stage.run([said(key)], MAPPED)));
		return runs.map((run) => idsOf(run)[0]);
	};
	const opened = await ask();
	expect(new Set(opened).size).toBe(30);
	// One at a time, they would need 120 operations.
	expect(stage.tables.operations.length).toBeLessThan(60);
	expect(await ask()).toEqual(opened);
	expect(stage.tables.operations.length).toBeLessThan(30);
});

test('a session is kept if the turn that opened it failed', async () => {
	const failed = await stage.run([said('k', '[fail: no fuel]')], MAPPED);
	expect(failed.error?.message).toContain('no fuel');
	const next = await stage.run([said('k')], MAPPED);
	expect(sessionsOf(next)).toMatchObject([{ source: 'mapped' }]);
	expect(stage.platform.books().sessions).toHaveLength(1);
});

describe('a session that the platform no longer knows', () => {
	test('is reported as an error', async () => {
		await stage.run([said('k')], MAPPED);
		stage.platform.agent.expireSessions();
		const run = await stage.run([said('k')], MAPPED);
		expect(run.error?.message).toMatch(/no longer knows the session "ses_[\w-]+"/);
		expect(run.error?.description).toContain('Renew Expired Session');
	});

	test.each([false, true])('is renewed once if that option is on (stream: %s)', async (stream) => {
		const first = await stage.run([said('k'), said('other')], MAPPED);
		stage.platform.agent.expireSessions(String(idsOf(first)[0]));
		const options = { renewExpiredSession: true };
		const run = await stage.run([said('k', 'a'), said('k', 'b'), said('other')], {
			...MAPPED,
			options,
			stream,
		});
		expect(sessionsOf(run)).toMatchObject([
			{ key: 'k', source: 'renewed' },
			{ key: 'k', source: 'mapped' },
			{ key: 'other', source: 'mapped' },
		]);
		expect(stage.tables.rows(TABLE)).toMatchObject([
			{ sessionKey: 'k', sessionId: idsOf(run)[0] },
			{ sessionKey: 'other', sessionId: idsOf(first)[1] },
		]);
	});

	test('is not renewed twice', async () => {
		stage.platform.faults.add({ on: 'invoke', kind: 'sessionGone' });
		stage.platform.faults.add({ on: 'invoke', kind: 'code', code: 40400 });
		const run = await stage.run([{ json: { say: 'x' } }], {
			...{ sessionMode: 'explicit', sessionId: 'ses_gone' },
			options: { renewExpiredSession: true },
		});
		expect(run.status).toBe('error');
		expect(stage.platform.books().requests.invoke).toBe(2);
	});
});

test('keys belong to an agent, so another credential has its own sessions', async () => {
	const other = stage.platform.createAgent({ name: 'other' });
	const credentials = {
		one: stage.credentials.flowAgentApi,
		two: { ...stage.credentials.flowAgentApi, agentToken: other.token },
	};
	const runAs = async (id: string) => {
		const workflow = stage.workflow(MAPPED, { credentials: { flowAgentApi: { id, name: id } } });
		const { executeWorkflow } = stage.tables;
		return await stage.harness.run({ workflow, items: [said('k')], credentials, executeWorkflow });
	};
	const [one, two] = [await runAs('one'), await runAs('two')];
	expect(idsOf(one)).not.toEqual(idsOf(two));
	expect(sessionsOf(await runAs('two'))).toMatchObject([{ id: idsOf(two)[0], source: 'mapped' }]);
	expect(JSON.stringify(stage.tables.rows(TABLE))).not.toContain(other.token);
	expect(stage.tables.rows(TABLE)).toHaveLength(2);
});

test('Forget Session makes the next message start a new session', async () => {
	const first = await stage.run([said('k'), said('stays')], MAPPED);
	const forget = { operation: 'forgetSession', forgetKey: '={{ $json.key }}' };
	const run = await stage.run([said('k'), said('never seen'), said('k')], forget);
	expect(run.jsons()).toEqual([
		{ key: 'k', deleted: true, sessionId: idsOf(first)[0] },
		{ key: 'never seen', deleted: false, sessionId: '' },
		{ key: 'k', deleted: true, sessionId: idsOf(first)[0] },
	]);
	expect(sessionsOf(await stage.run([said('k'), said('stays')], MAPPED))).toMatchObject([
		{ source: 'new' },
		{ source: 'mapped' },
	]);
	const empty = await stage.run([said('')], forget);
	expect(empty.error?.message).toContain("'Session Key' is empty");
});

test('explicit and new sessions need no table', async () => {
	const first = await stage.run([said('')], { sessionMode: 'new' });
	const id = String(idsOf(first)[0]);
	const second = await stage.run([said('', '[recall]')], { sessionMode: 'explicit', sessionId: id });
	expect(sessionsOf(second)).toEqual([{ key: '', id, source: 'explicit' }]);
	const none = await stage.run([said('')], { sessionMode: 'explicit', sessionId: '' });
	expect(none.error?.message).toContain("'Session ID' is empty");
	expect(stage.tables.operations).toEqual([]);
});

test.each([MAPPED, { operation: 'forgetSession', forgetKey: '={{ $json.key }}' }])(
	'if n8n has no Data Tables, the node says so and sends nothing: %j',
	async (parameters) => {
		const run = await stage.run([said('k')], parameters, { executeWorkflow: noDataTables });
		expect(run.error?.message).toContain('no Data Tables');
		const items = await stage.run([said('k')], parameters, { executeWorkflow: noDataTables, ...CONTINUE });
		expect(items.jsons()[0]?.error).toContain('no Data Tables');
		expect(stage.platform.books().requests.invoke).toBe(0);
		if ('operation' in parameters) return;
		expect(run.error?.description).toMatch(/Nothing was sent\..*'By ID' or 'New Each Time'/);
	},
);

test('an n8n error about the Data Table is shown without the token', async () => {
	const { agentToken } = stage.platform;
	stage.tables.before = () => {
		throw new Error(`the value "${agentToken}" is too long for a column`);
	};
	const run = await stage.run([said('k')], MAPPED);
	expect(run.error?.message).toBeDefined();
	expect(everythingSaid(run)).toContain('is too long for a column');
	expect(everythingSaid(run)).not.toContain(agentToken);
	expect(stage.platform.books().invocations).toEqual([]);
});

test('if the table is full, nothing is sent for keys without a session', async () => {
	stage.tables.before = (operation) => {
		if (operation.startsWith('insert')) throw new Error('Data table size limit exceeded');
	};
	const items = Array.from({ length: 20 }, (_, i) => said(`k${i % 5}`));
	const run = await stage.run(items, MAPPED, CONTINUE);
	expect(run.items()).toHaveLength(20);
	for (const { json } of run.items()) expect(json.error).toContain('is full');
	expect(run.jsons()[0]?.message).toContain('size limit exceeded. Without Data Tables, set');
	expect(stage.platform.books().requests.invoke).toBe(0);
});

test('if the table rejects changes, the answers are returned, and a hint says what is missing', async () => {
	await stage.run([said('k')], MAPPED);
	lastUsedDaysAgo(1);
	stage.tables.before = (operation) => {
		if (operation.startsWith('update')) throw new Error('Data table size limit exceeded');
	};
	const run = await stage.run([said('k')], MAPPED);
	expect(idsOf(run)).toHaveLength(1);
	expect(run.hints()).toEqual([expect.stringContaining('could not be written')]);
});
