import type { IExecuteFunctions } from 'n8n-workflow';

import { knownWorkflows } from '../../../../nodes/FlowTask/actions/workflow/knownWorkflows';

it('reads each saved workflow once, even if items use them alternately', () => {
	const definition = { '6': { class_type: 'CLIPTextEncode', inputs: { text: 'a cat' } } };
	const names = ['Portrait', 'Poster', 'Portrait', 'Poster'];
	const saved = Object.fromEntries(names.map((name) => [name, { workflowId: name, definition }]));
	const context = {
		getNodeParameter: (parameter: string, itemIndex: number): unknown =>
			parameter === 'workflowId' ? `saved:${names[itemIndex] ?? ''}` : '',
	} as IExecuteFunctions;
	const known = knownWorkflows(context, JSON.stringify(saved));
	const read = names.map((_, itemIndex) => known.knowledge(itemIndex));
	expect(read[0]).toMatchObject({ ok: true, value: { definition: { nodes: [{ nodeId: '6' }] } } });
	expect(read[2]).toBe(read[0]);
	expect(read[3]).toBe(read[1]);
});
