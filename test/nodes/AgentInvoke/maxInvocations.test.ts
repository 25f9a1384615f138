import { sharedStage } from '../harness/stage';
import { MAPPED, messages, RECORDED, said, TABLE } from './turnTable.fixture';
import { CONTINUE, openAgentStage } from './agent.fixture';

const stage = sharedStage(openAgentStage);

const rows = () => stage.tables.rows(TABLE);

describe('Max Invocations', () => {
	const OVERLOADED = { on: 'invoke', kind: 'code', code: 50300, msg: 'overloaded' } as const;
	const limited = (maxInvocations: number, over: object = {}) => ({
		options: { ...RECORDED, maxInvocations, retries: 10, ...over },
	});

	test('counts repeated calls; a repeat above it is not sent, and the item says what is known', async () => {
		stage.platform.faults.add({ ...OVERLOADED, times: 5 });
		const run = await stage.run([said('hi')], limited(3), CONTINUE);
		const { error, message } = run.jsons()[0]!;
		expect(error).toContain('The agent is still not accepting calls after 3 tries');
		expect(message).toContain("'Max Invocations' limits a run to 3 call(s), including retries");
		expect(stage.platform.books().requests.invoke).toBe(3);
		expect(rows()).toMatchObject([{ outcome: 'refused', attempts: 3, mayHaveRun: false }]);
	});

	test('reserves a call for each item, which repeats cannot use', async () => {
		stage.platform.faults.add({ ...OVERLOADED, match: 'busy' });
		const items = [said('busy'), said('b'), said('c')];
		const run = await stage.run(items, limited(4, { concurrency: 1 }), CONTINUE);
		expect(messages(run)).toEqual([expect.stringContaining('after 2 tries'), 'answered', 'answered']);
		expect(stage.platform.books().requests.invoke).toBe(4);
	});

	test('makes the call of an item that needed none available to the repeats of others', async () => {
		stage.platform.faults.add({ ...OVERLOADED, match: 'busy', times: 1 });
		const once = { idempotencyKey: '={{ $json.key }}', concurrency: 1 };
		const items = [
			{ json: { ...said('a').json, key: 'k' } },
			{ json: { ...said('a').json, key: 'k' } },
			{ json: { ...said('busy').json, key: 'other' } },
		];
		const run = await stage.run(items, limited(3, once), CONTINUE);
		expect(messages(run)).toEqual(['answered', 'answered', 'answered']);
		expect(stage.platform.books().requests.invoke).toBe(3);
	});

	test('counts a renewed session as a repeat', async () => {
		const options = { ...limited(1, { renewExpiredSession: true }).options };
		await stage.run([said('hi')], { ...MAPPED, options });
		stage.platform.agent.expireSessions();
		const run = await stage.run([said('hi')], { ...MAPPED, options });
		expect(run.error?.message).toContain('no longer knows the session');
		expect(run.error?.description).toContain("'Max Invocations' limits a run to 1 call(s)");
		expect(stage.platform.books().requests.invoke).toBe(2);
	});

	test('counts repeats of a call that may have run', async () => {
		stage.platform.faults.add({ on: 'invoke', kind: 'resetAfter' });
		const run = await stage.run([said('hi')], limited(2, { onUnknownOutcome: 'sendAgain' }), CONTINUE);
		expect(run.jsons()[0]!.message).toContain("'Max Invocations' limits a run to 2 call(s)");
		expect(stage.platform.books().invocations).toHaveLength(2);
		expect(rows()).toMatchObject([{ outcome: 'unclear', attempts: 2, mayHaveRun: true }]);
	});
});
