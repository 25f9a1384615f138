// Reads n8n's table of a batch as a person does: which picture belongs to which row of the list.
import type { Page } from 'playwright-core';
import type { Editor } from './browser';
import { docsImage } from './browser';
import { inARow } from './chatWorkflows';
import textToImage from '../platform/workflows/text-to-image.json';
import { until } from '../until';
import type { RunningN8n, SavedCredential } from './runner';
import { editorStage, platformAccount } from './stage';

/** One line of n8n's table is 27 pixels high, two are 45. */
const ONE_LINE_PX = 40;
/** How long n8n may take to show the log, if it is open. */
const SHOWN_WITHIN_MS = 3_000;

let n8n: RunningN8n;
let account: SavedCredential;
let workflowId: string;
let editor: Editor;
let page: Page;
const stage = editorStage('output-table-', {
	platform: { runners: 8, taskMs: 100 },
	prepare: async (parts) => {
		({ n8n } = parts);
		({ workflowId } = await parts.platform.hostWorkflow(textToImage));
		account = await platformAccount(parts);
	},
});

beforeAll(() => {
	({ editor } = stage);
	({ page } = editor);
});

const SUBJECTS = [
	'A red bicycle leaning on a wall',
	'A lighthouse at night',
	'A tin robot that waters plants',
];
const BLANK_EVERY = 10;
/** How many rows n8n shows at once. */
const PAGE = 25;
const FAILING = new Set([9, 17]);

interface Order {
	sku: string;
	prompt: string;
}

const listed = (count: number): Order[] =>
	Array.from({ length: count }, (_, index) => ({
		sku: `A-${index + 1}`,
		prompt: `${SUBJECTS[index % SUBJECTS.length]}, seen from afar, number ${index + 1}`,
	}));

async function runBatch(name: string, orders: readonly Order[]): Promise<void> {
	const start = { name: 'Start', type: 'n8n-nodes-base.manualTrigger' };
	const jsCode = `return ${JSON.stringify(orders)};`;
	const list = { name: 'Orders', type: 'n8n-nodes-base.code', typeVersion: 2, parameters: { jsCode } };
	const pictures = {
		name: 'Pictures',
		type: 'n8n-nodes-flowtask.flowTask',
		onError: 'continueRegularOutput',
		parameters: {
			workflowId: { __rl: true, mode: 'id', value: workflowId },
			promptText: '={{ $json.prompt }}',
			workflowDefinition: JSON.stringify(textToImage),
		},
		credentials: { flowPlatformApi: { id: account.id, name: account.name } },
	};
	await editor.openWorkflow(await n8n.client.createWorkflow(inARow(name, [start, list, pictures])));
	await page.getByTestId('execute-workflow-button').first().click();
	await editor.canvasNode('Pictures').getByTestId('canvas-node-status-success').waitFor();
	await editor.dismissMessages();
}

/** Reads the table that n8n shows of the last node below the canvas. */
async function readTable() {
	const output = page.getByTestId('log-details-output');
	const shows = async (): Promise<boolean> => {
		const isShown = await output.waitFor({ timeout: SHOWN_WITHIN_MS }).then(
			() => true,
			() => false,
		);
		if (!isShown) await page.getByTestId('logs-overview-header').click();
		return isShown;
	};
	await until(shows, 'the log');
	await output.getByTestId('radio-button-table').click();
	const table = output.locator('table');
	await table.waitFor();
	const columns = (await table.locator('thead th').allInnerTexts()).map((text) => text.trim());
	const rows = await table.locator('tbody tr').all();
	const seen = rows.map(async (row) => ({
		cells: (await row.locator('td').allInnerTexts()).map((text) => text.trim()),
		height: (await row.boundingBox())?.height ?? Infinity,
	}));
	return { columns, rows: await Promise.all(seen) };
}

test('a row of a batch is one line high in the table below the canvas', async () => {
	await runBatch('Batch', listed(6));
	const { columns, rows } = await readTable();
	await docsImage(page, 'output-table');
	expect(columns.filter(Boolean)).toEqual(['prompt', 'item', 'fileName', 'status', 'seed', 'taskId']);
	expect(rows).toHaveLength(6);
	expect(rows.filter(({ height }) => height > ONE_LINE_PX)).toEqual([]);
});

test('the rows of a page are told apart in the table, with blanks and failures among them', async () => {
	const orders = listed(PAGE).map((order, index) => ({
		...order,
		prompt:
			(index + 1) % BLANK_EVERY === 0 ? '' : order.prompt + (FAILING.has(index + 1) ? ' [fail: no]' : ''),
	}));
	await runBatch('Blanks and failures', orders);
	const { columns, rows } = await readTable();
	const at = (name: string): number => columns.indexOf(name);
	const states = new Map(rows.map(({ cells }) => [Number(cells[at('item')]), cells[at('status')]]));
	const unlike = orders.filter((order, index) => {
		const cells = rows.find((row) => row.cells[at('item')] === String(index + 1))?.cells ?? [];
		const shown = cells[at('prompt')]?.replace('…', '') ?? '?';
		return shown !== 'undefined' && !order.prompt.startsWith(shown);
	});
	expect(unlike).toEqual([]);
	const others = [...states].filter(([, status]) => status !== 'succeeded');
	expect(others.map(([item]) => item).sort((one, other) => one - other)).toEqual([9, 10, 17, 20]);
});
