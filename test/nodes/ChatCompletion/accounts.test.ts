import type { HarnessRun, ItemInput, SingleNode } from '../harness';
import { sharedStage } from '../harness/stage';
import { CONTINUE, openChatStage } from './chat.fixture';

/* A credential whose key is an expression: a run uses one account, and each run may use another. */

const stage = sharedStage(openChatStage);
const keys: Record<string, string> = {};
beforeAll(() => {
	for (const name of ['anna', 'ben']) keys[name] = stage.platform.createOwner(name).apiKey;
});

function itemsOf(...names: string[]): ItemInput[] {
	return names.map((name, i) => ({ json: { say: `${name} ${i}`, key: keys[name]?.slice(3) } }));
}

async function run(items: ItemInput[], settings: Partial<SingleNode> = {}): Promise<HarnessRun> {
	return await stage.run(items, {}, { ...settings, account: { apiKey: '=sk-{{ $json.key }}' } });
}

test('refuses items of several accounts, and asks nothing', async () => {
	const refused = await run(itemsOf('anna', 'anna', 'ben'));
	expect(refused.error?.message).toBe(
		'The FlowPlatform API credential has different values for rows 1 and 3 of the input, but a run uses one account',
	);
	const continued = await run(itemsOf('anna', 'none'), CONTINUE);
	expect(continued.jsons().map(({ error }) => error)).toEqual([
		expect.stringContaining('rows 1 and 2 of the input'),
		expect.stringContaining('rows 1 and 2 of the input'),
	]);
	expect(stage.platform.books().requests.chat).toBe(0);
});

test('each run uses the account of its items', async () => {
	for (const name of ['anna', 'ben']) expect((await run(itemsOf(name, name))).error).toBeUndefined();
	expect(stage.platform.books().chats.map(({ owner }) => owner)).toEqual(['anna', 'anna', 'ben', 'ben']);
});
