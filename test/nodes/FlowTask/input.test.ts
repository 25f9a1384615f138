import type { INodeParameters } from 'n8n-workflow';

import textToImage from '../../platform/workflows/text-to-image.json';
import { sharedStage } from '../harness/stage';
import { openStage, prompts } from './flowTask.fixture';

const stage = sharedStage(openStage);
afterEach(() => {
	// Bad input is reported before anything is sent.
	expect(stage.platform.books().requests.submit).toBe(0);
	expect(stage.platform.books().requests.upload).toBe(0);
});

const json = (prompt: unknown): INodeParameters => ({
	overrideFields: {},
	prompt: typeof prompt === 'string' ? prompt : JSON.stringify(prompt),
});
const row = (value: string): INodeParameters => ({
	overrideFields: { override: [{ nodeId: '6', parameter: 'text', value, valueType: 'auto' }] },
});
test.each<[string, INodeParameters, RegExp, RegExp]>([
	['an empty workflow ID', { workflowId: '  ' }, /'Workflow' is empty/, /console/],
	[
		'a workflow ID that is JSON',
		{ workflowId: '{"3": {}}' },
		/which is not an ID/,
		/not the workflow itself/,
	],
	['a full export as prompt', json(textToImage), /is a full workflow export/, /only the inputs to change/],
	[
		'a quotation mark in a value that an expression inserts into JSON',
		{ overrideFields: {}, prompt: `={"6": {"inputs": {"text": "{{ 'a 5" screen' }}"}}}` },
		/a text in it has a quotation mark \(line 1, column 31\)/,
		/breaks the JSON\. Enter the text under 'Prompt' instead, or write \{\{ JSON\.stringify/,
	],
	[
		'a line break in a value that an expression inserts into JSON',
		{ overrideFields: {}, prompt: `={"6": {"inputs": {"text": "{{ 'a red' + '\\n' + 'fox' }}"}}}` },
		/a text in it has a line break \(line 1, column 33\)/,
		/JSON\.stringify\(\$json\.prompt\)/,
	],
	[
		'a key that JSON has twice',
		json('{"6": {"inputs": {"text": "a fox"}}, "3": {"inputs": {"steps": 8, "steps": 80}}}'),
		/an object in it contains the key "steps" twice/,
		/node ID, then the inputs to change/,
	],
	[
		'JSON that is broken without its expression',
		{ overrideFields: {}, prompt: `={"6": {"inputs": {"text": "{{ 'a 5" screen' }}",}}}` },
		/is not valid JSON/,
		/Enter an object such as/,
	],
	[
		'a workflow ID that n8n has rounded',
		{ workflowId: '={{ 7.2e17 }}' },
		/720000000000000000/,
		/as text: in JSON, put it in quotation marks/,
	],
	[
		'an idempotency key that n8n has rounded',
		{ limits: { idempotencyKey: '={{ 7.2e17 }}' } },
		/'Idempotency Key' contains 720000000000000000, which is a number beyond 9007199254740991/,
		/as text: in JSON, put it in quotation marks/,
	],
	[
		'an image ID that n8n has rounded',
		{
			imageSlots: {
				slot: [{ nodeId: '10', parameter: 'image', source: 'imageId', imageId: '={{ 2**53 }}' }],
			},
		},
		/'Image ID' contains 9007199254740992/,
		/as text: in JSON, put it in quotation marks/,
	],
	[
		'a value that was never entered',
		{ overrideFields: { override: [{ nodeId: '6', parameter: 'text' }] } },
		/Row 1 \("text" of node 6\) has an empty value/,
		/Correct this row/,
	],
	[
		'a seed that n8n has rounded',
		row('={{ 12345678901234567890 }}'),
		/12345678901234567000, which is a number beyond 9007199254740991, so n8n rounds/,
		/Correct this row/,
	],
	[
		'a missing file',
		{ imageSlots: { slot: [{ nodeId: '10', parameter: 'image', source: 'binary', binaryField: 'photo' }] } },
		/no file in field "photo"/,
		/no file at all/,
	],
	[
		'a URL that is not an HTTP URL',
		{ imageSlots: { slot: [{ nodeId: '10', parameter: 'image', source: 'url', url: 'ftp://x/y.png' }] } },
		/which is not an HTTP URL/,
		/http/,
	],
	['a seed mode without a target', { seedMode: 'fixed' }, /cannot tell which input is the seed/, /3\.seed/],
	[
		'an option out of its range',
		{ options: { urlExpirePeriod: 5 } },
		/'Link Validity \(Seconds\)' must be a number from 60/,
		/Options/,
	],
	[
		'a budget that is too small',
		{ limits: { maxTasks: 1 } },
		/would submit 2 tasks, more than the 1/,
		/Max Tasks/,
	],
])('%s is refused', async (_name, parameters, message, advice) => {
	const run = await stage.run(prompts(2), parameters);
	expect(run.status).toBe('error');
	expect(run.error?.message).toMatch(message);
	expect(run.error?.description).toMatch(advice);
	const continued = await stage.run(prompts(2), parameters, { onError: 'continueErrorOutput' });
	expect(continued.status).toBe('success');
	expect(continued.items()).toEqual([]);
	expect(continued.items(1)).toHaveLength(2);
});

test('without Continue On Fail, one bad item prevents the good ones from being submitted', async () => {
	const run = await stage.run([{ json: { prompt: 'good' } }, { json: {} }]);
	expect(run.error?.message).toMatch(/has no value/);
	expect(run.error?.description).toMatch(
		/No other item was submitted: to run the others, set 'On Error' in the node's settings to continue\.$/,
	);
	expect(run.error?.context.itemIndex).toBe(1);
});

test.each([
	['run', 'task', 'limits', 'Cost and Speed'],
	['get', 'task', 'options', 'Options'],
	['upload', 'image', 'options', 'Options'],
])(
	'a wrong number under the operation "%s" (%s) is reported with its group of options',
	async (operation, resource, group, label) => {
		const wrong = { [group]: { requestsPerSecond: '={{ -1 }}' } };
		const { error } = await stage.run(prompts(1), { resource, operation, taskIds: 'task-1', ...wrong });
		expect(error?.message).toContain("'Requests per Second' must be a number from 0");
		expect(error?.description).toContain(`Correct it under '${label}' in the node`);
	},
);
