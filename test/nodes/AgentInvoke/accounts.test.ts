import type { INodeParameters } from 'n8n-workflow';

import type { Agent } from '../../platform';
import type { HarnessRun, ItemInput, SingleNode } from '../harness';
import { sharedStage } from '../harness/stage';
import { CONTINUE, openAgentStage } from './agent.fixture';

/* A credential whose token is an expression: a run calls one agent, and each run may call another. */

const stage = sharedStage(openAgentStage);
let agents: Record<string, Agent>;
beforeAll(() => {
	agents = { anna: stage.platform.createAgent(), ben: stage.platform.createAgent() };
});

const MAPPED: INodeParameters = { sessionMode: 'mapped', sessionKey: 'one key' };

function itemsOf(...names: string[]): ItemInput[] {
	return names.map((name, i) => ({ json: { say: `${name} ${i}`, token: agents[name]?.token } }));
}

async function run(
	items: ItemInput[],
	parameters: INodeParameters = {},
	settings: Partial<SingleNode> = {},
): Promise<HarnessRun> {
	return await stage.run(items, parameters, { ...settings, account: { agentToken: '={{ $json.token }}' } });
}

const sessionsOf = (outcome: HarnessRun): unknown[] =>
	outcome.items().map(({ json }) => (json.session as { id: string } | undefined)?.id);

const OPERATIONS: ReadonlyArray<readonly [string, INodeParameters]> = [
	['invoke', {}],
	['resume', { operation: 'resume', sessionId: 's', interruptId: 'i', result: 'yes' }],
	['uploadMedia', { operation: 'uploadMedia' }],
	['forgetSession', { operation: 'forgetSession', forgetKey: 'one key' }],
];

test.each(OPERATIONS)('%s refuses items of several agents, and sends nothing', async (_, parameters) => {
	const binary = { data: { data: Buffer.from('hello'), fileName: 'a.txt', mimeType: 'text/plain' } };
	const itemsWithFile = (...names: string[]) => itemsOf(...names).map((item) => ({ ...item, binary }));
	const refused = await run(itemsWithFile('anna', 'anna', 'ben'), parameters);
	expect(refused.error?.message).toBe(
		'The FlowAgent API credential has different values for rows 1 and 3 of the input, but a run uses one account',
	);
	const continued = await run(itemsWithFile('anna', 'none'), parameters, CONTINUE);
	expect(continued.jsons().map(({ error }) => error)).toEqual([
		expect.stringContaining('rows 1 and 2 of the input'),
		expect.stringContaining('rows 1 and 2 of the input'),
	]);
	const { invocations, media, requests } = stage.platform.books();
	expect([invocations, media, Object.values(requests).filter((count) => count > 0)]).toEqual([[], [], []]);
});

test('one session key has a session per agent, which the next execution continues', async () => {
	const first = sessionsOf(await run(itemsOf('anna', 'anna'), MAPPED));
	const other = sessionsOf(await run(itemsOf('ben'), MAPPED));
	expect(first[0]).toBe(first[1]);
	expect(other[0]).not.toBe(first[0]);
	expect(stage.tables.rows('flow_agent_sessions')).toHaveLength(2);
	expect(sessionsOf(await run(itemsOf('ben'), MAPPED))).toEqual(other);
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

test('forget ends the session of the run’s own agent', async () => {
	for (const name of ['anna', 'ben']) await run(itemsOf(name), MAPPED);
	const forget = async (name: string) =>
		(await run(itemsOf(name), { operation: 'forgetSession', forgetKey: 'one key' })).jsons()[0]?.deleted;
	expect([await forget('ben'), stage.tables.rows('flow_agent_sessions').length]).toEqual([true, 1]);
	expect([await forget('ben'), await forget('anna')]).toEqual([false, true]);
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
