import type { HarnessRun, ItemInput, RunOptions, SingleNode } from '../harness';
import { sharedStage } from '../harness/stage';
import { CONTINUE, openChatStage } from './chat.fixture';

/* A credential whose key is an expression: each item uses its own account. */

const stage = sharedStage(openChatStage);
const keys: Record<string, string> = {};
beforeAll(() => {
	for (const name of ['anna', 'ben']) keys[name] = stage.platform.createOwner(name).apiKey;
});

const TURNS = ['anna', 'ben', 'anna', 'ben', 'ben', 'anna'];

function itemsOf(...names: string[]): ItemInput[] {
	return names.map((name, i) => ({ json: { say: `${name} ${i}`, key: (keys[name] ?? name).slice(3) } }));
}

async function run(
	items: ItemInput[],
	options: Partial<SingleNode> & Pick<RunOptions, 'streaming' | 'mode'> = {},
): Promise<HarnessRun> {
	return await stage.run(items, {}, { ...options, account: { apiKey: '=sk-{{ $json.key }}' } });
}

/** The number and the account of each question, sorted. */
function asked(): string[] {
	const { chats } = stage.platform.books();
	return chats
		.map(({ owner, body }) => `${/\w+ \d+/.exec(JSON.stringify(body.messages))?.[0] ?? ''} ${owner}`)
		.sort();
}

const expectedOf = (...names: string[]): string[] => names.map((name, i) => `${name} ${i} ${name}`).sort();

test('sends each item with its own key, and outputs the answers in item order', async () => {
	const outcome = await run(itemsOf(...TURNS));
	expect(outcome.error).toBeUndefined();
	expect(asked()).toEqual(expectedOf(...TURNS));
	const output = outcome.items();
	expect(output.map(({ pairedItem }) => pairedItem)).toEqual(TURNS.map((_, item) => ({ item })));
	expect(output.map(({ json }) => json.content)).toEqual(
		TURNS.map((name, i) => expect.stringContaining(`${name} ${i}`) as unknown),
	);
});

test('a bad key among good ones makes only its item fail', async () => {
	const outcome = await run(itemsOf('anna', 'sk-wrong', 'ben'), CONTINUE);
	const kinds = outcome.items().map(({ json }) => (json.error ? 'error' : 'answer'));
	expect(kinds).toEqual(['answer', 'error', 'answer']);
	expect(asked()).toEqual(['anna 0 anna', 'ben 2 ben']);
});

test('names an item without a key, and sends nothing unless the node continues on error', async () => {
	const items = itemsOf('anna', 'sk-', 'ben');
	const goesOn = await run(items, CONTINUE);
	expect(goesOn.jsons()[1]?.error).toMatch(/item 1.*contains no secret/);
	expect(asked()).toEqual(['anna 0 anna', 'ben 2 ben']);
	stage.platform.resetBooks();
	const stopped = await run(items);
	expect(stopped.error).toMatchObject({ context: { itemIndex: 1 } });
	expect(stage.platform.books().requests.chat).toBe(0);
});

test('a refusal because of load pauses only the account that got it', async () => {
	const load = { kind: '429', retryAfter: 'seconds', retryAfterSeconds: 2 } as const;
	stage.platform.faults.add({ on: 'chat', ...load, match: 'anna', times: 1 });
	const outcome = await run(itemsOf('anna', 'ben', 'ben'));
	expect(outcome.error).toBeUndefined();
	const { chats } = stage.platform.books();
	const startOf = (name: string): number[] =>
		chats.filter(({ owner }) => owner === name).map(({ atMs }) => atMs);
	expect(Math.max(...startOf('ben')) + 1_000).toBeLessThan(Math.min(...startOf('anna')));
});
