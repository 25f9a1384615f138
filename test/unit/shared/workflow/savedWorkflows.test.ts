import fc from 'fast-check';

import { readKnowledge } from '../../../../nodes/shared/workflow/definition';
import {
	findWorkflow,
	readSavedWorkflows,
	SAVED_PREFIX,
	whyListIsWrong,
} from '../../../../nodes/shared/workflow/savedWorkflows';
import { hostileJson, hostileName, hostileSource } from '../../FlowTask/hostileJson';

const EXPORT = { '3': { class_type: 'KSampler', inputs: { steps: 20 } } };

const entry = () =>
	fc.record(
		{
			workflowId: fc.oneof(fc.constant('wf_8c1f0a'), fc.integer(), hostileJson()),
			definition: fc.oneof(fc.constant(EXPORT), hostileSource()),
			parameterView: fc.oneof(fc.constant({}), hostileSource()),
		},
		{ requiredKeys: ['workflowId'] },
	);
const list = () => fc.oneof(hostileSource(), fc.dictionary(hostileName(), entry(), { maxKeys: 4 }));

describe('whyListIsWrong', () => {
	it('accepts a list if, and only if, a run can read every workflow in it', () => {
		fc.assert(
			fc.property(list(), fc.boolean(), (pasted, asText) => {
				const source = asText && typeof pasted !== 'string' ? JSON.stringify(pasted) : pasted;
				const said = whyListIsWrong(source);
				const saved = readSavedWorkflows(source);
				const fits = (name: string): boolean => {
					const found = findWorkflow(`${SAVED_PREFIX}${name}`, { definition: '', view: '' }, () => saved);
					return found.ok && readKnowledge(found.value.definition, found.value.view).ok;
				};
				expect(said === undefined).toBe(saved.ok && [...saved.value.keys()].every(fits));
			}),
			{ numRuns: 250 },
		);
	});
});

describe('a name that two workflows have', () => {
	const wf = (workflowId: string): string => JSON.stringify({ workflowId });

	it('is refused if it is the same key', () => {
		expect(whyListIsWrong(`{"Portrait": ${wf('a')}, "Portrait": ${wf('b')}}`)).toContain(
			'contains the key "Portrait" twice',
		);
	});

	it('is refused if only blanks around it differ, and the other workflows stay', () => {
		const source = `{"Portrait": ${wf('a')}, " Portrait\\n": ${wf('b')}, "Fox": ${wf('c')}}`;
		const saved = readSavedWorkflows(source);
		const find = (name: string) =>
			findWorkflow(SAVED_PREFIX + name, { definition: '', view: '' }, () => saved);
		expect(find('Portrait')).toMatchObject({
			failure: {
				message:
					'\'Saved Workflows\' in the credential contains "Portrait" 2 times, apart from blanks around the name',
			},
		});
		expect(find('Fox')).toMatchObject({ value: { workflowId: 'c' } });
		expect(whyListIsWrong(source)).toContain('"Portrait" 2 times');
	});
});
