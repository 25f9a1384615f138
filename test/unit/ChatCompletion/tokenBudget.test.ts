import { TokenBudget } from '../../../nodes/ChatCompletion/tokenBudget';

test('refuses nothing before the budget is used up, and everything afterwards', () => {
	const budget = new TokenBudget(100);
	expect(budget.refusal()).toBeUndefined();
	budget.count({ totalTokens: 99 });
	expect(budget.refusal()).toBeUndefined();
	budget.count({ totalTokens: 1 });
	expect(budget.refusal()).toEqual({
		kind: 'notSubmitted',
		message: "'Token Budget' allows 100 tokens a run; used so far: 100",
		advice: expect.stringMatching(/^Nothing was sent for this item\. Raise 'Token Budget'/),
		details: { budget: { per: 'run', unit: 'tokens', most: 100, used: 100 } },
	});
});

test.each([
	[{ totalTokens: 7, promptTokens: 1 }, 7],
	[{ promptTokens: 3, completionTokens: 4 }, 7],
	[{ completionTokens: 4 }, 4],
	[{ total_tokens: 7 }, 7],
	[{ prompt_tokens: 3, completion_tokens: 4 }, 7],
])('counts tokens reported as %j as %d', (usage, tokens) => {
	const budget = new TokenBudget(1);
	budget.count(usage);
	expect(budget.refusal()?.details).toMatchObject({ budget: { used: tokens } });
	expect(budget.hint).toBe('');
});

test('does not guess unreported tokens, but says that they are missing', () => {
	const budget = new TokenBudget(1);
	budget.count({});
	budget.count({ reasoningTokens: 5 });
	budget.count(undefined);
	expect(budget.refusal()).toBeUndefined();
	expect(budget.hint).toMatch(
		/^3 answer\(s\) reported no tokens, so 'Token Budget' counts none for them\. Leave the option 'Include Usage' on/,
	);
});

test.each([
	['unclear', { content: 'half an', usage: { total_tokens: 9 } }, 9, false],
	['unclear', { content: 'half an' }, 0, true],
	['timedOut', {}, 0, true],
	['refused', { httpStatus: 400 }, 0, false],
	['unreachable', {}, 0, false],
] as const)('counts the tokens of an answer that failed as %s with %j', (kind, details, used, isUntold) => {
	const budget = new TokenBudget(1);
	budget.countFailed({ kind, message: 'm', advice: 'a', details });
	expect(budget.refusal()?.details?.budget).toEqual(
		used === 0 ? undefined : { per: 'run', unit: 'tokens', most: 1, used },
	);
	expect(budget.hint !== '').toBe(isUntold);
});

test('without a budget, refuses and says nothing', () => {
	const budget = new TokenBudget(0);
	budget.count({});
	budget.count({ totalTokens: 1e9 });
	expect([budget.refusal(), budget.hint, budget.isSet]).toEqual([undefined, '', false]);
});
