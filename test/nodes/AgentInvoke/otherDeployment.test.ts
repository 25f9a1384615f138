import type { INodeParameters } from 'n8n-workflow';

import { NODE_NAME, type HarnessRun } from '../harness';
import { everythingSaid, sayings } from '../harness/stage';
import { TOKEN } from './otherDeployment';
import {
	accountOf,
	MAKES,
	ONE_MAKE,
	openOtherStage,
	UNHURRIED,
	type OtherStage,
} from './otherDeployment.fixture';

/* A deployment that nobody guesses: everything that AgentInvoke knows of it stands in its credential. */

const item = (run: HarnessRun, output = 0, at = 0) => {
	expect(run.error).toBeUndefined();
	return run.output(NODE_NAME, output)[at]?.json ?? {};
};
const failure = (run: HarnessRun) => item(run) as { error?: string; details?: Record<string, unknown> };
const STREAM = { stream: true };

describe.each(Object.keys(MAKES))('%s', (make) => {
	let stage: OtherStage;
	beforeAll(async () => {
		stage = await openOtherStage(make);
	});
	afterAll(async () => {
		await stage.close();
	});
	beforeEach(() => {
		stage.reset();
	});

	const goOn = (sessionId: unknown, parameters: INodeParameters = {}): INodeParameters => ({
		...{ sessionMode: 'explicit', sessionId: String(sessionId) },
		...parameters,
	});

	test.each([false, true])(
		'a session goes on, all digits of its number kept (stream: %s)',
		async (stream) => {
			const first = item(await stage.run(sayings('one "quoted" $session {{ 1 }}'), { stream }));
			const [session] = stage.deployment.sessions;
			expect(first).toMatchObject({
				answer: '1: one "quoted" $session {{ 1 }}',
				session: { id: session?.id },
				usage: { tok_in: 1 },
				trace: { requestId: expect.stringMatching(/^trace-\d+$/) },
			});
			const second = item(await stage.run(sayings('two'), goOn(session?.id, { stream })));
			expect(second).toMatchObject({ answer: '2: two', session: { id: session?.id } });
			expect(stage.deployment.verdicts()).toEqual({ ran: 2 });
			expect(stage.deployment.sessions).toMatchObject([{ said: ['one "quoted" $session {{ 1 }}', 'two'] }]);
		},
	);

	test('a stream: tools are events of their own, neither text nor an end', async () => {
		const tools = [
			{ fn: 'search', with: { what: 'foxes' } },
			{ fn: 'count', with: {} },
		];
		stage.deployment.plan = () => ({ says: 'Zwei Füchse 🦊', tools, pauseMs: 300 });
		const out = item(await stage.run(sayings('hi'), STREAM));
		expect(out.answer).toBe('Zwei Füchse 🦊');
		expect(out.events).toHaveLength(4);
		expect(JSON.stringify(out.events)).toMatch(/search.*foxes.*count/);
		expect(out.readFrom).toEqual(expect.anything());
		const simple = item(await stage.run(sayings('hi'), { ...STREAM, simplify: true }));
		expect(simple).toMatchObject({ answer: 'Zwei Füchse 🦊' });
		expect(simple).not.toHaveProperty('events');
	});

	const { options } = MAKES[make]!;
	/** Events before the last one, of a stream without tools: where there is no envelope, a draft is among them. */
	const allButLast = options.envelope === false ? 5 : 4;
	// Where the body ends a stream, one that ends early is whole.
	const breaks = options.streamEnd === 'body' ? ['cutAfter'] : ['cutAfter', 'endAfter'];

	test.each(breaks.flatMap((how) => [0, 1, 3, allButLast].map((events) => [how, events] as const)))(
		'a stream with %s: %d is a failure that holds what arrived',
		async (how, events) => {
			stage.deployment.plan = () => ({ says: 'one two three', [how]: events });
			const { error, details } = failure(await stage.run(sayings('hi'), STREAM));
			expect(error).toEqual(expect.any(String));
			expect(details).toMatchObject({ mayHaveRun: true });
			expect(stage.deployment.calls).toHaveLength(1);
			if (events === 0) return;
			expect(error).toMatch(/broke off/);
			expect(details?.sessionId).toBe(stage.deployment.sessions[0]?.id);
			const arrived = String(details?.answer);
			expect('one two three'.startsWith(arrived)).toBe(true);
			expect(arrived === '').toBe(events === 1);
		},
	);

	test('whatever event it breaks off after, a stream is no answer, and a whole one is', async () => {
		const all = [...Array(8).keys()];
		const tools = [{ fn: 'search', with: {} }];
		stage.deployment.plan = (said) => ({ says: 'one two three', tools, cutAfter: Number(said) });
		const run = await stage.run(sayings(...all.map(String)), STREAM);
		const answers = run.output(NODE_NAME).map(({ json }) => json.answer);
		// opened, tool_use, result, a draft where there is one, three bits, the last event
		const whole = options.envelope === false ? [] : [7];
		expect(answers).toEqual(all.map((n) => (whole.includes(n) ? 'one two three' : undefined)));
		expect(stage.deployment.calls).toHaveLength(all.length);
	});

	test('an answer that is lost may have run, and is not asked again', async () => {
		stage.deployment.plan = () => ({ cutAfter: 0 });
		expect(failure(await stage.run(sayings('hi'))).details).toMatchObject({ mayHaveRun: true });
		expect(stage.deployment.verdicts()).toEqual({ ran: 1 });
	});

	test.each([false, true])('several interrupts are answered one by one (stream: %s)', async (stream) => {
		const asks = [{ fn: 'refund', with: { order: 7, note: 'ä"b' } }, { title: 'Which colour?' }];
		stage.deployment.plan = () => ({ says: 'done', asks });
		const waiting = item(await stage.run(sayings('hi'), { stream }), 1);
		expect(waiting).toMatchObject({
			interrupt: { kind: 'tool', tool: 'refund', arguments: { order: 7, note: 'ä"b' } },
			interrupts: [{ tool: 'refund' }, { kind: 'question', question: 'Which colour?' }],
		});
		const [tool, question] = waiting.interrupts as Array<{ id: string }>;
		const resume = { operation: 'resume', stream, resumeSessionId: stage.deployment.sessions[0]!.id };
		const still = await stage.run([{}], { ...resume, interruptId: tool!.id, result: '{ "refunded": true }' });
		expect(item(still, 1)).toMatchObject({ interrupt: { question: 'Which colour?', id: question!.id } });
		const over = await stage.run([{}], { ...resume, interruptId: question!.id, result: 'dark red' });
		expect(item(over).answer).toBe('done ({"refunded":true}) ("dark red")');
		expect(stage.deployment.sessions[0]?.answered.map(({ value }) => value)).toEqual([
			{ refunded: true },
			'dark red',
		]);
	});

	test('files: one is uploaded, one goes by its address', async () => {
		const files = {
			file: [
				{ source: 'binary', binaryPropertyName: 'data' },
				{ source: 'url', url: 'https://files.example/b', name: 'b.pdf' },
			],
		};
		const data = { data: Buffer.from('hello'), fileName: 'grüße.txt', mimeType: 'text/plain' };
		const run = await stage.run([{ json: { say: 'read' }, binary: { data } }], { files });
		expect(item(run).answer).toBe('1: read');
		expect(stage.deployment.uploads).toEqual([
			{ name: 'grüße.txt', type: expect.stringContaining('text/plain'), bytes: 5 },
		]);
		expect(stage.deployment.sessions[0]?.attachments).toMatchObject([
			{ called: 'grüße.txt', media: 'text/plain', bytes: 5 },
			{ at: 'https://files.example/b', called: 'b.pdf', media: undefined },
		]);
		const media = await stage.run([{ binary: { data } }], { operation: 'uploadMedia' });
		expect(item(media)).toMatchObject({
			url: expect.stringContaining('/blobs/2'),
			expiresAt: expect.stringMatching(/^2031-01-01T00:00:00/),
		});
	});

	test('what is absent leaves its key out', async () => {
		await stage.run(sayings('hi'));
		const body = JSON.stringify(stage.deployment.calls[0]?.body);
		expect(body).not.toMatch(/attachments|answer_to|talk|null|\$session|\$files|""/);
		expect(stage.deployment.verdicts()).toEqual({ ran: 1 });
	});

	describe('refusals, by their words', () => {
		test('a busy session is waited for, longer than three tries', async () => {
			stage.deployment.plan = (said) => (said === 'slow' ? { takesMs: 20_000 } : {});
			const { id } = item(await stage.run(sayings('hi'))).session as { id: string };
			const both = ['slow', 'next'].map(async (say) => await stage.run(sayings(say), goOn(id)));
			const answers = (await Promise.all(both)).map((run) => item(run).answer);
			expect(answers.sort()).toEqual(['2: slow', '3: next'].sort());
			expect(stage.deployment.sessions[0]?.said).toHaveLength(3);
		});

		test('one that did not run is asked again', async () => {
			const refused = { refuses: { status: 503, code: 'KITCHEN_FULL' } };
			stage.deployment.plan = () => (stage.deployment.calls.length < 3 ? refused : {});
			expect(item(await stage.run(sayings('hi')))).toMatchObject({ answer: '1: hi' });
			expect(stage.deployment.verdicts()).toEqual({ KITCHEN_FULL: 2, ran: 1 });
		});

		test.each([500, 502])('what is not said to have not run may have run (%d)', async (status) => {
			stage.deployment.plan = () => ({ fails: { status, code: 'STOVE_BROKE' } });
			for (const stream of [false, true]) {
				const { error, details } = failure(await stage.run(sayings('hi'), { stream }));
				expect(error).toMatch(/stove.broke/i);
				expect(details).toMatchObject({ mayHaveRun: true });
			}
			expect(stage.deployment.verdicts()).toEqual({ ran: 2 });
		});

		test('a session that is unknown is renewed only where that is asked for', async () => {
			const { id } = item(await stage.run(sayings('hi'))).session as { id: string };
			stage.deployment.forgetSessions();
			expect(failure(await stage.run(sayings('on'), goOn(id))).error).toContain(id);
			const options = { ...UNHURRIED, renewExpiredSession: true };
			const renewed = item(await stage.run(sayings('on'), goOn(id, { options })));
			expect(renewed).toMatchObject({ answer: '1: on', session: { source: 'renewed' } });
		});

		test('a token that is refused is not shown, and told by the test of the credential too', async () => {
			const wrong = { agentToken: 'agt_wrong-0123456789' };
			const run = await stage.run(sayings('hi'), {}, wrong);
			expect(failure(run).error).toMatch(/token/i);
			expect(everythingSaid(run)).not.toContain(wrong.agentToken);
			const { flowAgentApi } = stage.credentials;
			expect(await stage.harness.testCredential('flowAgentApi', { ...flowAgentApi, ...wrong })).toMatchObject(
				{ status: 'Error' },
			);
			expect(await stage.harness.testCredential('flowAgentApi', flowAgentApi)).toMatchObject({
				status: 'OK',
			});
			expect(stage.deployment.verdicts()).not.toHaveProperty('ran');
		});
	});

	test('Preview Request shows what would be sent, and sends nothing', async () => {
		const preview = item(
			await stage.run(sayings('hi'), goOn('41', { ...STREAM, options: { previewRequest: true } })),
		);
		expect(preview).toMatchObject({
			preview: { url: expect.stringMatching(/\/v3\/desk\/7\/turns$/), body: { talk: { no: '41' } } },
		});
		expect(JSON.stringify(preview)).not.toContain(TOKEN);
		expect(stage.deployment.calls).toEqual([]);
		const { body } = (preview as { preview: { body: object } }).preview;
		await stage.run(sayings('hi'), goOn('41', STREAM));
		expect(stage.deployment.calls.map((call) => call.body)).toEqual([body]);
	});

	test('Preview Response tells which entry gave what, after one call', async () => {
		const run = await stage.run(sayings('hi'), { options: { previewResponse: true } });
		expect(item(run).readFrom).toMatchObject({
			...{ answer: 'answer.text', session: 'answer.session', usage: 'answer.usage', interrupt: null },
			found: expect.arrayContaining(['outcome.blocks[0].text', 'talk.no', 'cost.tok_all']),
		});
		expect(stage.deployment.verdicts()).toEqual({ ran: 1 });
	});

	test('an empty answer is none: it says where the node looked, and what was there', async () => {
		const account = accountOf(make, { answer: { text: 'outcome.words' } });
		const { error, details } = failure(await stage.run(sayings('hi'), {}, account));
		expect(error).toMatch(/answer is empty.*"answer\.text".*talk/);
		expect(details).toMatchObject({ mayHaveRun: true });
	});
});

describe('a description that cannot be right is told before anything is sent', () => {
	let stage: OtherStage;
	beforeAll(async () => {
		stage = await openOtherStage(ONE_MAKE);
	});
	afterAll(async () => {
		await stage.close();
	});

	const described = (message: unknown) => accountOf(ONE_MAKE, { request: { message } });
	test.each([
		['no JSON', { wire: 'described', description: '{"request": $message}' }],
		['a placeholder that is none', described({ a: '$message', b: '$mesage' })],
		['no place for the message', described({ talk: '$session' })],
		['no place for the result', accountOf(ONE_MAKE, { request: { resume: { talk: '$session' } } })],
		['a choice of one word', described({ a: '$message', b: '$stream(on)' })],
		['a list', described(['$message'])],
	])('%s', async (_what, account) => {
		const run = await stage.run(sayings('hi'), {}, account);
		expect(run.error?.message ?? failure(run).error).toContain('"Description" in the credential');
		expect(stage.deployment.calls).toEqual([]);
	});

	test('an extra body joins at any depth, and takes the place of no placeholder', async () => {
		const options = { ...UNHURRIED, extraBody: '{"profile":{"tone":"calm"}}' };
		await stage.run(sayings('hi'), { options });
		expect(stage.deployment.calls[0]?.body).toMatchObject({ profile: { price: '5 $', tone: 'calm' } });
		const over = { ...UNHURRIED, extraBody: '{"talk":{"no":7}}' };
		const run = await stage.run(sayings('hi'), { options: over });
		expect(run.error?.message ?? failure(run).error).toMatch(/Extra Body|talk/);
		expect(stage.deployment.calls).toHaveLength(1);
	});
});
