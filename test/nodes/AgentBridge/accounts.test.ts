import type { ItemInput } from '../harness';
import { freshStage } from '../harness/stage';
import { openStage } from './agentBridge.fixture';

/* What items share: a run uses one account, and a connection for each authentication frame. */

const stage = freshStage(openStage);

/** The frames received over each connection. */
function heard(): string[][] {
	const { connections, received } = stage.platform.books().bridge;
	return connections
		.map(({ connection }) => received.filter((one) => one.connection === connection))
		.map((frames) => frames.map(({ frame }) => String(frame.text)))
		.sort();
}

test.each(['request', 'send'])(
	'"%s" refuses items of several accounts, and connects to none',
	async (operation) => {
		const account = { channelToken: '={{ $json.token }}' };
		const itemsOf = (...tokens: string[]): ItemInput[] =>
			tokens.map((token) => ({ json: { text: 'hi', token } }));
		const [anna = '', ben = ''] = [1, 2].map(() => stage.platform.createChannel().token);
		const refused = await stage.run(itemsOf(anna, anna, ben), { operation }, { account });
		expect(refused.error?.message).toBe(
			'The FlowBridge API credential has different values for rows 1 and 3 of the input, but a run uses one account',
		);
		const goesOn = { onError: 'continueRegularOutput', account } as const;
		const continued = await stage.run(itemsOf(anna, 'none'), { operation }, goesOn);
		expect(continued.jsons().map(({ error }) => error)).toEqual([
			expect.stringContaining('rows 1 and 2 of the input'),
			expect.stringContaining('rows 1 and 2 of the input'),
		]);
		expect(stage.platform.books().bridge).toMatchObject({ connections: [], received: [] });
		const own = await stage.run(itemsOf(ben, ben), { operation }, { account });
		expect([own.error, stage.platform.books().bridge.connections.length]).toEqual([undefined, 1]);
	},
);

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

test('many authentication frames have few connections open at once', async () => {
	const authFrame = '={{ { type: "auth", token: "$token", user: $json.text } }}';
	const items = Array.from({ length: 80 }, (_, i) => ({ json: { text: `${i}` } }));
	const outcome = await stage.run(items, { authMode: 'inFrame', authFrame });
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
