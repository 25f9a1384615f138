import { NODE_NAME, type HarnessRun } from '../harness';
import { RETRY, sayings, sharedStage } from '../harness/stage';
import { CONTINUE, openChatStage } from './chat.fixture';

/* The option "Token Budget": the tokens that one run may use, as the platform counts them. */

const stage = sharedStage(openChatStage);

const SAY = '[words: 20]';

const asked = (): number => stage.platform.books().requests.chat;
const hintsOf = (run: HarnessRun): string => run.hints().join('\n');

async function tokensOfOne(): Promise<number> {
	const run = await stage.run(sayings(SAY));
	stage.platform.resetBooks();
	const { usage } = run.jsons()[0] ?? {};
	return (usage as { totalTokens: number }).totalTokens;
}

test.each([true, false])('sends no item once the budget is used (stream: %s)', async (stream) => {
	const each = await tokensOfOne();
	const options = { concurrency: 1, tokenBudget: each + 1 };
	const run = await stage.run(sayings(SAY, SAY, SAY, SAY), { stream, options }, CONTINUE);
	expect(asked()).toBe(2);
	const output = run.jsons();
	expect(output.map(({ error }) => error === undefined)).toEqual([true, true, false, false]);
	expect(output[2]).toEqual({
		error: `'Token Budget' allows ${each + 1} tokens a run; used so far: ${2 * each}`,
		message: expect.stringContaining('Nothing was sent for this item'),
		details: {
			kind: 'notSubmitted',
			budget: { per: 'run', unit: 'tokens', most: each + 1, used: 2 * each },
		},
	});
	expect(hintsOf(run)).toBe('2 answered, 2 failed.');
});

test('without Continue On Fail, the run fails at the first item not sent, and says how many answers are saved', async () => {
	const each = await tokensOfOne();
	const options = { concurrency: 1, tokenBudget: each };
	const run = await stage.run(sayings(SAY, SAY, SAY), { options });
	expect(asked()).toBe(1);
	expect(run.error?.message).toMatch(/^'Token Budget' allows/);
	expect(run.error).toMatchObject({ context: { itemIndex: 1 } });
	expect(run.error?.description).toContain('1 other item(s) were answered: a retry of this execution');
});

test('counts answers of an earlier try, and outputs them even if the budget is used up', async () => {
	const each = await tokensOfOne();
	const options = { concurrency: 1, tokenBudget: each };
	const run = await stage.run(
		sayings(SAY, SAY),
		{ options },
		{ retryOnFail: true, maxTries: 2, ...CONTINUE },
	);
	// n8n retries a node that continues on error only if its first item failed, which was answered here.
	expect(run.jsons()[0]?.usage).toMatchObject({ totalTokens: each });
	expect(asked()).toBe(1);
	stage.platform.resetBooks();
	const failing = await stage.run(sayings(SAY, SAY), { options }, { retryOnFail: true, maxTries: 2 });
	expect(failing.error?.message).toContain(`used so far: ${each}`);
	expect(asked()).toBe(1);
});

test('reports the tokens of each answer to n8n once, whichever try got it', async () => {
	stage.platform.faults.add({ on: 'chat', kind: 'code', code: 40000, match: 'second', times: 1 });
	const settings = { ...RETRY, maxTries: 2 };
	const run = await stage.run(
		sayings(SAY, `${SAY} second`),
		{ options: { concurrency: 1, retries: 0 } },
		settings,
	);
	expect(run.status).toBe('success');
	const usages = run.items().map(({ json }) => json.usage as { totalTokens: number });
	const spent = usages.reduce((sum, { totalTokens }) => sum + totalTokens, 0);
	const { inputTokens, outputTokens } = run.runs(NODE_NAME).at(-1)?.metadata?.tokenUsage ?? {};
	expect(Number(inputTokens) + Number(outputTokens)).toBe(spent);
});

test('reads and outputs the answers in flight when the budget is used up', async () => {
	const options = { concurrency: 3, tokenBudget: 1 };
	const run = await stage.run(sayings(SAY, SAY, SAY, SAY), { options }, CONTINUE);
	expect(asked()).toBe(3);
	expect(run.items().map(({ json }) => json.error === undefined)).toEqual([true, true, true, false]);
});

test('counts an answer that is not the requested JSON, because it is paid for', async () => {
	const options = { concurrency: 1, tokenBudget: 1 };
	const run = await stage.run(
		sayings('[answer: no]', SAY),
		{ responseFormat: 'jsonObject', options },
		CONTINUE,
	);
	expect(asked()).toBe(1);
	expect(run.jsons().map(({ error }) => error)).toEqual([
		expect.stringMatching(/^The answer is not the JSON/),
		expect.stringMatching(/^'Token Budget' allows 1 token a run/),
	]);
});

test('reports an answer that broke off as not counted, because it may be billed', async () => {
	const options = { tokenBudget: 1_000 };
	const run = await stage.run(sayings('[words: 9] [cut after: 4]'), { options }, CONTINUE);
	expect(run.jsons()[0]?.error).toBeDefined();
	expect(hintsOf(run)).toContain('1 answer(s) reported no tokens');
});

test('reads the budget of the run from the first item, whatever it is for the others', async () => {
	const items = [{ json: { say: SAY, budget: 1_000 } }, { json: { say: SAY } }];
	const run = await stage.run(items, { options: { tokenBudget: '={{ $json.budget }}' } });
	expect(run.status).toBe('success');
	expect(asked()).toBe(2);
});
