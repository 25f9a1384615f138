import { taskOptions } from '../../../../nodes/FlowTask/actions/options';

it('groups its options so that each can be looked through, and loses none', () => {
	const groups = taskOptions().map(({ displayName, options = [] }) => ({
		displayName,
		count: options.length,
	}));
	expect(groups.map(({ displayName }) => displayName)).toEqual(['Options', 'Cost and Speed']);
	for (const { count } of groups) expect(count).toBeLessThanOrEqual(12);
	expect(groups.reduce((sum, { count }) => sum + count, 0)).toBe(23);
});
