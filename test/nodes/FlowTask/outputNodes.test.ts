import type { INodeParameters } from 'n8n-workflow';

import twoOutputs from '../../platform/workflows/two-outputs.json';
import type { HarnessRun } from '../harness';
import { sharedStage } from '../harness/stage';
import { openStage, text } from './flowTask.fixture';

/* Files by the node that made them, each in a field of its own. */

const stage = sharedStage(openStage);
let workflowId: string;
beforeAll(async () => {
	({ workflowId } = await stage.platform.hostWorkflow(twoOutputs));
});

type Wanted = ReadonlyArray<readonly [nodeId: string, field: string]>;

async function run(wanted: Wanted, parameters: INodeParameters = {}): Promise<HarnessRun> {
	// The first node is chosen from the list, the others come from an expression.
	const node = wanted.map(([nodeId, field], row) => ({
		nodeId: row === 0 ? { __rl: true, mode: 'list', value: nodeId } : nodeId,
		field,
	}));
	const own = { workflowId, overrideFields: {}, output: 'allFiles', options: { outputNodes: { node } } };
	return await stage.run([{ json: {} }], { ...own, ...parameters });
}

const WITH_DEFINITION = { workflowDefinition: JSON.stringify(twoOutputs) };
const hints = (done: HarnessRun): string => JSON.stringify(done.raw.data.resultData.runData);

test('outputs the files of two nodes in two fields of one item', async () => {
	const done = await run([
		['20', 'final'],
		['9', 'image'],
	]);
	const [item, ...others] = done.items();
	expect(others).toEqual([]);
	expect(Object.keys(item?.binary ?? {}).sort()).toEqual(['final', 'image']);
	expect(item?.json.missingOutputs).toBeUndefined();
});

test('downloads only the file of the one node named, by its title too if there is a definition', async () => {
	for (const [name, parameters] of [
		['20', {}],
		['20', WITH_DEFINITION],
		[twoOutputs['20']._meta.title.toUpperCase(), WITH_DEFINITION],
	] as const) {
		stage.platform.resetBooks();
		const done = await run([[name, 'final']], { output: 'filePerItem', simplify: false, ...parameters });
		expect(done.items().map(({ json, binary }) => [json.file, Object.keys(binary ?? {})])).toEqual([
			[expect.objectContaining({ nodeId: '20' }), ['final']],
		]);
		expect(stage.platform.books().requests.file).toBe(1);
	}
});

test('links are those of the nodes named, or of all nodes', async () => {
	const simple = { output: 'urls', simplify: true };
	const nodesOf = ({ url, otherUrls = [] }: Record<string, unknown>): unknown[] =>
		[url, ...(otherUrls as unknown[])].map((link) => /\/files\/[^/]+\/(\d+)\//.exec(text(link))?.[1]).sort();
	const named = await run([['9', 'image']], simple);
	expect(named.jsons().map(nodesOf)).toEqual([['9']]);
	const all = await run([], { ...simple, options: { files: 'all' } });
	expect(all.jsons().map(nodesOf)).toEqual([['20', '9']]);
});

test('numbers the field if two nodes use the same one', async () => {
	const done = await run([
		['9', 'data'],
		['20', ''],
	]);
	expect(Object.keys(done.items()[0]?.binary ?? {}).sort()).toEqual(['data', 'data_1']);
});

test('reports a node without files, names the nodes that have some, and outputs no substitute', async () => {
	const done = await run([
		['9', 'image'],
		['77', 'mask'],
	]);
	const [item] = done.items();
	expect(Object.keys(item?.binary ?? {})).toEqual(['image']);
	expect(item?.json.missingOutputs).toEqual(['77']);
	expect(hints(done)).toContain('1 task(s) lack files from chosen output nodes: 77. Files came from 9, 20.');
	expect(hints(done)).not.toContain('succeeded without any file');
});

test.each<[string, string, RegExp]>([
	['that the definition lacks', 'Upscale', /names "Upscale", which is not in the workflow definition/],
	['without a name', '', /A row of 'Output Nodes' has no node/],
])('refuses a node %s before anything is paid for', async (_what, name, message) => {
	const done = await run([[name, 'data']], WITH_DEFINITION);
	expect(done.error?.message).toMatch(message);
	expect(stage.platform.books().tasksMade).toBe(0);
});

test('refuses a node that is named twice, and keeps a file in a field with any name', async () => {
	const twice = await run([
		['20', 'a'],
		['20', 'b'],
	]);
	expect(twice.error?.message).toBe('\'Output Nodes\' names node "20" twice');
	expect(stage.platform.books().tasksMade).toBe(0);
	const done = await run([['20', '__proto__']]);
	expect(Object.keys(done.items()[0]?.binary ?? {})).toEqual(['__proto__']);
});

test('refuses a title that two nodes share, and names their IDs', async () => {
	const same = structuredClone(twoOutputs);
	same['20']._meta.title = same['9']._meta.title;
	const done = await run([[same['9']._meta.title, 'data']], { workflowDefinition: JSON.stringify(same) });
	expect(done.error?.message).toContain('2 nodes with that title');
	expect(done.error?.description).toContain('9, 20');
});

test('"wait" selects the files of a node too', async () => {
	const submitted = await run([], { operation: 'submit', options: {} });
	const taskId = submitted.jsons()[0]?.taskId;
	const done = await run([['20', 'final']], { operation: 'wait', taskIds: text(taskId) });
	expect(done.items().map(({ binary }) => Object.keys(binary ?? {}))).toEqual([['final']]);
});
