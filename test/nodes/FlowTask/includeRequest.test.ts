import type { INodeParameters } from 'n8n-workflow';

import textToImage from '../../platform/workflows/text-to-image.json';
import imageToImage from '../../platform/workflows/image-to-image.json';
import type { HarnessRun, ItemInput } from '../harness';
import { sharedStage, PIXEL } from '../harness/stage';
import { openStage, prompts } from './flowTask.fixture';

/* The request is output, so that the same image can be made again. */

const stage = sharedStage(openStage);

const INCLUDED = { options: { simplify: false } };
const AGAIN = { overrideFields: {}, promptText: '', prompt: '={{ $json.request }}', seedMode: 'keep' };

const sent = (): unknown[] => stage.platform.books().tasks.map(({ prompt }) => prompt);

function requestsIn(run: HarnessRun): unknown[] {
	return run.jsons().map(({ request }) => request);
}

async function expectSameAgain(items: ItemInput[], parameters: INodeParameters): Promise<void> {
	const first = await stage.run(items, { ...INCLUDED, ...parameters });
	const requests = requestsIn(first);
	const bodies = sent();
	const workflowId = parameters.workflowId ?? stage.workflowId;
	expect(requests).toHaveLength(bodies.length);
	expect(new Set(requests.map((request) => JSON.stringify(request)))).toEqual(
		new Set(bodies.map((prompt) => JSON.stringify({ workflow_id: workflowId, prompt }))),
	);
	stage.platform.resetBooks();
	const known = first.items().map(({ json }) => ({ json }));
	const asObject = await stage.run(known, {
		...INCLUDED,
		...parameters,
		imageSlots: {},
		variants: 1,
		...AGAIN,
	});
	const asText = await stage.run(known, {
		...INCLUDED,
		...parameters,
		imageSlots: {},
		variants: 1,
		...AGAIN,
		prompt: '={{ JSON.stringify($json.request) }}',
	});
	expect([requestsIn(asObject), requestsIn(asText)]).toEqual([requests, requests]);
	expect(new Set(sent().map((prompt) => JSON.stringify(prompt)))).toEqual(
		new Set(bodies.map((prompt) => JSON.stringify(prompt))),
	);
}

test.each(['run', 'submit'])('"%s" outputs a body that JSON mode sends unchanged', async (operation) => {
	await expectSameAgain(prompts(2), { operation, seedMode: 'random', seedTargets: '3.seed', variants: 2 });
});

test('a body from a form, or with an uploaded image, can be sent again too', async () => {
	await expectSameAgain(prompts(1), {
		overrideFields: {},
		promptText: '={{ $json.prompt }}',
		workflowDefinition: JSON.stringify(textToImage),
		seedMode: 'random',
	});
	stage.platform.resetBooks();
	const { workflowId } = await stage.platform.hostWorkflow(imageToImage);
	const photo = { data: PIXEL, fileName: 'a.png', mimeType: 'image/png' };
	await expectSameAgain([{ json: {}, binary: { data: photo } }], {
		workflowId,
		overrideFields: {},
		workflowDefinition: JSON.stringify(imageToImage),
		imageSlots: { slot: [{ nodeId: '10', parameter: 'image', source: 'binary', binaryField: 'data' }] },
	});
});

test('the request contains no key, and is output only if the option is on', async () => {
	const [secret] = requestsIn(
		await stage.run([{ json: { prompt: `a fox ${stage.platform.apiKey}` } }], INCLUDED),
	);
	expect(JSON.stringify(secret)).toContain('a fox');
	expect(JSON.stringify(secret)).not.toContain(stage.platform.apiKey);
	expect(requestsIn(await stage.run(prompts(1)))).toEqual([undefined]);
});
