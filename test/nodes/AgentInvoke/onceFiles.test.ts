import type { INodeParameters } from 'n8n-workflow';

import type { HarnessRun, ItemInput } from '../harness';
import { sharedStage } from '../harness/stage';
import { CONTINUE, openAgentStage } from './agent.fixture';

/* An idempotency key covers a message and its files, byte by byte. */

const stage = sharedStage(openAgentStage);

const FILE: INodeParameters = { source: 'binary', binaryPropertyName: 'data' };

function asking(content: string, fileName = 'scan.txt', mimeType = 'text/plain', field = 'data'): ItemInput {
	return {
		json: { say: 'What is this? [describe files]' },
		binary: { [field]: { data: Buffer.from(content), fileName, mimeType } },
	};
}

async function ask(items: ItemInput[], file: INodeParameters = FILE, settings = {}): Promise<HarnessRun> {
	const options = { requestsPerSecond: 0, retries: 0, idempotencyKey: 'k' };
	return await stage.run(items, { files: { file: [file] }, options }, settings);
}

const item = (run: HarnessRun) => run.jsons()[0]!;

test.each<[string, ItemInput]>([
	['other bytes', asking("Ben's letter")],
	['the same number of other bytes', asking("Amma's letter")],
	['another name', asking("Anna's letter", 'letter.txt')],
	['another type', asking("Anna's letter", 'scan.txt', 'text/markdown')],
])('the same key and message with %s is refused: nothing is replayed or sent', async (_name, other) => {
	const first = await ask([asking("Anna's letter")]);
	expect(first.error).toBeUndefined();
	const second = await ask([other], FILE, CONTINUE);
	expect(item(second)).toMatchObject({
		error: expect.stringContaining('was used by execution'),
		details: { kind: 'badInput', idempotencyKey: 'k' },
	});
	expect(JSON.stringify(item(second))).not.toContain((item(first).session as { id: string }).id);
	expect(stage.platform.books().invocations).toHaveLength(1);
	expect(stage.platform.books().requests.media).toBe(1);
});

test('the same file replays the answer, whatever field contains it', async () => {
	const first = await ask([asking("Anna's letter")]);
	const again = await ask([asking("Anna's letter", 'scan.txt', 'text/plain', 'upload')], {
		...{ source: 'binary', binaryPropertyName: 'upload' },
	});
	expect(item(again)).toMatchObject({ replayed: true, answer: item(first).answer });
	expect(stage.platform.books().invocations).toHaveLength(1);
	expect(stage.platform.books().requests.media).toBe(1);
});

test.each([
	['another address', { url: 'https://files.example/b' }],
	['another name', { name: 'b.txt' }],
])('the same key with a file by URL is refused with %s', async (_name, change) => {
	const file = { source: 'url', url: `${stage.platform.fileUrl}/a`, name: 'a.txt' };
	const options = { requestsPerSecond: 0, retries: 0, idempotencyKey: 'k' };
	const asked = async (row: object) =>
		item(
			await stage.run(
				[{ json: { say: 'hi' } }],
				{ files: { file: [row as INodeParameters] }, options },
				{ account: { invokePath: '/api/agents/Invoke' }, ...CONTINUE },
			),
		);
	stage.platform.faults.add({ on: 'invoke', kind: 'resetAfter', times: 1 });
	await asked(file);
	expect((await asked(file)).error).toContain('may have run for the idempotency key');
	expect((await asked({ ...file, ...change })).error).toContain('was used by execution');
});

test('of two items in one run with the same key and different files, only one is answered', async () => {
	const run = await ask([asking("Anna's letter"), asking("Ben's letter")], FILE, CONTINUE);
	// The files are read in parallel, so either item may claim the key.
	const [answered, refused] = run
		.jsons()
		.sort((one, other) => Number('error' in one) - Number('error' in other));
	expect(answered).toHaveProperty('answer');
	expect(refused).toMatchObject({ error: expect.stringContaining('for another message') });
	expect(stage.platform.books().media).toHaveLength(1);
});

test('an item without its file is reported and does not claim the key', async () => {
	const missing = await ask([{ json: { say: 'What is this? [describe files]' } }], FILE, CONTINUE);
	expect(item(missing).error).toContain('no file in field "data"');
	expect(stage.tables.rows('flow_task_ledger')).toEqual([]);
	expect((await ask([asking("Anna's letter")])).error).toBeUndefined();
});
