import fc from 'fast-check';

import { readKnowledge } from '../../../../nodes/shared/workflow/knowledge';
import { hostileSource } from '../../FlowTask/hostileJson';

describe('readKnowledge', () => {
	it('never throws', () => {
		fc.assert(
			fc.property(hostileSource(), hostileSource(), (definition, view) => {
				const known = readKnowledge(definition, view);
				if (!known.ok) expect(known.failure.kind).toBe('badInput');
			}),
			{ numRuns: 500 },
		);
	});
});
