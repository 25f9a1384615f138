// What happens to the turns of a stopped execution, according to the platform and the tables.
import { until } from '../../until';
import type { ItemInput } from '../harness';
import { sharedStage } from '../harness/stage';
import { MAPPED, RECORDED, said } from './turnTable.fixture';
import { openAgentStage } from './agent.fixture';

const stage = sharedStage(openAgentStage);

async function start(items: ItemInput[], parameters: Record<string, string | boolean> = {}, options = {}) {
	const own = { ...MAPPED, ...parameters, options: { ...RECORDED, ...options } };
	return await stage.start(items, own, { mode: 'webhook', streaming: true });
}

const sent = (): number => stage.platform.books().requests.invoke;
const turns = () => stage.tables.rows('flow_agent_turns').map(({ item, outcome }) => [item, outcome]);
const sessions = () =>
	stage.tables.rows('flow_agent_sessions').map(({ sessionKey, sessionId }) => [sessionKey, sessionId]);

test.each([true, false])(
	'answers to sent calls are read and saved with their sessions and turns, and no more calls are sent (stream: %s)',
	async (stream) => {
		const items = ['a', 'b', 'c', 'd'].map((key) => said('[hold] [answer: late]', key));
		const live = await start(items, { stream }, { concurrency: 2 });
		await until(() => stage.platform.agent.held === 2);
		live.cancel();
		await new Promise((resolve) => setTimeout(resolve, 2_000));
		stage.platform.agent.release();
		await live.done;
		await until(() => turns().length === 2, 'the rows of the turns');
		expect(turns()).toEqual([
			[1, 'answered'],
			[2, 'answered'],
		]);
		const opened = stage.platform.books().sessions.map(({ sessionId }) => sessionId);
		expect(sessions().toSorted()).toEqual(['a', 'b'].map((key, at) => [key, opened[at]]));
		expect(sent()).toBe(2);
	},
);

test('a chat sees the stop at once, and nothing after it', async () => {
	const live = await start([said('[answer: one two three!] [chunks: 3] [hold after: 1]')], { stream: true });
	await until(() => stage.platform.agent.held === 1 && live.said.chunks.length === 2);
	live.cancel();
	await until(() => live.said.chunks.at(-1)?.type === 'error');
	const heard = live.said.chunks.length;
	stage.platform.agent.release();
	await live.done;
	await until(() => turns().length === 1, 'the row of the turn');
	expect(turns()).toEqual([[1, 'answered']]);
	expect(live.said.chunks).toHaveLength(heard);
});

test('a call that is refused after the stop is repeated neither in its session nor in a new one', async () => {
	await (
		await start([said('hi')])
	).done;
	const before = sent();
	stage.platform.agent.expireSessions();
	stage.platform.faults.add({ on: 'invoke', kind: 'slowBody', ms: 100 });
	const live = await start([said('again')], {}, { renewExpiredSession: true, retries: 3 });
	await until(() => sent() === before + 1);
	live.cancel();
	await live.done;
	await until(() => turns().length === 2, 'the rows of the turns');
	// If the refusal arrived just before the stop, the renewal was cancelled.
	expect(['refused', 'cancelled']).toContain(turns()[1]?.[1]);
	expect(sent()).toBe(before + 1);
});
