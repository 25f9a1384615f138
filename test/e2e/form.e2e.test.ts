// Tests the form in n8n's own editor, in a real browser, as an operator fills it in.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Locator } from 'playwright-core';
import type { LocalPlatform } from '../platform';
import type textToImage from '../platform/workflows/text-to-image.json';
import { overrideFieldsOf } from '../../nodes/FlowTask/methods/overrideFields';
import { BUILT_EXPORTS } from '../unit/FlowTask/exports.builder';
import type { Editor } from './browser';
import { docsImage } from './browser';
import { inARow } from './chatWorkflows';
import type { RunningN8n, SavedCredential, SavedWorkflow, WorkflowDocument } from './runner';
import { editorStage, platformAccount } from './stage';

const SAVE_DEADLINE_MS = 15_000;
/** The height of the browser's window. */
const WINDOW_HEIGHT = 900;
const exported = readFileSync(join(__dirname, '..', 'platform', 'workflows', 'text-to-image.json'), 'utf8');

let platform: LocalPlatform;
let n8n: RunningN8n;
let editor: Editor;
let account: SavedCredential;
let workflowId: string;
const stage = editorStage('flowtask-n8n-', {
	platform: { runners: 4, taskMs: 300 },
	prepare: async (parts) => {
		({ platform, n8n } = parts);
		({ workflowId } = await platform.hostWorkflow(exported, { workflowId: 'wf_8c1f0a' }));
		account = await platformAccount({ platform, n8n });
	},
});

beforeAll(() => {
	({ editor } = stage);
});

beforeEach(() => {
	platform.resetBooks();
});

/** The titles of two rows, in the order of the list, not in the order in which they are added. */
const TWO_ROWS = [
	'steps (3), from 1 to 150 · KSampler – hosted: 20',
	'sampler_name (3) · KSampler – hosted: euler',
];
const PROMPT_ROW = 'Prompt (6) · Positive Prompt · text – hosted: a red fox in a snow forest at sunrise';

const SEED: unknown = expect.any(Number);
const CHANGES = { '3': { inputs: { sampler_name: 'heun', steps: 12, seed: SEED } } };

type Parameters = Record<string, unknown>;

/** Saves a workflow of a trigger and FlowTask nodes in a row. */
async function saveWorkflow(name: string, nodes: Record<string, Parameters>): Promise<SavedWorkflow> {
	const start = { name: 'Start', type: 'n8n-nodes-base.manualTrigger' };
	const credentials = { flowPlatformApi: { id: account.id, name: account.name } };
	const tasks = Object.entries(nodes).map(([nodeName, parameters]) => ({
		...{ name: nodeName, type: 'n8n-nodes-flowtask.flowTask', parameters, credentials },
	}));
	return await n8n.client.createWorkflow(inARow(name, [start, ...tasks]));
}

/** Waits until the editor, which saves by itself a moment after each change, has saved what `check` expects. */
async function untilSaved({ id }: SavedWorkflow, check: (saved: WorkflowDocument) => void): Promise<void> {
	const deadline = Date.now() + SAVE_DEADLINE_MS;
	for (;;) {
		const saved = await n8n.client.call<WorkflowDocument>('GET', `/rest/workflows/${id}`);
		try {
			check(saved);
			return;
		} catch (error) {
			if (Date.now() > deadline) throw error;
			await sleep(200);
		}
	}
}

/** Expects a line to be on the screen without scrolling, as wide as it is. */
async function expectShown(line: Locator): Promise<void> {
	const { y = -1, height = 0 } = (await line.boundingBox()) ?? {};
	expect({ y, isAbove: y > 0, isBelow: y + height > WINDOW_HEIGHT }).toEqual({
		y,
		isAbove: true,
		isBelow: false,
	});
	const isCut = await line.evaluate((element) =>
		[element, ...element.querySelectorAll('*')].some((one) => one.scrollWidth > one.clientWidth + 1),
	);
	expect(isCut).toBe(false);
}

test('a pasted export becomes rows, and changes in them reach the platform', async () => {
	const view = platform.parameterView(workflowId);
	await editor.openWorkflow(await saveWorkflow('Picture of the day', { 'Flow Task': {} }));
	await editor.openNode('Flow Task');
	await editor.search('workflowId', workflowId, workflowId);
	expect(await editor.rowsNotice.innerText()).toContain("'Workflow Definition' above");
	await editor.paste('workflowDefinition', exported);
	await expectShown(await editor.untilRow('Prompt fills text (6) · 13 inputs'));
	// The rows exist now; the parameter view adds their lists and ranges.
	await editor.page.getByTestId('add-fields-select').waitFor();
	await editor.addExpertOption('Parameter View');
	await editor.paste('parameterSpec', JSON.stringify(view, null, 2));

	const offered = await editor.untilOffered(TWO_ROWS[0] ?? '');
	expect(offered.slice(0, 3)).toEqual([
		PROMPT_ROW,
		'Negative prompt (7) · Negative Prompt · text – hosted: text, watermark',
		'seed (3), 0 or more · KSampler – hosted: 156680208700286',
	]);
	expect(offered).toHaveLength(13);
	await editor.addRow(TWO_ROWS[1] ?? '');
	await editor.openRowMenu();
	await editor.addRow(TWO_ROWS[0] ?? '');
	expect(await editor.rows()).toEqual(TWO_ROWS);
	expect([await editor.shown('3/sampler_name'), await editor.shown('3/steps')]).toEqual(['euler', '20']);

	const samplers = await editor.openList('3/sampler_name');
	expect(samplers).toEqual(view['3']?.inputs.sampler_name?.spec.list);
	await editor.choose('heun');
	await editor.type('3/steps', '12');
	expect([await editor.shown('3/sampler_name'), await editor.shown('3/steps')]).toEqual(['heun', '12']);
	await docsImage(editor.page, 'form');

	await editor.executeStep();
	expect(await editor.output.innerText()).toContain('image/png');
	await editor.dismissMessages();
	await editor.output.getByTestId('ndv-view-binary-data').click();
	await editor.output.getByRole('img').first().waitFor();
	await docsImage(editor.page, 'output');

	const { tasks, requests, leaks } = platform.books();
	expect(tasks.map(({ prompt }) => prompt)).toEqual([CHANGES]);
	expect({ submits: requests.submit, uploads: requests.upload, leaks }).toEqual({
		submits: 1,
		uploads: 0,
		leaks: [],
	});
	expect(n8n.log.errors()).toEqual([]);
});

// This test goes on in the node that is still open.
test('a newer export keeps what was filled in, and its new inputs are not sent', async () => {
	const newer = JSON.parse(exported) as typeof textToImage;
	newer['3'].inputs.steps = 30;
	// In a text field, n8n would take this for an expression.
	newer['7'].inputs.text = 'text, {{watermark|logo}}';
	const added = {
		inputs: { width: 640, image: ['8', 0] },
		class_type: 'ImageScale',
		_meta: { title: 'Enlarge' },
	};
	await editor.paste('workflowDefinition', JSON.stringify({ ...newer, '12': added }));
	await editor.closeNode();
	await editor.openNode('Flow Task');

	// The new input has a row without a value.
	await editor.untilRow('width (12) · Enlarge');
	const [steps = '', sampler] = TWO_ROWS;
	expect(await editor.rows()).toEqual([
		steps.replace('hosted: 20', 'hosted: 30'),
		sampler,
		'width (12) · Enlarge – hosted: 640',
	]);
	expect(await editor.shown('12/width')).toBe('');
	expect([await editor.shown('3/sampler_name'), await editor.shown('3/steps')]).toEqual(['heun', '12']);
	await editor.executeStep();
	expect(await editor.output.innerText()).toContain('image/png');
	expect(platform.books().tasks.map(({ prompt }) => prompt)).toEqual([CHANGES]);
});

test('what was found in any export can be read below it without scrolling', async () => {
	await editor.openWorkflow(await saveWorkflow('Ten exports', { 'Flow Task': { workflowId } }));
	await editor.openNode('Flow Task');
	for (const { source } of BUILT_EXPORTS.slice(0, 10)) {
		await editor.paste('workflowDefinition', JSON.stringify(source, null, 2));
		const { fields } = overrideFieldsOf({ workflowId, definition: source, view: '' });
		const verdict = await editor.untilRow(fields[0]?.displayName ?? '');
		await expectShown(verdict);
	}
});

test('while an expression of the node has no data, n8n reads an export when the node is opened again, as the notice says', async () => {
	const parameters = { workflowId, promptText: '={{ $json.prompt }}' };
	await editor.openWorkflow(await saveWorkflow('A prompt from the list', { 'Flow Task': parameters }));
	await editor.openNode('Flow Task');
	await editor.paste('workflowDefinition', exported);
	await editor.rowsNotice.getByText('close this node and open it again').waitFor();
	await editor.closeNode();
	await editor.openNode('Flow Task');
	await editor.untilRow('Prompt fills text (6) · 13 inputs');

	await editor.page.getByText('Execute previous nodes').click();
	await editor.page.getByText('Execute previous nodes').waitFor({ state: 'detached' });
	await editor.closeNode();
	await editor.openNode('Flow Task');
	await editor.untilRow('Prompt fills text (6) · 13 inputs');
	await editor.paste('workflowDefinition', exported.replace('"text": "text, watermark"', '"text": ["6", 0]'));
	await expectShown(await editor.untilRow('Prompt fills text (6) · 12 inputs'));
});

describe('an export pasted into a node', () => {
	const editorFile = JSON.stringify({ last_node_id: 9, nodes: [], links: [], version: 0.4 }, null, 2);

	async function untilAddable(): Promise<void> {
		await editor.page.getByTestId('add-fields-select').waitFor();
	}

	test('shows what is wrong at once, and rows once it is the right one', async () => {
		await editor.openWorkflow(await saveWorkflow('The wrong file first', { 'Flow Task': { workflowId } }));
		await editor.openNode('Flow Task');
		await editor.paste('workflowDefinition', editorFile);
		await editor.rowsNotice.getByText('(UI format)').waitFor();
		await editor.paste('workflowDefinition', exported.slice(0, -20));
		await editor.rowsNotice.getByText('is not valid JSON').waitFor();
		await editor.paste('workflowDefinition', exported);
		await untilAddable();
		expect(await editor.openRowMenu()).toHaveLength(13);
		await editor.addRow(PROMPT_ROW);
		expect(await editor.rows()).toEqual([PROMPT_ROW]);
	});

	// These tests go on in the node that is still open.
	test.each<[string, () => Promise<void>]>([
		['is emptied first', async () => await editor.clear('workflowDefinition')],
		['is indented differently', async () => await paste(JSON.stringify(JSON.parse(exported)))],
		['is another workflow', async () => await paste(exported.replace('"steps": 20', '"steps": 25'))],
		['is the wrong file', async () => await paste(editorFile)],
	])('keeps what was entered when it %s', async (_case, change) => {
		await editor.type('6/text', 'an owl at night');
		await change();
		// n8n takes this long to request the rows again.
		await sleep(2_000);
		expect([await editor.rows(), await editor.shown('6/text')]).toEqual([[PROMPT_ROW], 'an owl at night']);
	});

	test('keeps what was entered when the node is opened again, below the message', async () => {
		await editor.closeNode();
		await editor.openNode('Flow Task');
		const complaint = editor.page.getByTestId('mapping-fields-container').getByText('(UI format)');
		await complaint.waitFor();
		expect(await editor.shown('6/text')).toBe('an owl at night');
		await paste(exported);
		await editor.closeNode();
		await editor.openNode('Flow Task');
		await complaint.waitFor({ state: 'detached' });
		expect([await editor.rows(), await editor.shown('6/text')]).toEqual([[PROMPT_ROW], 'an owl at night']);
	});

	async function paste(text: string): Promise<void> {
		await editor.paste('workflowDefinition', text);
	}
});

test('a field dragged onto a text row replaces what the row contains', async () => {
	const parameters = { workflowId, workflowDefinition: exported };
	await editor.openWorkflow(
		await saveWorkflow('Drag', { Before: { operation: 'submit', workflowId }, 'Flow Task': parameters }),
	);
	await editor.openNode('Flow Task');
	await editor.openRowMenu();
	await editor.addRow(PROMPT_ROW);
	await editor.page.locator('[data-test-id="run-data-schema-node-name"][data-name="taskId"]').waitFor();
	await editor.map('taskId', '6/text');
	await editor.field('6/text').getByText('{{ $json.taskId }}', { exact: true }).waitFor();
	await editor.executeStep();
	await editor.dismissMessages();
	const [submitted, run] = platform.books().tasks;
	expect(run?.prompt).toEqual({
		'3': { inputs: { seed: SEED } },
		'6': { inputs: { text: submitted?.taskId } },
	});
});

describe('lists made from the export', () => {
	const imageToImage = readFileSync(
		join(__dirname, '..', 'platform', 'workflows', 'image-to-image.json'),
		'utf8',
	);

	test('offer the nodes that load an image, and the seeds', async () => {
		const slot = [{ source: 'url', url: 'https://example.com/a.png' }];
		const parameters = {
			workflowId,
			workflowDefinition: imageToImage,
			options: {
				expert: { imageSlots: { slot }, outputNodes: { node: [{ field: 'data' }] } },
				seedMode: 'random',
				seedTargets: { __rl: true, mode: 'list', value: '' },
			},
		};
		const saved = await saveWorkflow('Lists', { 'Flow Task': parameters });
		await editor.openWorkflow(saved);
		await editor.openNode('Flow Task');
		expect(await editor.openSearch('nodeId', 'first')).toEqual(['Load Image (10) · image']);
		await editor.page.getByTestId('rlc-item').click();
		expect(await editor.openSearch('seedTargets')).toEqual(['KSampler (3) · seed']);
		await editor.page.getByTestId('rlc-item').click();
		// Two fields are called "nodeId"; the one of the option is the lower one.
		expect(await editor.openSearch('nodeId', 'last')).toEqual(['Save Image (9)']);
		await editor.page.getByTestId('rlc-item').click();
		await untilSaved(saved, ({ nodes }) => {
			expect(nodes.find(({ name }) => name === 'Flow Task')?.parameters).toMatchObject({
				options: {
					expert: {
						outputNodes: { node: [{ nodeId: { mode: 'list', value: '9' } }] },
						imageSlots: { slot: [{ nodeId: { mode: 'list', value: '10' } }] },
					},
					seedTargets: { mode: 'list', value: '3.seed' },
				},
			});
		});
	});

	test('show IDs that were entered before the lists existed', async () => {
		const slot = [{ nodeId: '10', source: 'url', url: 'https://example.com/a.png' }];
		const parameters = {
			workflowId,
			options: { seedMode: 'random', seedTargets: '3.seed', expert: { imageSlots: { slot } } },
		};
		await editor.openWorkflow(await saveWorkflow('Entered IDs', { 'Flow Task': parameters }));
		await editor.openNode('Flow Task');
		const shown = (name: string) =>
			editor.page.getByTestId(`resource-locator-${name}`).locator('input').last().inputValue();
		expect([await shown('nodeId'), await shown('seedTargets')]).toEqual(['10', '3.seed']);
	});
});

test('the panel reports values that do not fit, with advice, before anything is paid for', async () => {
	const override = [
		{ nodeId: '3', parameter: 'steps', value: '900', valueType: 'auto' },
		{ nodeId: '3', parameter: 'sampler_name', value: 'eular', valueType: 'auto' },
	];
	const parameters = {
		workflowId,
		workflowDefinition: exported,
		options: {
			expert: {
				overrideFields: { override },
				parameterSpec: JSON.stringify(platform.parameterView(workflowId)),
			},
		},
	};
	await editor.openWorkflow(await saveWorkflow('Values that do not fit', { 'Flow Task': parameters }));
	await editor.openNode('Flow Task');
	await editor.executeStep();
	await editor.dismissMessages();

	const title = await editor.output.getByTestId('node-error-message').innerText();
	expect(title).toContain('steps is 900, but must be a number, from 1 to 150');
	expect(title).toContain('sampler_name is "eular"');
	expect(await editor.output.getByTestId('node-error-description').innerText()).toMatch(
		/nothing was submitted/i,
	);
	await docsImage(editor.page, 'error');
	expect(platform.books().requests).toMatchObject({ submit: 0, info: 0 });
});

test("a suspended wait has two outputs, and 'Check Again' can be connected to its own input", async () => {
	const saved = await saveWorkflow('Wait without holding a worker', {
		Submit: { operation: 'submit', workflowId },
		'Wait for Pictures': { operation: 'wait' },
	});
	await editor.openWorkflow(saved);
	expect(await editor.outputLabels('Wait for Pictures')).toHaveLength(1);

	await editor.openNode('Wait for Pictures');
	await editor.openList('waitMode');
	await editor.choose('Suspend');
	await editor.closeNode();
	expect(await editor.outputLabels('Wait for Pictures')).toEqual(['Check Again', 'Done']);
	await editor.connect('Wait for Pictures', 0, 'Wait for Pictures');
	await docsImage(editor.page, 'canvas');
	const back = [{ node: 'Wait for Pictures', type: 'main', index: 0 }];
	await untilSaved(saved, ({ connections, nodes }) => {
		expect(connections['Wait for Pictures']).toEqual({ main: [back] });
		const wait = nodes.find(({ name }) => name === 'Wait for Pictures');
		expect(wait?.parameters).toMatchObject({ operation: 'wait', waitMode: 'suspend' });
	});
});
