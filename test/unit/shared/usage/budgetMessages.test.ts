import { countTokens, tokenCounts, tokenParts } from '../../../../nodes/shared/usage/budgetMessages';

test.each([
	[null, null, undefined, undefined],
	['no', null, undefined, undefined],
	[7, 7, 7, { input: 7, output: 0 }],
	[{ total_tokens: 5, note: 'x' }, { total_tokens: 5 }, 5, { input: 5, output: 0 }],
	[
		{ prompt_tokens: 2, completion_tokens: 3 },
		{ prompt_tokens: 2, completion_tokens: 3 },
		5,
		{ input: 2, output: 3 },
	],
	[{ total_tokens: 0, output_tokens: 3 }, { total_tokens: 0, output_tokens: 3 }, 3, { input: 0, output: 3 }],
	[{ total_tokens: -1 }, null, undefined, undefined],
])('a usage of %j has these counts, total and parts', (usage, counts, total, parts) => {
	expect(tokenCounts(usage)).toEqual(counts);
	expect(countTokens(usage)).toBe(total);
	expect(tokenParts(usage)).toEqual(parts);
});
