import { deeplyNested } from '../../unit/FlowTask/hostileJson';
import type { HarnessRun, ItemInput } from '../harness';
import { everythingSaid, sharedStage } from '../harness/stage';
import { envelope, item, openScriptedAgent, OPTIONS } from './scriptedAgent';
import { CONTINUE } from './agent.fixture';

/* Tests hostile input: IDs that a number cannot hold exactly, escaped secrets and deep nesting. */

const agent = sharedStage(openScriptedAgent);

describe('IDs that are long numbers', () => {
	const raw = (id: string): string =>
		`{"success_response":true,"http_status_code":200,"data":{"answer":"hello","session_id":${id}}}`;
	const [ANNA, BEN] = ['9007199254740992', '9007199254740993'];

	test.each([false, true])(
		'belong to two sessions if they differ in the last digit (stream: %s)',
		async (stream) => {
			agent.answer((response, call) => {
				const body = raw(call % 2 === 1 ? ANNA : BEN);
				if (stream) response.setHeader('content-type', 'text/event-stream');
				response.end(stream ? `event: done\ndata: ${body}\n\n` : body);
			});
			const items = ['anna', 'ben'].map((key) => ({ json: { say: 'hi', key } }));
			const parameters = {
				...{ sessionMode: 'mapped', sessionKey: '={{ $json.key }}', stream },
				options: { ...OPTIONS, concurrency: 1 },
			};
			const ids = (run: HarnessRun) => run.jsons().map(({ session }) => session);
			expect(ids(await agent.ask(parameters, {}, items))).toMatchObject([{ id: ANNA }, { id: BEN }]);
			const stored = agent.tables.rows('flow_agent_sessions').map(({ sessionId }) => sessionId);
			expect(stored.sort()).toEqual([ANNA, BEN]);
			await agent.ask(parameters, {}, items);
			expect(agent.calls.map(({ session_id: id }) => id)).toEqual([undefined, undefined, ANNA, BEN]);
		},
	);

	test('are sent with all digits for an interrupt and its session', async () => {
		agent.says(
			`{"success_response":true,"http_status_code":200,"data":{"session_id":${BEN},"interrupt":{"id":${ANNA},"tool_name":"t","arguments":"{\\"order\\":${BEN}}"}}}`,
		);
		const run = await agent.ask();
		const { json } = run.items(1)[0]!;
		expect(json).toMatchObject({ interrupt: { id: ANNA, arguments: { order: BEN } }, session: { id: BEN } });
		await agent.ask({ operation: 'resume', result: '={{ $json.interrupt.input }}' }, CONTINUE, [{ json }]);
		expect(agent.calls[1]).toMatchObject({
			session_id: BEN,
			interrupt_result: { id: ANNA, result: { order: BEN } },
		});
	});

	test.each([
		['a session', { sessionMode: 'explicit', sessionId: '={{ $json.id }}' }, "'Session ID'"],
		['a session key', { sessionMode: 'mapped', sessionKey: '={{ $json.id }}' }, "'Session Key'"],
		[
			'a part of a session key',
			{ sessionMode: 'mapped', sessionKey: '={{ { a: [$json.id] } }}' },
			"'Session Key'",
		],
		[
			'an idempotency key',
			{ options: { ...OPTIONS, idempotencyKey: '={{ $json.id }}' } },
			"'Idempotency Key'",
		],
		['a message', { message: '={{ $json.id }}' }, "'Message'"],
		[
			'a session to resume',
			{ operation: 'resume', resumeSessionId: '={{ $json.id }}', interruptId: '', result: 'x' },
			"'Session ID'",
		],
		[
			'an interrupt',
			{ operation: 'resume', resumeSessionId: 's', interruptId: '={{ $json.id }}', result: 'x' },
			"'Interrupt ID'",
		],
		[
			'a result',
			{ operation: 'resume', resumeSessionId: 's', interruptId: 'i', result: '={{ { order: $json.id } }}' },
			"'Result'",
		],
		['a key to forget', { operation: 'forgetSession', forgetKey: '={{ $json.id }}' }, "'Session Key'"],
	])(
		'are refused as %s if n8n has rounded them, and the other item continues',
		async (name, parameters, label) => {
			agent.says(envelope({ answer: 'hello', session_id: name }));
			const items = [{ json: { say: 'hi', id: Number(BEN) } }, { json: { say: 'hi', id: 42 } }];
			const run = await agent.ask(parameters, CONTINUE, items);
			const [first, second] = run.jsons();
			expect(first).toMatchObject({
				error: expect.stringMatching(`^${label} contains \\d+, which is a number beyond 9007199254740991`),
				details: { kind: 'badInput' },
			});
			expect(second).not.toHaveProperty('error');
		},
	);
});

test('sends an empty list as the message, because it may be what the agent is told', async () => {
	agent.says(envelope({ answer: 'hello', session_id: 's' }));
	await agent.ask({ message: '={{ [] }}' });
	expect(agent.calls).toMatchObject([{ message: '[]' }]);
});

test.each(["={{ DateTime.fromMillis(0, { zone: 'utc' }) }}", '={{ new Date(0) }}'])(
	'sends a date as its text, and uses it as a key like the same text (%s)',
	async (date) => {
		agent.says(envelope({ answer: 'hello', session_id: 's' }));
		const run = await agent.ask({ message: date, sessionMode: 'mapped', sessionKey: date });
		expect(agent.calls).toMatchObject([{ message: '1970-01-01T00:00:00.000Z' }]);
		expect(item(run).session).toMatchObject({ key: '1970-01-01T00:00:00.000Z' });
	},
);

describe('NaN, which Number() returns for a missing field', () => {
	const nothing = '={{ Number($json.missing) }}';

	test.each([
		['a message', { message: nothing }, "'Message' is empty"],
		[
			'an idempotency key',
			{ options: { ...OPTIONS, idempotencyKey: nothing } },
			"'Idempotency Key' is empty",
		],
		['a session ID', { sessionMode: 'explicit', sessionId: nothing }, "'Session ID' is empty"],
	])('is not accepted as %s', async (_name, parameters, said) => {
		agent.says(envelope({ answer: 'hello', session_id: 's' }));
		expect(item(await agent.ask(parameters)).error).toContain(said);
		expect(agent.calls).toEqual([]);
	});

	test.each([nothing, '={{ $json.missing }}', ''])('does not answer an interrupt (%s)', async (result) => {
		agent.says(envelope({ answer: 'hello', session_id: 's' }));
		const resume = { operation: 'resume', resumeSessionId: 's', interruptId: 'i' };
		expect(item(await agent.ask({ ...resume, result })).error).toBe("'Result' is empty for this item");
		expect(agent.calls).toEqual([]);
		expect(item(await agent.ask({ ...resume, result: '={{ null }}' })).answer).toBe('hello');
		expect(item(await agent.ask({ ...resume, result: 'null' })).answer).toBe('hello');
		const isNull = { interrupt_result: { id: 'i', result: null } };
		expect(agent.calls).toMatchObject([isNull, isNull]);
	});

	test('an answer to an interrupt does not lose the first value of a key that it has twice', async () => {
		const resume = { operation: 'resume', resumeSessionId: 's', interruptId: 'i' };
		const result = '{"pay":{"to":"Ann","to":"Bob"}}';
		expect(item(await agent.ask({ ...resume, result })).error).toContain('contains the key "to" twice');
		expect(agent.calls).toEqual([]);
	});
});

test('words from the session of another key are not streamed to the chat of this one', async () => {
	agent.answer((response) => {
		response.setHeader('content-type', 'text/event-stream');
		response.write(`data: ${envelope({ session_id: 'same', delta: 'Anna owes 7.' })}\n\n`);
		response.end(`event: done\ndata: ${envelope({ session_id: 'same', answer: 'Anna owes 7.' })}\n\n`);
	});
	const items = ['anna', 'ben'].map((key) => ({ json: { say: 'hi', key } }));
	const parameters = { sessionMode: 'mapped', sessionKey: '={{ $json.key }}', stream: true };
	const options = { ...OPTIONS, concurrency: 1 };
	const run = await agent.ask(
		{ ...parameters, options },
		{ ...CONTINUE, mode: 'webhook', streaming: true },
		items,
	);
	const shown = run.chunks.filter(({ type }) => type === 'item').map(({ content }) => content);
	expect(shown.join('')).toBe('Anna owes 7.');
	expect(run.jsons()[1]?.error).toContain('belongs to another key');
});

test('a key in the path of the call is in no table', async () => {
	const account = { invokePath: '/run?api_key=k3y-0123456' };
	const options = { ...OPTIONS, idempotencyKey: 'k', recordTurns: true };
	await agent.ask({ sessionMode: 'mapped', sessionKey: 'k', options }, { ...CONTINUE, account });
	for (const name of ['flow_agent_sessions', 'flow_agent_turns', 'flow_task_ledger']) {
		const rows = agent.tables.rows(name);
		expect(rows).toHaveLength(1);
		expect(JSON.stringify(rows)).not.toContain('k3y-0123456');
	}
});

describe('a token that the platform writes with escapes', () => {
	/** Each character as JSON may write it. */
	const escaped = (text: string): string =>
		[...text].map((char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
	const token = 'agt_a/b+SECRETPART0';
	const SPELLINGS: ReadonlyArray<readonly [string, string]> = [
		['with all characters escaped', escaped(token)],
		['with an escaped slash', token.replaceAll('/', '\\/')],
		['with one escaped character', token.replace('_', '\\u005F')],
	];

	const FORMS: ReadonlyArray<readonly [string, (spelt: string) => string]> = [
		['an answer', (spelt) => `{"answer":"it is ${spelt}","session_id":"s"}`],
		['a key', (spelt) => `{"answer":"hello","session_id":"s","usage":{"${spelt}":1}}`],
		['a session', (spelt) => `{"answer":"hello","session_id":"${spelt}"}`],
		['a question', (spelt) => `{"session_id":"s","interrupt":{"id":"i","question":"${spelt}"}}`],
		['nothing that is read', (spelt) => `{"session_id":"s","note":"${spelt}","${spelt}":1}`],
	];

	describe.each(SPELLINGS)('%s', (_spelling, spelt) => {
		test.each(FORMS)('in %s, reaches no item, table or log', async (_name, dataOf) => {
			for (const stream of [false, true]) {
				const body = `{"success_response":true,"http_status_code":200,"data":${dataOf(spelt)}}`;
				agent.answer((response) => {
					if (stream) response.setHeader('content-type', 'text/event-stream');
					response.end(stream ? `data: ${body}\n\n` : body);
				});
				const parameters = {
					...{ stream, simplify: false, sessionMode: 'mapped', sessionKey: 'k' },
					options: { ...OPTIONS, idempotencyKey: `k${stream}` },
				};
				const run = await agent.ask(parameters, { ...CONTINUE, account: { agentToken: token } });
				expect(run.items().length + run.items(1).length).toBe(1);
				const tables = ['flow_agent_sessions', 'flow_task_ledger'].map((name) => agent.tables.rows(name));
				for (const text of [everythingSaid(run), JSON.stringify(tables)]) {
					expect(text).not.toContain('SECRETPART');
					expect(unescaped(text)).not.toContain('SECRETPART');
				}
			}
		});
	});

	test.each(SPELLINGS)('%s, does not appear after a failure or an upload', async (_name, spelt) => {
		const account = { agentToken: token };
		const unseen = (run: HarnessRun): void => {
			expect(unescaped(everythingSaid(run))).not.toContain('SECRETPART');
		};
		agent.says(
			`{"success_response":false,"http_status_code":500,"request_id":"${spelt}","data":{"reason":"${spelt}","answer":"${spelt}"}}`,
		);
		unseen(await agent.ask({}, { ...CONTINUE, account }));
		const data = `{"url":"https://files.example/?key=${spelt}","expires_at":"${spelt}"}`;
		agent.saysToUploads(`{"success_response":true,"http_status_code":200,"data":${data}}`);
		const file = { data: Buffer.from('x'), fileName: 'a.txt' };
		const uploaded = await agent.ask({ operation: 'uploadMedia' }, { account }, [
			{ json: {}, binary: { data: file } },
		]);
		expect(item(uploaded).url).toContain('hidden');
		unseen(uploaded);
	});

	function unescaped(text: string): string {
		return text.replace(/\\+u([0-9a-f]{4})/gi, (_all, code: string) =>
			String.fromCharCode(Number.parseInt(code, 16)),
		);
	}
});

describe('deep nesting', () => {
	test('an item that is nested too deeply is sent like the others', async () => {
		agent.says(envelope({ answer: 'hello', session_id: 's' }));
		const deep: unknown = JSON.parse(deeplyNested('object'));
		const items = [{ json: { say: 'one', deep } }, { json: { say: 'two' } }] as ItemInput[];
		const run = await agent.ask({}, CONTINUE, items);
		const [first, second] = run.jsons();
		expect(first).toMatchObject({ answer: 'hello' });
		expect(second).toMatchObject({ answer: 'hello' });
	});

	test.each([
		[20_000, 'a message', { message: '={{ $json.deep ?? $json.say }}' }, 'nested too deeply'],
		[900, 'extra fields', { options: { ...OPTIONS, extraBody: '={{ $json.deep ?? {} }}' } }, "'Extra Body'"],
		[
			900,
			'extra fields along with an idempotency key',
			{ options: { ...OPTIONS, idempotencyKey: '={{ $json.say }}', extraBody: '={{ $json.deep ?? {} }}' } },
			'nested too deeply',
		],
	])('%d levels in %s fail only that item', async (levels, _name, parameters, said) => {
		agent.says(envelope({ answer: 'hello', session_id: 's' }));
		const deep: unknown = JSON.parse(deeplyNested('object', levels));
		const items = [{ json: { say: 'one', deep } }, { json: { say: 'two' } }] as ItemInput[];
		const run = await agent.ask(parameters, CONTINUE, items);
		const [first, second] = run.jsons();
		expect(first?.error).toContain(said);
		expect(second).toMatchObject({ answer: 'hello' });
	});
});
