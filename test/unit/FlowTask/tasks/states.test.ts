import fc from 'fast-check';

import { isFinal, stateOf } from '../../../../nodes/FlowTask/tasks/states';

describe('stateOf', () => {
	it.each([
		[1, 'queued', false],
		[2, 'generating', false],
		[3, 'succeeded', true],
		[4, 'failed', true],
		[5, 'denied', true],
		[0, 'unknown', false],
		[6, 'unknown', false],
		[-1, 'unknown', false],
		[3.5, 'unknown', false],
		[NaN, 'unknown', false],
		[null, 'unknown', false],
	] as const)('reads %p as %s, final: %s', (status, state, final) => {
		expect(stateOf(status)).toBe(state);
		expect(isFinal(stateOf(status))).toBe(final);
	});

	it('never ends a task for a number that the interface does not define', () => {
		fc.assert(
			fc.property(fc.double(), (status) => {
				if (![3, 4, 5].includes(status)) expect(isFinal(stateOf(status))).toBe(false);
			}),
		);
	});
});
