import type { INodeParameters } from 'n8n-workflow';

import textToImage from '../../platform/workflows/text-to-image.json';
import { CredentialsHelper } from '../harness/credentials.helper';
import type { HarnessRun, ItemInput } from '../harness';
import { PIXEL, sharedStage, type NodeSettings } from '../harness/stage';
import { openStage } from './flowTask.fixture';

/* A credential whose key is an expression: a run uses one account, and each run may use another. */

const stage = sharedStage(openStage, { taskMs: 60, runners: 8 });
const keys: Record<string, string> = {};
/** The workflow's ID in each account: every owner hosts a copy of it. */
const flows: Record<string, string> = {};
beforeAll(async () => {
	for (const name of ['anna', 'ben']) {
		const { apiKey } = stage.platform.createOwner(name);
		keys[name] = apiKey;
		flows[name] = (await stage.platform.hostWorkflow(textToImage, { apiKey })).workflowId;
	}
});

const CONTINUE = { onError: 'continueRegularOutput' } as const;

/** One item per name. `key` is the account's key without `sk-`, which the credential's expression prepends. */
function itemsOf(...names: string[]): ItemInput[] {
	return names.map((name) => ({
		json: { prompt: 'a cat', key: keys[name]?.slice(3), flow: flows[name] ?? stage.workflowId },
		binary: { data: { data: PIXEL, fileName: 'a.png', mimeType: 'image/png' } },
	}));
}

async function run(
	items: ItemInput[],
	parameters: INodeParameters = {},
	settings: NodeSettings = {},
	apiKey = '=sk-{{ $json.key }}',
): Promise<HarnessRun> {
	const own = { workflowId: '={{ $json.flow }}', ...parameters };
	return await stage.run(items, own, { ...settings, account: { apiKey } });
}

const OPERATIONS: ReadonlyArray<readonly [string, INodeParameters]> = [
	['run', {}],
	['submit', { operation: 'submit' }],
	['wait', { operation: 'wait', taskIds: 'x' }],
	['get', { operation: 'get', taskIds: 'x' }],
	['upload', { resource: 'image', operation: 'upload' }],
	['download', { resource: 'file', operation: 'download', fileUrls: 'https://files.example.com/a.png' }],
];

test.each(OPERATIONS)('%s refuses items of several accounts, and sends nothing', async (_, parameters) => {
	const refused = await run(itemsOf('anna', 'anna', 'ben'), parameters);
	expect(refused.error?.message).toBe(
		'The FlowPlatform API credential has different values for rows 1 and 3 of the input, but a run uses one account',
	);
	expect(refused.error?.description).toContain('"Loop Over Items"');
	const continued = await run(itemsOf('anna', 'none'), parameters, CONTINUE);
	expect(continued.jsons().map(({ error }) => error)).toEqual([
		expect.stringContaining('rows 1 and 2 of the input'),
		expect.stringContaining('rows 1 and 2 of the input'),
	]);
	expect(Object.values(stage.platform.books().requests).filter((count) => count > 0)).toEqual([]);
});

test('each run uses the account of its items', async () => {
	for (const name of ['anna', 'ben']) expect((await run(itemsOf(name, name))).error).toBeUndefined();
	const { tasks, unauthorized } = stage.platform.books();
	expect(tasks.map(({ owner }) => owner)).toEqual(['anna', 'anna', 'ben', 'ben']);
	expect(unauthorized).toBe(0);
});

test("never returns another account's task for an idempotency key", async () => {
	const keyed = { limits: { idempotencyKey: 'order 7' }, workflowId: flows.anna ?? '' };
	const first = await run(itemsOf('anna'), keyed);
	const other = await run(itemsOf('ben'), keyed);
	expect(other.error?.message).toContain('with another API key');
	const again = await run(itemsOf('anna'), keyed);
	expect(again.jsons()[0]?.taskId).toBe(first.jsons()[0]?.taskId);
	expect(stage.platform.books().tasksMade).toBe(1);
});

test.each([
	['a plain key', 'sk-0123456789abcdef'],
	['a key of the instance', '={{ $vars.key ?? "sk-0123456789abcdef" }}'],
])('%s is read twice for 100 items', async (_, apiKey) => {
	const reads = jest.spyOn(CredentialsHelper.prototype, 'getDecrypted');
	try {
		const items = itemsOf(...Array.from({ length: 100 }, () => 'anna'));
		await run(items, { operation: 'get', taskIds: 'x' }, CONTINUE, apiKey);
		expect(reads).toHaveBeenCalledTimes(2);
	} finally {
		reads.mockRestore();
	}
});
