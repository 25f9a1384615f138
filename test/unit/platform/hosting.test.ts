import { SAMPLE_WORKFLOWS, WorkflowRefused } from '../../platform';
import { sharedClient } from './client';

const sample = SAMPLE_WORKFLOWS['text-to-image'];

function withCheckpoint(name: string): unknown {
	return { ...sample, '4': { ...sample['4'], inputs: { ckpt_name: name } } };
}

describe('hosting', () => {
	const client = sharedClient();

	async function reasonFor(exported: unknown): Promise<string> {
		try {
			await client().platform.hostWorkflow(exported);
		} catch (error) {
			if (error instanceof WorkflowRefused) return `${error.reason}: ${error.message}`;
			throw error;
		}
		return 'hosted';
	}

	test.each<[string, unknown, RegExp]>([
		['an editor file', { nodes: [], links: [], version: 0.4 }, /^notApiExport: .*format of the editor/],
		['text that is not JSON', '{oops', /^notApiExport: .*not JSON/],
		['a list', [], /^notApiExport/],
		['null', null, /^notApiExport/],
		['no nodes', {}, /^notApiExport/],
		['nodes without a class', { '1': { inputs: {} } }, /^notApiExport: Node 1/],
		[
			'a custom node',
			{ ...sample, '30': { class_type: 'FancyUpscaler', inputs: {} } },
			/^unsupportedNode: Node 30 has the class FancyUpscaler/,
		],
		['an unknown model', withCheckpoint('my-own.safetensors'), /^unsupportedModel: .*my-own/],
		[
			'a link to nothing',
			{ ...sample, '9': { ...sample['9'], inputs: { images: ['99', 0] } } },
			/^invalidGraph: Node 9 .*images/,
		],
		[
			'a cycle',
			{
				'1': { class_type: 'ImageScale', inputs: { image: ['2', 0] } },
				'2': { class_type: 'ImageScale', inputs: { image: ['1', 0] } },
				'3': { class_type: 'SaveImage', inputs: { images: ['1', 0] } },
			},
			/^invalidGraph: .*feeds itself/,
		],
		['no output node', { '1': { class_type: 'LoadImage', inputs: {} } }, /^invalidGraph: .*no SaveImage/],
	])('refuses %s', async (_what, exported, reason) => {
		expect(await reasonFor(exported)).toMatch(reason);
	});

	test('refuses a parameter view', async () => {
		const view = client().platform.parameterView('text-to-image');
		expect(await reasonFor(view)).toMatch(/^notApiExport: .*parameter view/);
	});

	test('does not let an owner take the workflow ID of another', async () => {
		const { platform } = client();
		const { apiKey } = platform.createOwner('taker');
		const taken = platform.hostWorkflow(sample, { workflowId: 'text-to-image', apiKey });
		await expect(taken).rejects.toMatchObject({ reason: 'idTaken' });
	});
});
