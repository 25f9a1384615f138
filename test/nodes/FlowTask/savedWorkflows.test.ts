import type { INodeParameters } from 'n8n-workflow';

import textToImage from '../../platform/workflows/text-to-image.json';
import type { HarnessRun } from '../harness';
import { sharedStage } from '../harness/stage';
import { openStage, text } from './flowTask.fixture';

/* Workflows that the account saves by name. */

const stage = sharedStage(openStage);

const chosen = (name: string) => ({ __rl: true, mode: 'list', value: `saved:${name}` });

async function run(saved: string, parameters: INodeParameters): Promise<HarnessRun> {
	const own = { overrides: { mappingMode: 'defineBelow', value: null } };
	const items = [{ json: { name: 'Second' } }];
	const account = { savedWorkflows: saved };
	return await stage.run(items, { ...own, overrideFields: {}, ...parameters }, { account });
}

const entry = () => ({ workflowId: stage.workflowId, definition: textToImage });

test('chooses a workflow by name, and the prompt reaches its node', async () => {
	const done = await run(JSON.stringify({ Portrait: entry() }), {
		workflowId: chosen('Portrait'),
		promptText: 'a red door',
	});
	expect(done.status).toBe('success');
	const [task] = stage.platform.books().tasks;
	expect(task?.workflowId).toBe(stage.workflowId);
	expect(task?.prompt).toEqual({ '6': { inputs: { text: 'a red door' } } });
});

test.each(['__proto__', 'toString', ' Portrait\t', '"a": {b}', 'saved:', '🚲 夜'])(
	'the name %j is found as chosen, and Save replaces its entry',
	async (name) => {
		const saved = `{${JSON.stringify(name)}: ${JSON.stringify(entry())}}`;
		const done = await run(saved, { workflowId: chosen(name) });
		expect([done.status, done.error?.message]).toEqual(['success', undefined]);
		const again = await run(saved, {
			resource: 'workflow',
			operation: 'save',
			savedName: name,
			hostedId: stage.workflowId,
			workflowDefinition: JSON.stringify(textToImage),
		});
		const list = text(again.jsons()[0]?.savedWorkflows);
		expect(JSON.parse(list)).toHaveProperty([name.trim()], entry());
		expect(list.match(/"workflowId"/g)).toHaveLength(1);
	},
);

test('checks inputs against the saved definition before sending anything', async () => {
	const done = await run(JSON.stringify({ Portrait: entry() }), {
		workflowId: chosen('Portrait'),
		prompt: '{"99": {"inputs": {"text": "x"}}}',
	});
	expect(done.error?.message).toContain('99');
	expect(stage.platform.books().tasks).toEqual([]);
});

test('an expression can choose by name or by ID', async () => {
	const saved = JSON.stringify({ First: { workflowId: 'wf_gone' }, Second: entry() });
	for (const workflowId of ['=saved:{{ $json.name }}', stage.workflowId]) {
		const done = await run(saved, { workflowId: { __rl: true, mode: 'id', value: workflowId } });
		expect([done.status, done.error?.message]).toEqual(['success', undefined]);
	}
	expect(stage.platform.books().tasksMade).toBe(2);
});

test.each([
	['another name', '{"Portrait": {"workflowId": "w"}}', /no saved workflow "Poster"/, /has: Portrait/],
	['an empty list', '{}', /no saved workflow "Poster"/, /by its ID/],
	['a list', '[1, 2]', /is not a JSON object/, /It should look like/],
	[
		'a sentence for an ID',
		'{"Poster": {"workflowId": "ID: wf_8c1f0a"}}',
		/^In the saved workflow "Poster" of the account: "workflowId" contains "ID: wf_8c1f0a", which is not an ID/,
		/In the credential, enter the ID/,
	],
])('reports %s with what to do, and sends nothing', async (_, saved, message, advice) => {
	const done = await run(saved, { workflowId: chosen('Poster') });
	expect(done.error?.message).toMatch(message);
	expect(done.error?.description).toMatch(advice);
	expect(stage.platform.books().tasks).toEqual([]);
});

test('names an entry that cannot be read', async () => {
	const broken = { workflowId: stage.workflowId, definition: { nodes: [], links: [] } };
	const done = await run(JSON.stringify({ Poster: broken }), { workflowId: chosen('Poster') });
	expect(done.error?.message).toMatch(/^In the saved workflow "Poster" of the account: .*UI format/);
	expect(done.error?.description).toContain("'Workflow' > 'Save' replaces");
	expect(stage.platform.books().tasks).toEqual([]);
});

test('a wrong entry does not affect the choice of another', async () => {
	const done = await run(JSON.stringify({ Broken: {}, Portrait: entry() }), {
		workflowId: chosen('Portrait'),
	});
	expect([done.status, stage.platform.books().tasksMade]).toEqual(['success', 1]);
});

test('a broken list does not affect an entered ID', async () => {
	const done = await run('{"Poster": ', { workflowId: stage.workflowId });
	expect(done.status).toBe('success');
});

describe('Save', () => {
	const form = (name: string, own: INodeParameters = {}) => ({
		...{ resource: 'workflow', operation: 'save', savedName: name },
		...{ hostedId: stage.workflowId, workflowDefinition: JSON.stringify(textToImage), ...own },
	});

	test('outputs the list with the new workflow, which runs from there', async () => {
		const before = JSON.stringify({ Old: { workflowId: 'wf_old', parameterView: { '3': {} } } });
		const saved = await run(before, form('Portrait'));
		const [item, ...others] = saved.items();
		expect(others).toEqual([]);
		expect(item?.json.saved).toEqual([
			{ name: 'Portrait', workflowId: stage.workflowId, nodes: 7, inputs: expect.any(Number), prompts: 1 },
		]);
		const list = text(item?.json.savedWorkflows);
		expect(JSON.parse(list)).toEqual({
			Old: { workflowId: 'wf_old', parameterView: { '3': {} } },
			Portrait: { workflowId: stage.workflowId, definition: textToImage },
		});
		// The second form is what n8n's copy button copies from the output.
		for (const pasted of [list, JSON.stringify([item?.json], null, 2)]) {
			const done = await run(pasted, { workflowId: chosen('Portrait'), promptText: 'a blue door' });
			expect([done.status, done.error?.message]).toEqual(['success', undefined]);
		}
		expect(stage.platform.books().tasksMade).toBe(2);
	});

	test('keeps all digits of a seed', async () => {
		const definition = JSON.stringify(textToImage).replace(/"seed":\d+/, '"seed":18446744073709551615');
		expect(definition).toContain('18446744073709551615');
		const saved = await run('{}', form('Portrait', { workflowDefinition: definition }));
		const list = text(saved.jsons()[0]?.savedWorkflows);
		expect(list).toContain('18446744073709551615');
		const again = await run(list, form('Other'));
		expect(text(again.jsons()[0]?.savedWorkflows)).toContain('18446744073709551615');
		const done = await run(list, { workflowId: chosen('Portrait'), promptText: 'a red door' });
		expect(done.status).toBe('success');
	});

	test('loses no wrong entry of the list: it outputs nothing until the entry is corrected', async () => {
		const done = await run('{"Broken": {}}', form('Portrait'));
		expect(done.error?.message).toContain('no "workflowId" for "Broken"');
	});

	test('refuses two items with the same name, of which only one would be saved', async () => {
		const names = ['Portrait', 'Fox', ' Portrait '].map((name) => ({ json: { name } }));
		const saved = await stage.run(names, form('={{ $json.name }}'));
		expect(saved.error?.message).toContain('Another item has the same name, "Portrait"');
	});

	test.each([
		['an empty name', "={{ '' }}", {}, "'Name' is empty"],
		['an empty ID', 'Portrait', { hostedId: "={{ '' }}" }, "'Workflow ID' is empty"],
		['a rounded ID', 'Portrait', { hostedId: '={{ 12345678901234567890 }}' }, 'n8n rounds its last digits'],
		['a sentence', 'Portrait', { hostedId: 'ID: wf_8c1f0a' }, 'contains "ID: wf_8c1f0a", which is not an ID'],
		[
			'JSON that is not an export',
			'Portrait',
			{ workflowDefinition: '{"a": 1}' },
			'contains no workflow nodes',
		],
		['a wrong view', 'Portrait', { parameterSpec: '{"a": 1}' }, "'Parameter View'"],
	])('refuses %s', async (_, name, own, message) => {
		const done = await run('{}', form(name, own));
		expect(done.error?.message).toContain(message);
	});
});
