import type { AgentRight } from '../../platform';
import { sayings, sharedStage } from '../harness/stage';
import { CONTINUE, openAgentStage, type AgentStage } from './agent.fixture';

describe.each(['always200', 'same'] as const)('failures with outer status %s (§7.5)', (agentOuterStatus) => {
	const stage = sharedStage(openAgentStage, {
		agentOuterStatus,
		mediaMaxBytes: 1000,
		mediaTypes: ['text/*'],
	});

	interface Told {
		readonly error: string;
		readonly message: string;
		readonly details: { readonly kind: string; readonly reason: string; readonly httpStatus: number };
	}

	async function toldFor(...[items, parameters, settings]: Parameters<AgentStage['run']>): Promise<Told> {
		const options = { requestsPerSecond: 0, retries: 0 };
		const run = await stage.run(items, { options, ...parameters }, { ...CONTINUE, ...settings });
		expect(run.error).toBeUndefined();
		const item = run.items().at(-1)!;
		expect(Object.keys(item.json)).toEqual(['error', 'message', 'details']);
		const thrown = await stage.run(items, { options, ...parameters }, settings);
		expect(thrown.error?.message).toBe(item.json.error);
		expect(thrown.error?.context.itemIndex).toBe(items.length - 1);
		return item.json as unknown as Told;
	}

	const reading = (url: string) => ({ files: { file: [{ source: 'url', url, name: 'a.txt' }] } });
	const sending = { files: { file: [{ source: 'binary', binaryPropertyName: 'data' }] } };
	const holding = (bytes: number, fileName: string, mimeType: string) => ({
		json: { say: 'read it' },
		binary: { data: { data: Buffer.alloc(bytes, 'x'), fileName, mimeType } },
	});
	const invocations = (): number => stage.platform.books().invocations.length;

	test.each<[string, () => string, string, string]>([
		['an unknown token', () => 'agt_unknown0000', 'does not accept the agent token', 'token_invalid'],
		[
			'a debugging token that expired',
			() => stage.platform.agent.debugToken(0),
			'(dbg_) has expired',
			'token_expired',
		],
		['a token without the right', () => agentWith(), 'not have permission to do this', 'forbidden'],
	])('%s', async (_name, tokenOf, sentence, reason) => {
		const agentToken = tokenOf();
		await new Promise((resolve) => setTimeout(resolve, 2));
		const told = await toldFor(sayings('hi'), {}, { account: { agentToken } });
		expect(told.error).toContain(sentence);
		expect(told.details).toMatchObject({ kind: 'credential', reason });
		expect(JSON.stringify(told)).not.toContain(agentToken);
		expect(invocations()).toBe(0);
	});

	function agentWith(...rights: AgentRight[]): string {
		return stage.platform.createAgent({ rights }).token;
	}

	test('a permanent token that expires during the run', async () => {
		stage.platform.faults.add({ on: 'invoke', kind: 'tokenExpired' });
		const told = await toldFor(sayings('hi'));
		expect(told.error).toBe('The agent token has expired');
		expect(told.details).toMatchObject({ kind: 'credential', httpStatus: 401 });
	});

	test('a stream without permission to stream', async () => {
		const told = await toldFor(
			sayings('hi'),
			{ stream: true },
			{ account: { agentToken: agentWith('invoke') } },
		);
		expect(told.details).toMatchObject({ kind: 'credential', reason: 'forbidden' });
	});

	test('a message while an interrupt is pending, and a result for an unknown interrupt', async () => {
		const first = await stage.run(sayings('[question: sure?]'));
		const { id } = first.jsons(1)[0]!.session as { id: string };
		const pending = await toldFor(sayings('hello?'), { sessionMode: 'explicit', sessionId: id });
		expect(pending.error).toBe('The agent is still waiting for the answer to its interrupt');
		expect(pending.message).toContain("'Resume Agent'");
		const unknown = await toldFor(sayings('x'), {
			...{ operation: 'resume', resumeSessionId: id, interruptId: 'int_nobody', result: 'x' },
		});
		expect(unknown.error).toBe('The agent is no longer waiting for this interrupt');
		expect(unknown.details).toMatchObject({ kind: 'refused', reason: 'interrupt_not_found' });
	});

	test.each([
		[42900, 'The agent is not accepting calls at the moment', 'refused'],
		[50300, 'The agent is not accepting calls at the moment', 'refused'],
		[50000, 'The agent failed', 'agentFailed'],
		[40000, 'The platform refused the call', 'refused'],
		[40100, 'The platform does not accept the agent token', 'credential'],
		[40300, 'The agent token does not have permission to do this', 'credential'],
	])('a code that only the envelope reports: %d', async (code, sentence, kind) => {
		stage.platform.faults.add({ on: 'invoke', kind: 'code', code });
		const told = await toldFor(sayings('hi'));
		expect(told.error).toContain(sentence);
		expect(told.details.kind).toBe(kind);
	});

	test("a refusal in the agent's own words, and an agent that fails", async () => {
		const refused = await toldFor(sayings('[refuse: not on Sundays]'));
		expect(refused.error).toBe('The agent is not accepting calls at the moment: overloaded: not on Sundays');
		expect(refused.message).toContain('It did not run');
		expect(invocations()).toBe(0);
		const failed = await toldFor(sayings('[fail: no fuel]'));
		expect(failed.error).toMatch(/^The agent failed: .*no fuel/);
		expect(failed.details).toMatchObject({ kind: 'agentFailed', mayHaveRun: true, httpStatus: 500 });
	});

	test.each([
		['too large', holding(2000, 'a.txt', 'text/plain'), 'larger than the platform accepts', 'file_too_large'],
		[
			'of a type that is not accepted',
			holding(9, 'a.png', 'image/png'),
			'does not accept files of this type',
			'file_type_refused',
		],
	])('a file that is %s', async (_name, item, sentence, reason) => {
		const told = await toldFor([item], sending);
		expect(told.error).toContain(sentence);
		expect(told.details.reason).toBe(reason);
		expect(stage.platform.books().requests.invoke).toBe(0);
	});

	test('a file whose address has expired, and one that cannot be opened', async () => {
		stage.platform.faults.add({ on: 'media', kind: 'expiredLink' });
		const expired = await toldFor([holding(9, 'a.txt', 'text/plain')], sending);
		expect(expired.error).toBe('The URL of a file has expired');
		const gone = await toldFor(sayings('read it'), reading(`${stage.platform.fileUrl}/media/nobody`));
		expect(gone.error).toBe('The platform could not use a file');
		expect(invocations()).toBe(0);
	});

	test.each([301, 302, 307, 308])(
		'a redirect with HTTP %d, which is not followed with the token',
		async (status) => {
			stage.platform.faults.add({ on: 'invoke', kind: 'redirect', status });
			stage.platform.faults.add({ on: 'media', kind: 'redirect', status });
			const told = await toldFor(sayings('hi'));
			expect(told.error).toContain('base URL redirects to another address');
			const upload = await toldFor([holding(9, 'a.txt', 'text/plain')], sending);
			expect(upload.error).toContain('base URL redirects to another address');
			expect(stage.platform.books()).toMatchObject({ leaks: [], requests: { trap: 0 } });
		},
	);

	test.each(['/nothing', '/maas/v1/models'])('a path with no agent behind it: %s', async (invokePath) => {
		const run = await stage.run(sayings('hi'), {}, { account: { invokePath } });
		expect(run.error?.message).toMatch(/There is no agent at|does not accept the agent token/);
		expect(run.error?.description).toContain('FlowAgent credential');
		const upload = await stage.run(
			[holding(9, 'a.txt', 'text/plain')],
			{ operation: 'uploadMedia' },
			{ account: { mediaUploadPath: '/nothing' } },
		);
		expect(upload.error?.description).toContain("'Media Upload Path'");
	});

	test('a web page instead of an answer', async () => {
		stage.platform.faults.add({ on: 'invoke', kind: 'html200' });
		const told = await toldFor(sayings('hi'));
		expect(told.error).toBe('No clear answer came from the agent: a web page instead of JSON');
	});
});
