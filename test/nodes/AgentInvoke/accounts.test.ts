import type { INodeParameters } from 'n8n-workflow';

import type { Agent } from '../../platform';
import type { HarnessRun, ItemInput, SingleNode } from '../harness';
import { everythingSaid, RETRY, sharedStage } from '../harness/stage';
import { CONTINUE, openAgentStage } from './agent.fixture';

/* A credential whose token is an expression: each item calls its own agent. */

const stage = sharedStage(openAgentStage);
let agents: Record<string, Agent>;
beforeAll(() => {
	agents = { anna: stage.platform.createAgent(), ben: stage.platform.createAgent() };
});

const TURNS = ['anna', 'ben', 'anna', 'ben', 'anna'];
const MAPPED: INodeParameters = { sessionMode: 'mapped', sessionKey: 'one key' };

function itemsOf(...names: string[]): ItemInput[] {
	return names.map((name, i) => ({ json: { say: `${name} ${i}`, token: agents[name]?.token ?? name } }));
}

async function run(
	items: ItemInput[],
	parameters: INodeParameters = {},
	settings: Partial<SingleNode> = {},
): Promise<HarnessRun> {
	return await stage.run(items, parameters, { ...settings, account: { agentToken: '={{ $json.token }}' } });
}

function heard(): Record<string, string | undefined> {
	const nameOf = new Map(Object.entries(agents).map(([name, { agentId }]) => [agentId, name]));
	const { invocations } = stage.platform.books();
	return Object.fromEntries(invocations.map(({ message, agentId }) => [message ?? '', nameOf.get(agentId)]));
}

const heardOf = (...names: string[]): object =>
	Object.fromEntries(names.map((name, i) => [`${name} ${i}`, name]));
const sessionsOf = (outcome: HarnessRun): unknown[] =>
	outcome.items().map(({ json }) => (json.session as { id: string } | undefined)?.id);

test('each item calls its own agent, and the answers are output in item order', async () => {
	const outcome = await run(itemsOf(...TURNS));
	expect(outcome.error).toBeUndefined();
	expect(heard()).toEqual(heardOf(...TURNS));
	expect(outcome.items().map(({ pairedItem }) => pairedItem)).toEqual(TURNS.map((_, item) => ({ item })));
	expect(stage.platform.books().agentRefusals).toEqual({});
});

test('no error shows one agent the token of another, not even without its prefix', async () => {
	const tokens = Object.values(agents).map(({ token }) => token);
	const bare = tokens.map((token) => token.slice(token.indexOf('_') + 1));
	stage.platform.faults.add({ on: 'invoke', kind: 'code', code: 40_000, msg: `known: ${bare.join(', ')}` });
	const outcome = await run(itemsOf('anna', 'ben'), {}, CONTINUE);
	const errors = outcome
		.jsons()
		.map(({ error, message, details }) => JSON.stringify([error, message, details]));
	expect(errors).toHaveLength(2);
	for (const error of errors) {
		expect(error).toContain('known: ');
		for (const secret of bare) expect(error).not.toContain(secret);
	}
});

test('one session key has a session per agent, which the next execution continues', async () => {
	const first = sessionsOf(await run(itemsOf(...TURNS), MAPPED));
	expect(new Set(first).size).toBe(2);
	expect([first[0], first[2], first[4]]).toEqual([first[0], first[0], first[0]]);
	expect(first[1]).toBe(first[3]);
	expect(stage.tables.rows('flow_agent_sessions')).toHaveLength(2);
	// A run with a single item, and so a single token, still finds the session of its own agent.
	expect(sessionsOf(await run(itemsOf('ben'), MAPPED))).toEqual([first[1]]);
	expect(sessionsOf(await run(itemsOf('anna'), MAPPED))).toEqual([first[0]]);
	expect(stage.platform.books().sessions).toHaveLength(2);
	const kept = JSON.stringify(stage.tables.rows('flow_agent_sessions'));
	for (const { token } of Object.values(agents)) expect(kept).not.toContain(token);
});

test('a new token in a plain credential continues the sessions', async () => {
	const { agent } = stage.platform;
	const items = [{ json: { say: 'hello' } }];
	const first = sessionsOf(await stage.run(items, MAPPED));
	const account = { agentToken: agent.debugToken(600_000) };
	expect(sessionsOf(await stage.run(items, MAPPED, { account }))).toEqual(first);
});

test('forget ends the session of the item’s own agent', async () => {
	await run(itemsOf('anna', 'ben'), MAPPED);
	const forgotten = await run(itemsOf('ben'), { operation: 'forgetSession', forgetKey: 'one key' });
	expect(forgotten.jsons()[0]).toMatchObject({ forgotten: true });
	const left = stage.tables.rows('flow_agent_sessions');
	expect(left).toHaveLength(1);
	const both = await run(itemsOf('anna', 'ben'), { operation: 'forgetSession', forgetKey: 'one key' });
	expect(both.jsons().map(({ forgotten }) => forgotten)).toEqual([true, false]);
});

test('an idempotency key never returns the answer of another agent', async () => {
	const keyed = { options: { idempotencyKey: 'order 7' }, message: 'go' };
	const first = await run(itemsOf('anna'), keyed);
	expect(first.error).toBeUndefined();
	const other = await run(itemsOf('ben'), keyed);
	expect(other.error?.message).toContain('to ask another agent');
	const again = await run(itemsOf('anna'), keyed);
	expect(again.jsons()[0]).toMatchObject({ replayed: true });
	expect(stage.platform.books().invocations).toHaveLength(1);
});

test('a bad token among good ones makes only its item fail', async () => {
	const outcome = await run(itemsOf('anna', 'agt_wrong', 'ben'), {}, CONTINUE);
	expect(outcome.items().map(({ json }) => (json.error ? 'error' : 'answer'))).toEqual([
		'answer',
		'error',
		'answer',
	]);
	expect(heard()).toEqual({ 'anna 0': 'anna', 'ben 2': 'ben' });
});

test('names an item with the wrong kind of token, and calls no agent unless the node continues on error', async () => {
	const items = itemsOf('anna', 'sk-0123456789', 'ben');
	const goesOn = await run(items, {}, CONTINUE);
	expect(goesOn.jsons()[1]?.error).toMatch(/item 1.*FlowPlatform API/);
	expect(heard()).toEqual({ 'anna 0': 'anna', 'ben 2': 'ben' });
	stage.reset();
	const stopped = await run(items);
	expect(stopped.error).toMatchObject({ context: { itemIndex: 1 } });
	expect(stage.platform.books().invocations).toEqual([]);
});

test('Max Invocations applies to the run, and a preview shows each item without its token', async () => {
	const refused = await run(itemsOf(...TURNS), { options: { maxInvocations: 4 } });
	expect(refused.error?.message).toContain('5 times');
	const previews = await run(itemsOf('anna', 'ben'), { options: { previewRequest: true } });
	expect(previews.items()).toHaveLength(2);
	expect(stage.platform.books().invocations).toEqual([]);
});

test('reads the preview switch for each item, and calls the agent only if it is plainly off', async () => {
	const switches = [true, 'true', 'false', 1, false];
	const items = itemsOf(...TURNS).map(({ json }, index) => ({ json: { ...json, only: switches[index] } }));
	const outcome = await run(items, { options: { previewRequest: '={{ $json.only }}' } });
	expect(outcome.error).toBeUndefined();
	expect(outcome.items().map(({ json }) => 'preview' in json)).toEqual([
		...[true, true],
		...[false, true, false],
	]);
	expect(outcome.items().map(({ pairedItem }) => pairedItem)).toEqual(TURNS.map((_, item) => ({ item })));
	expect(Object.keys(heard()).sort()).toEqual(['anna 2', 'anna 4']);
});

test('an item that fails among previewed ones is reported with its own index', async () => {
	const items = itemsOf('anna', 'agt_wrong').map(({ json }, index) => ({
		json: { ...json, only: index === 0 },
	}));
	const outcome = await run(items, { options: { previewRequest: '={{ $json.only }}' } });
	expect(outcome.error).toMatchObject({ context: { itemIndex: 1 } });
});

test('Retry On Fail sends no message twice', async () => {
	stage.platform.faults.add({ on: 'invoke', kind: 'tokenExpired', skip: 2, times: 1 });
	const outcome = await run(itemsOf(...TURNS), { options: { concurrency: 1 } }, RETRY);
	expect(outcome.error).toBeUndefined();
	expect(heard()).toEqual(heardOf(...TURNS));
	expect(stage.platform.books().duplicateInvocations).toBe(0);
});

test('files are uploaded with the token of their item', async () => {
	const binary = { data: { data: Buffer.from('hello'), fileName: 'a.txt', mimeType: 'text/plain' } };
	const items = itemsOf('anna', 'ben').map((item) => ({ ...item, binary }));
	const outcome = await run(items, { operation: 'uploadMedia' });
	expect(outcome.error).toBeUndefined();
	const ids = ['anna', 'ben'].map((name) => agents[name]?.agentId);
	const { media } = stage.platform.books();
	expect(media.map(({ agentId }) => agentId).sort()).toEqual([...ids].sort());
	const said = everythingSaid(outcome);
	expect(said).not.toContain('Bearer');
});
