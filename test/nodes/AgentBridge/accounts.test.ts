import type { BridgeChannel } from '../../platform';
import type { HarnessRun, ItemInput, SingleNode } from '../harness';
import { freshStage, RETRY } from '../harness/stage';
import { openStage } from './agentBridge.fixture';

/* A credential whose token is an expression: each item's frames use the connection of its own account. */

const stage = freshStage(openStage);
let channels: Record<string, BridgeChannel>;
beforeEach(() => {
	channels = { anna: stage.platform.createChannel(), ben: stage.platform.createChannel() };
});

const TURNS = ['anna', 'ben', 'anna', 'ben'];

function itemsOf(...names: string[]): ItemInput[] {
	return names.map((name, i) => ({ json: { text: `${name} ${i}`, token: channels[name]?.token ?? name } }));
}

async function run(
	items: ItemInput[],
	parameters = {},
	settings: Partial<SingleNode> = {},
): Promise<HarnessRun> {
	return await stage.run(items, parameters, { ...settings, account: { channelToken: '={{ $json.token }}' } });
}

/** The frames received over each connection. */
function heard(): string[][] {
	const { connections, received } = stage.platform.books().bridge;
	return connections
		.map(({ connection }) => received.filter((one) => one.connection === connection))
		.map((frames) => frames.map(({ frame }) => String(frame.text)))
		.sort();
}

test.each(['request', 'send'])(
	'"%s" opens one connection per account, and outputs in item order',
	async (operation) => {
		const outcome = await run(itemsOf(...TURNS), { operation });
		expect(outcome.error).toBeUndefined();
		expect(outcome.items().map(({ pairedItem }) => pairedItem)).toEqual(TURNS.map((_, item) => ({ item })));
		expect(heard()).toEqual([
			['anna 0', 'anna 2'],
			['ben 1', 'ben 3'],
		]);
		const { connections } = stage.platform.books().bridge;
		expect(new Set(connections.map(({ channel }) => channel)).size).toBe(2);
	},
);

test('a bad token among good ones makes only its item fail', async () => {
	const items = itemsOf('anna', 'wst_wrong', 'sk-0123456789', 'ben');
	const outcome = await run(items, {}, { onError: 'continueRegularOutput' });
	expect(outcome.items().map(({ json }) => (json.error ? 'error' : 'reply'))).toEqual([
		'reply',
		'error',
		'error',
		'reply',
	]);
	expect(outcome.jsons()[2]?.error).toContain('item 2');
});

test("without Continue On Fail, one account's failure ends the run, and a retry sends nothing twice", async () => {
	const stopped = await run(itemsOf('anna', 'sk-0123456789'));
	expect(stopped.error).toMatchObject({ context: { itemIndex: 1 } });
	expect(heard()).toEqual([]);
	const failed = await run(itemsOf('anna', 'wst_wrong'), {}, { ...RETRY, maxTries: 2 });
	expect(failed.status).toBe('error');
	expect(heard().flat()).toEqual(['anna 0']);
});

test('evaluates an authentication frame for each item, and opens one connection per frame', async () => {
	const authFrame = '={{ { type: "auth", token: "$token", user: $json.user } }}';
	const items = ['one', 'two', 'one'].map((user) => ({ json: { text: user, user } }));
	const outcome = await stage.run(items, { authMode: 'inFrame', authFrame });
	expect(outcome.error).toBeUndefined();
	expect(heard()).toEqual([['one', 'one'], ['two']]);
	expect(outcome.items().map(({ pairedItem }) => pairedItem)).toEqual(items.map((_, item) => ({ item })));
});

test('an authentication frame that is wrong for one item makes only that item fail', async () => {
	const authFrame = '={{ $json.place ? { type: "auth", token: $json.place } : $json.missing.frame }}';
	const items = ['$token', 'nowhere', '', '$token'].map((place, i) => ({ json: { text: `${i}`, place } }));
	const outcome = await stage.run(
		items,
		{ authMode: 'inFrame', authFrame },
		{ onError: 'continueRegularOutput' },
	);
	const errors = outcome.items().map(({ json }) => (json.error as string | undefined) ?? '');
	expect(errors[1]).toContain('no placeholder for the token');
	expect(errors[2]).not.toBe('');
	expect([errors[0], errors[3]]).toEqual(['', '']);
	expect(heard()).toEqual([['0', '3']]);
	const stopped = await stage.run(items, { authMode: 'inFrame', authFrame });
	expect(stopped.error).toMatchObject({ context: { itemIndex: 1 } });
	expect(heard().flat()).toEqual(['0', '3']);
});

test('many accounts have few connections open at once', async () => {
	const tokens = Array.from({ length: 80 }, () => stage.platform.createChannel().token);
	const outcome = await run(tokens.map((token, i) => ({ json: { text: `${i}`, token } })));
	expect(outcome.error).toBeUndefined();
	expect(outcome.items()).toHaveLength(80);
	const { connections } = stage.platform.books().bridge;
	expect(connections).toHaveLength(80);
	const openAt = (timeMs: number): number =>
		connections.filter(
			({ openedAtMs, closedAtMs }) => openedAtMs <= timeMs && (closedAtMs ?? Infinity) > timeMs,
		).length;
	const most = Math.max(...connections.map(({ openedAtMs }) => openAt(openedAtMs)));
	expect(most).toBeGreaterThan(1);
	expect(most).toBeLessThanOrEqual(40);
});
