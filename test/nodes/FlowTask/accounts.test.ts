import type { INodeParameters } from 'n8n-workflow';

import textToImage from '../../platform/workflows/text-to-image.json';
import imageToImage from '../../platform/workflows/image-to-image.json';
import { CredentialsHelper } from '../harness/credentials.helper';
import { NODE_NAME, type HarnessRun, type ItemInput } from '../harness';
import { everythingSaid, PIXEL, RETRY, sharedStage, type NodeSettings } from '../harness/stage';
import { openStage, text } from './flowTask.fixture';

/* A credential whose key is an expression: each item uses its own account, independently of the others. */

const stage = sharedStage(openStage, { taskMs: 60, runners: 8 });
const keys: Record<string, string> = {};
/** The workflow's ID in each account: every owner hosts a copy of it. */
const flows: Record<string, string> = {};
beforeAll(async () => {
	for (const name of ['anna', 'ben', 'cleo']) {
		const { apiKey } = stage.platform.createOwner(name);
		keys[name] = apiKey;
		flows[name] = (await stage.platform.hostWorkflow(textToImage, { apiKey })).workflowId;
	}
});

const CONTINUE = { onError: 'continueRegularOutput' } as const;
const TURNS = ['anna', 'ben', 'anna', 'cleo', 'ben', 'anna'];

/** One item per name. `key` is the account's key without `sk-`, which the credential's expression prepends. */
function itemsOf(names: readonly string[], more: (index: number) => object = () => ({})): ItemInput[] {
	return names.map((name, index) => ({
		json: {
			prompt: `${name} ${index}`,
			key: (keys[name] ?? name).slice(3),
			flow: flows[name] ?? stage.workflowId,
			...more(index),
		},
	}));
}

async function run(
	items: ItemInput[],
	parameters: INodeParameters = {},
	settings: NodeSettings = {},
	account: Record<string, string> = {},
): Promise<HarnessRun> {
	const own = { apiKey: '=sk-{{ $json.key }}', ...account };
	return await stage.run(
		items,
		{ workflowId: '={{ $json.flow }}', ...parameters },
		{ ...settings, account: own },
	);
}

test('no error shows one account the key of another, not even without its prefix', async () => {
	const { anna = '', ben = '' } = keys;
	const msg = `known keys: ${ben}, ${ben.slice(3)}, ${anna.slice(3)}`;
	stage.platform.faults.add({ on: 'submit', kind: 'code', msg });
	const done = await run(itemsOf(['anna', 'ben']), {}, CONTINUE);
	const errors = done.jsons().map(({ error, message, details }) => JSON.stringify([error, message, details]));
	expect(errors).toHaveLength(2);
	for (const error of errors) {
		expect(error).toContain('known keys');
		for (const key of [anna, ben]) expect(error).not.toContain(key.slice(3));
	}
});

/** The account that created each item's task, by the task's prompt. */
function makers(): Record<string, string> {
	const { tasks } = stage.platform.books();
	return Object.fromEntries(
		tasks.map(({ prompt, owner }) => [/(\w+ \d+)"/.exec(JSON.stringify(prompt))?.[1] ?? '', owner]),
	);
}

const makersOf = (): string[] =>
	stage.platform
		.books()
		.tasks.map(({ owner }) => owner)
		.sort();

const pairsOf = (outcome: HarnessRun): unknown[] => outcome.items().map(({ pairedItem }) => pairedItem);

function expectOwnMakers(names: readonly string[]): void {
	expect(makers()).toEqual(Object.fromEntries(names.map((name, i) => [`${name} ${i}`, name])));
}

describe('run', () => {
	test("creates, follows and downloads each task with its item's key, and outputs them in item order", async () => {
		const outcome = await run(itemsOf(TURNS));
		expect(outcome.status).toBe('success');
		expectOwnMakers(TURNS);
		const { polls, tasks, unauthorized, downloads } = stage.platform.books();
		expect(unauthorized).toBe(0);
		expect(polls.every(({ unknown }) => unknown === 0)).toBe(true);
		expect(new Set(polls.map(({ owner }) => owner))).toEqual(new Set(TURNS));
		expect(downloads).toBe(TURNS.length);
		const ownerOf = new Map(tasks.map(({ taskId, owner }) => [taskId, owner]));
		const output = outcome.items();
		expect(output.map(({ json }) => ownerOf.get(text(json.taskId)))).toEqual(TURNS);
		expect(pairsOf(outcome)).toEqual(TURNS.map((_, item) => ({ item })));
		expect(output.every(({ binary }) => binary?.data)).toBe(true);
	});

	test('polls the tasks of each account together, and both accounts at the same time', async () => {
		const names = Array.from({ length: 40 }, (_, i) => (i % 2 ? 'anna' : 'ben'));
		const outcome = await run(itemsOf(names), { limits: { progressChannel: 'polling' } });
		expect(outcome.items()).toHaveLength(40);
		const { polls } = stage.platform.books();
		const inOneCall = Math.max(...polls.map(({ ids }) => ids.length));
		expect(inOneCall).toBeGreaterThan(5);
		expect(inOneCall).toBeLessThanOrEqual(20);
	});

	test('fails only the item with the bad key, and names it', async () => {
		const outcome = await run(itemsOf(['anna', 'sk-wrong', 'ben']), {}, CONTINUE);
		const output = outcome.items();
		expect(output.map(({ json }) => json.status ?? 'error')).toEqual(['succeeded', 'error', 'succeeded']);
		expect(output[1]?.json).toMatchObject({ details: { kind: 'credential' } });
		expect(pairsOf(outcome)).toEqual([{ item: 0 }, { item: 1 }, { item: 2 }]);
		expect(makers()).toEqual({ 'anna 0': 'anna', 'ben 2': 'ben' });
	});

	test.each([
		['no key at all', '={{ $json.key && "sk-" + $json.key }}', /contains no secret/],
		['a key without its secret', '=sk-{{ $json.key }}', /contains no secret/],
		['a key of another kind', '={{ $json.key ? "sk-" + $json.key : "agt_secret" }}', /FlowAgent API/],
		['an expression that throws', '=sk-{{ $json.key.trim() }}', /credential/],
	])('refuses an item that has %s before sending anything for it', async (_case, apiKey, said) => {
		const items = itemsOf(['anna', 'ben', 'cleo'], (i) => (i === 1 ? { key: undefined } : {}));
		const outcome = await run(items, {}, CONTINUE, { apiKey });
		const output = outcome.items();
		expect(output.map(({ json }) => json.status ?? 'error')).toEqual(['succeeded', 'error', 'succeeded']);
		expect(output[1]?.json.error).toMatch(said);
		expect(output[1]?.json.error).toContain('item 1');
		expect(makers()).toEqual({ 'anna 0': 'anna', 'cleo 2': 'cleo' });
		expect(stage.platform.books().unauthorized).toBe(0);

		stage.platform.resetBooks();
		const stopped = await run(items, {}, {}, { apiKey });
		expect(stopped.error?.message).toMatch(said);
		expect(stopped.error).toMatchObject({ context: { itemIndex: 1 } });
		expect(stage.platform.books().tasksMade).toBe(0);
	});

	test('ends the run for all accounts if the platform rejects a key, and lists their task IDs', async () => {
		const outcome = await run(itemsOf(['anna', 'ben', 'anna', 'sk-wrong']));
		expect(outcome.status).toBe('error');
		const { tasks } = stage.platform.books();
		const told = JSON.stringify(outcome.error);
		for (const { taskId } of tasks) expect(told).toContain(taskId);
	});

	test('applies Max Tasks and Max Failures to the run, not to each account', async () => {
		const refused = await run(itemsOf(TURNS), { limits: { maxTasks: 5 } });
		expect(refused.error?.message).toContain('6 tasks');
		expect(stage.platform.books().tasksMade).toBe(0);

		stage.platform.faults.add({ on: 'submit', kind: 'failTask', times: 2 });
		const names = ['anna', 'ben', 'anna', 'ben', 'anna', 'ben'];
		await run(itemsOf(names), { limits: { maxFailures: 2, maxInFlight: 1 } }, CONTINUE);
		expect(stage.platform.books().tasksMade).toBe(2);
	});

	test('creates no task twice with Retry On Fail, and continues each with its own key', async () => {
		stage.platform.faults.add({ on: 'submit', kind: 'code', code: 401, skip: 3, times: 1 });
		const outcome = await run(itemsOf(TURNS), {}, RETRY);
		expect(outcome.status).toBe('success');
		expect(outcome.runs(NODE_NAME)).toHaveLength(1);
		expectOwnMakers(TURNS);
		const { tasksMade, duplicates, polls } = stage.platform.books();
		expect([tasksMade, duplicates]).toEqual([TURNS.length, 0]);
		expect(polls.every(({ unknown }) => unknown === 0)).toBe(true);
	});

	test("never returns another account's task for an idempotency key", async () => {
		const keyed = { limits: { idempotencyKey: 'order 7' } };
		const same = (name: string): ItemInput[] =>
			itemsOf([name], () => ({ prompt: 'a cat', flow: flows.anna }));
		const first = await run(same('anna'), keyed);
		const other = await run(same('ben'), keyed);
		expect(other.error?.message).toContain('with another API key');
		const again = await run(same('anna'), keyed);
		expect(again.jsons()[0]?.taskId).toBe(first.jsons()[0]?.taskId);
		expect(stage.platform.books().tasksMade).toBe(1);
	});

	test("shows no account's key, even if the platform mentions it to another account", async () => {
		const all = Object.values(keys).join(' ');
		stage.platform.faults.add({ on: 'submit', kind: 'failTask', msg: `not for ${all}`, times: 2 });
		const outcome = await run(itemsOf(TURNS), { simplify: false }, CONTINUE);
		const said = everythingSaid(outcome);
		expect(said).toContain('not for');
		for (const key of Object.values(keys)) expect(said).not.toContain(key);
	});

	test('accepts accounts with different base URLs', async () => {
		const other = await openStage({ taskMs: 20 });
		try {
			const places = [stage, other, stage].map(({ platform, workflowId }) => ({
				url: platform.apiUrl,
				apiKey: platform.apiKey,
				workflowId,
			}));
			const items = places.map((place, i) => ({ json: { prompt: `default ${i}`, ...place } }));
			const fields = { apiKey: '={{ $json.apiKey }}', baseUrl: '={{ $json.url }}', wsBaseUrl: '' };
			const outcome = await run(items, { workflowId: '={{ $json.workflowId }}' }, {}, fields);
			expect(outcome.status).toBe('success');
			const made = [stage, other].map(({ platform }) => platform.books().tasksMade);
			expect(made).toEqual([2, 1]);
		} finally {
			await other.close();
		}
	});
});

describe('other operations', () => {
	async function submitted(names: readonly string[]): Promise<ItemInput[]> {
		const outcome = await run(itemsOf(names), { operation: 'submit' });
		expect(outcome.jsons().map(({ status }) => status)).toEqual(names.map(() => 'submitted'));
		return outcome.items().map(({ json }, i) => ({
			json: { taskId: text(json.taskId), key: (keys[names[i] ?? ''] ?? '').slice(3) },
		}));
	}

	test('wait and get query each task with the key that created it', async () => {
		const items = await submitted(TURNS);
		expectOwnMakers(TURNS);
		const waited = await run(items, { operation: 'wait' });
		expect(waited.items().map(({ json }) => [json.taskId, json.status])).toEqual(
			items.map(({ json }) => [json?.taskId, 'succeeded']),
		);
		expect(waited.items().every(({ binary }) => binary?.data)).toBe(true);
		const got = await run(items, { operation: 'get' });
		expect(got.jsons().map(({ taskId }) => taskId)).toEqual(items.map(({ json }) => json?.taskId));
		const { polls } = stage.platform.books();
		expect(polls.every(({ unknown }) => unknown === 0)).toBe(true);
	});

	test('a rejected key makes "get" fail the items of its account only', async () => {
		const items = await submitted(['anna', 'ben', 'anna']);
		stage.platform.resetBooks();
		const spoiled = items.map((item, i) => (i === 1 ? { json: { ...item.json, key: 'wrong' } } : item));
		const got = await run(spoiled, { operation: 'get' }, CONTINUE);
		expect(got.items().map(({ json }) => json.taskId ?? 'error')).toEqual([
			items[0]?.json?.taskId,
			'error',
			items[2]?.json?.taskId,
		]);
	});

	test('an image is uploaded once for each account that uses it', async () => {
		const binary = { data: { data: PIXEL, fileName: 'a.png', mimeType: 'image/png' } };
		const items = itemsOf(['anna', 'ben', 'anna']).map((item) => ({ ...item, binary }));
		const uploaded = await run(items, { resource: 'image', operation: 'upload' });
		const ids = uploaded.jsons().map(({ imageId }) => imageId);
		const { uploads } = stage.platform.books();
		expect(uploads.map(({ owner }) => owner).sort()).toEqual(['anna', 'ben']);
		const ownerOf = new Map(uploads.map(({ imageId, owner }) => [imageId, owner]));
		expect(ids.map((id) => ownerOf.get(text(id)))).toEqual(['anna', 'ben', 'anna']);

		for (const apiKey of Object.values(keys)) {
			await stage.platform.hostWorkflow(imageToImage, { apiKey, workflowId: `image-${apiKey.slice(-6)}` });
		}
		const slot = { nodeId: '10', parameter: 'image', source: 'binary', binaryField: 'data' };
		const drawn = await run(items, {
			workflowId: '=image-{{ $json.key.slice(-6) }}',
			overrideFields: {},
			imageSlots: { slot: [slot] },
		});
		expect(drawn.error).toBeUndefined();
		expect(makersOf()).toEqual(['anna', 'anna', 'ben']);
	});

	test('download needs no key, so an item without one gets its files', async () => {
		const files = (await run(itemsOf(['anna', 'ben']), { output: 'urls' })).items();
		const items = files.map(({ json }, i) => ({
			json: { finalFiles: json.finalFiles, ...(i === 0 && { key: keys.anna?.slice(3) }) },
		}));
		const outcome = await run(items, { resource: 'file', operation: 'download' }, CONTINUE);
		expect(outcome.items().map(({ binary }) => binary !== undefined)).toEqual([true, true]);
	});
});

describe('number of reads of the credential', () => {
	async function readsOf(items: ItemInput[], apiKey: string): Promise<number> {
		const reads = jest.spyOn(CredentialsHelper.prototype, 'getDecrypted');
		try {
			await run(items, { operation: 'get', taskIds: 'x' }, CONTINUE, { apiKey });
			return reads.mock.calls.length;
		} finally {
			reads.mockRestore();
		}
	}

	test.each([
		['a plain key', 'sk-0123456789abcdef', 2],
		['a key of the instance', '={{ $secrets.vault.key ?? "sk-0123456789abcdef" }}', 2],
		['a key per item', '=sk-{{ $json.key }}', 101],
	])('%s', async (_case, apiKey, most) => {
		const items = itemsOf(Array.from({ length: 100 }, () => 'anna'));
		expect(await readsOf(items, apiKey)).toBe(most);
	});
});
