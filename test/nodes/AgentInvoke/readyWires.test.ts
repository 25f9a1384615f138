import type { INodeParameters } from 'n8n-workflow';

import { accountOf, describeDialects, dialectCases } from './dialects/dialectCases';
import { StandIn } from './dialects/standIn';
import type { HarnessRun, ItemInput } from '../harness';
import { sharedStage } from '../harness/stage';
import { CONTINUE, openAgentStage, type AgentStage } from './agent.fixture';

/*
 * Tests the descriptions in docs/wires/ in the node, each against a server that accepts nothing else. How each reads an
 * answer is tested in test/unit/AgentInvoke/wire/dialects.test.ts, against the same servers.
 */

const OPTIONS = { requestsPerSecond: 0, timeoutSeconds: 20, retries: 0 };
const BY_KEY = { sessionMode: 'mapped', sessionKey: '={{ $json.key }}' };
const FORMS = [
	['in one piece', false],
	['as a stream', true],
] as const;

const stage = sharedStage(openAgentStage);

const said = (say: string, key = 'k'): ItemInput => ({ json: { say, key } });
const out = (run: HarnessRun, output = 0) => run.jsons(output);

describeDialects((dialect, server) => {
	async function ask(
		items: ItemInput[],
		parameters: INodeParameters = {},
		settings: Parameters<AgentStage['run']>[2] = CONTINUE,
	): Promise<HarnessRun> {
		const account = accountOf(dialect, server());
		return await stage.run(items, { options: OPTIONS, ...parameters }, { account, ...settings });
	}

	test.each(FORMS)(
		'four keys used at once each keep their session over three executions (%s)',
		async (_, stream) => {
			const keys = ['a', 'b', 'c', 'd'];
			for (const turn of [1, 2, 3]) {
				const runs = await Promise.all(
					keys.map(async (key) => await ask([said(`${key}${turn}`, key)], { ...BY_KEY, stream })),
				);
				expect(runs.flatMap((run) => out(run))).toMatchObject(
					keys.map((key) => ({ answer: `${turn}: ${key}${turn}`, session: { key } })),
				);
			}
			const turns = server()
				.conversations.map((one) => one.turns.join(' '))
				.sort();
			expect(turns).toEqual(keys.map((key) => `${key}1 ${key}2 ${key}3`));
			expect(stage.tables.rows('flow_agent_sessions')).toHaveLength(4);
		},
	);

	test.each(FORMS)(
		'the result of a tool is sent back, and the key continues its session (%s)',
		async (_, stream) => {
			server().plan = (text) =>
				text === 'go' ? { asks: [{ kind: 'tool', tool: 'refund', arguments: { order: 7 } }] } : {};
			const [asked] = out(await ask([said('go')], { ...BY_KEY, stream }), 1);
			expect(asked).toMatchObject({
				interrupt: { kind: 'tool', tool: 'refund', arguments: { order: 7 } },
				session: { key: 'k' },
			});
			const resume = { operation: 'resume', result: '{ "refunded": true }', stream };
			const resumed = await ask([{ json: asked ?? {} }], resume);
			expect(out(resumed)).toMatchObject([{ answer: expect.stringContaining('"refunded":true') }]);
			expect(out(await ask([said('thanks')], { ...BY_KEY, stream }))).toMatchObject([
				{ answer: '2: thanks' },
			]);
			expect(server().conversations).toMatchObject([
				{ turns: ['go', 'thanks'], results: [{ output: '{"refunded":true}' }] },
			]);
			expect(stage.tables.rows('flow_agent_sessions')).toMatchObject([{ sessionKey: 'k' }]);
		},
	);
});

test('the first answer that names no session causes a hint', async () => {
	const [dialect] = dialectCases;
	const server = await StandIn.open(dialect!.server);
	const account = accountOf(dialect!, server);
	const description = JSON.parse(account.description ?? '') as { answer: object };
	const nowhere = { ...description, answer: { ...description.answer, session: 'nowhere' } };
	const settings = { ...CONTINUE, account: { ...account, description: JSON.stringify(nowhere) } };
	const run = await stage.run([said('hi')], { ...BY_KEY, options: OPTIONS }, settings);
	expect(out(run)).toMatchObject([
		{ answer: '1: hi', hint: expect.stringMatching(/^The answer names no session/) },
	]);
	expect(run.hints()).toEqual([expect.stringMatching(/^The answer names no session/)]);
	expect(stage.tables.rows('flow_agent_sessions')).toEqual([]);
	await server.close();
});
