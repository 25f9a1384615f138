import { NODE_NAME, type HarnessRun } from '../harness';
import { sayings } from '../harness/stage';
import { openChatStage, type ChatStage } from './chat.fixture';

/* The option "Token Budget": what one run may use, as the platform counts it. */

let stage: ChatStage;
beforeAll(async () => {
	stage = await openChatStage();
});
afterAll(async () => {
	await stage.close();
});
beforeEach(() => {
	stage.platform.faults.clear();
	stage.platform.resetBooks();
});

const SAY = '[words: 20]';
const CONTINUE = { onError: 'continueRegularOutput' } as const;

const asked = (): number => stage.platform.books().requests.chat;
const hintsOf = (run: HarnessRun): string =>
	run
		.hints(NODE_NAME)
		.map(({ message }) => message)
		.join('\n');

async function tokensOfOne(): Promise<number> {
	const run = await stage.run(sayings(SAY));
	stage.platform.resetBooks();
	const { usage } = run.output(NODE_NAME)[0]?.json ?? {};
	return (usage as { totalTokens: number }).totalTokens;
}

test.each([true, false])('no item is asked once the budget is used; stream %s', async (stream) => {
	const each = await tokensOfOne();
	const options = { concurrency: 1, tokenBudget: each + 1 };
	const run = await stage.run(sayings(SAY, SAY, SAY, SAY), { stream, options }, CONTINUE);
	expect(asked()).toBe(2);
	const output = run.output(NODE_NAME).map(({ json }) => json);
	expect(output.map(({ error }) => error === undefined)).toEqual([true, true, false, false]);
	expect(output[2]).toEqual({
		error: `"Token Budget" allows ${each + 1} tokens a run; used so far: ${2 * each}`,
		message: expect.stringContaining('Nothing was sent for this item'),
		details: {
			kind: 'notSubmitted',
			budget: { per: 'run', unit: 'tokens', most: each + 1, used: 2 * each },
		},
	});
	expect(hintsOf(run)).toBe('2 answered, 2 failed.');
});

test('without Continue the run fails at the first item that is not asked, and names the answers that are kept', async () => {
	const each = await tokensOfOne();
	const options = { concurrency: 1, tokenBudget: each };
	const run = await stage.run(sayings(SAY, SAY, SAY), { options });
	expect(asked()).toBe(1);
	expect(run.error?.message).toMatch(/^"Token Budget" allows/);
	expect(run.error).toMatchObject({ context: { itemIndex: 1 } });
	expect(run.error?.description).toContain('1 other item(s) were answered: a retry of this execution');
});

test('answers of an earlier try count, and are delivered though the budget is used', async () => {
	const each = await tokensOfOne();
	const options = { concurrency: 1, tokenBudget: each };
	const run = await stage.run(
		sayings(SAY, SAY),
		{ options },
		{ retryOnFail: true, maxTries: 2, ...CONTINUE },
	);
	// n8n tries again only if the first item failed, so the first try asks for it and fails.
	expect(run.output(NODE_NAME)[0]?.json.usage).toMatchObject({ totalTokens: each });
	expect(asked()).toBe(1);
	stage.platform.resetBooks();
	const failing = await stage.run(sayings(SAY, SAY), { options }, { retryOnFail: true, maxTries: 2 });
	expect(failing.error?.message).toContain(`used so far: ${each}`);
	expect(asked()).toBe(1);
});

test('n8n is told the tokens of each answer once, whichever try got it', async () => {
	stage.platform.faults.add({ on: 'chat', kind: 'code', code: 40000, match: 'second', times: 1 });
	const settings = { retryOnFail: true, maxTries: 2, waitBetweenTries: 1 };
	const run = await stage.run(
		sayings(SAY, `${SAY} second`),
		{ options: { concurrency: 1, retries: 0 } },
		settings,
	);
	expect(run.status).toBe('success');
	const usages = run.output(NODE_NAME).map(({ json }) => json.usage as { totalTokens: number });
	const spent = usages.reduce((sum, { totalTokens }) => sum + totalTokens, 0);
	const { inputTokens, outputTokens } = run.runs(NODE_NAME).at(-1)?.metadata?.tokenUsage ?? {};
	expect(Number(inputTokens) + Number(outputTokens)).toBe(spent);
});

test('answers under way when the budget is used are read and delivered', async () => {
	const options = { concurrency: 3, tokenBudget: 1 };
	const run = await stage.run(sayings(SAY, SAY, SAY, SAY), { options }, CONTINUE);
	expect(asked()).toBe(3);
	expect(run.output(NODE_NAME).map(({ json }) => json.error === undefined)).toEqual([
		true,
		true,
		true,
		false,
	]);
});

test('an answer that is not the JSON that was asked for is paid for, and counts', async () => {
	const options = { concurrency: 1, tokenBudget: 1 };
	const run = await stage.run(
		sayings('[answer: no]', SAY),
		{ responseFormat: 'jsonObject', options },
		CONTINUE,
	);
	expect(asked()).toBe(1);
	expect(run.output(NODE_NAME).map(({ json }) => json.error)).toEqual([
		expect.stringMatching(/^The answer is not the JSON/),
		expect.stringMatching(/^"Token Budget" allows 1 token a run/),
	]);
});

test.each([
	['broke off', '[words: 9] [cut after: 4]', undefined, 1],
	['did not come in time', SAY, { kind: 'hang' }, 1],
	['was refused', SAY, { kind: 'code', code: 40_000 }, 0],
] as const)('an answer that %s counts where it may be billed', async (_, say, fault, untold) => {
	if (fault) stage.platform.faults.add({ on: 'chat', ...fault });
	const options = { timeoutSeconds: 1, tokenBudget: 1_000 };
	const run = await stage.run(sayings(say), { options }, CONTINUE);
	expect(run.output(NODE_NAME)[0]?.json.error).toBeDefined();
	const said = /(\d+) answer\(s\) reported no tokens/.exec(hintsOf(run))?.[1];
	expect(Number(said ?? 0)).toBe(untold);
});

test('without token counts nothing is guessed: all is asked, and a hint says so', async () => {
	const options = { tokenBudget: 1, includeUsage: false };
	const run = await stage.run(sayings(SAY, SAY), { options });
	expect(asked()).toBe(2);
	expect(hintsOf(run)).toMatch(/^2 answer\(s\) reported no tokens, so "Token Budget" counts none/);
});
