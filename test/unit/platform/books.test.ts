import { startPlatform } from '../../platform';
import { until } from '../../until';
import { Client, field, withPlatform } from './client';

test('the books count duplicates, but not those of a failed task', async () => {
	await withPlatform({ taskMs: 0 }, async (client, platform) => {
		const prompt = { '3': { inputs: { seed: 1, steps: 5 } } };
		await client.submit(prompt);
		await client.submit({ '3': { inputs: { steps: 5, seed: 1 } } });
		await client.submit({ '3': { inputs: { seed: 2, steps: 5 } } });
		await client.submit(prompt, 'two-outputs');
		expect(platform.books()).toMatchObject({ tasksMade: 4, duplicates: 1 });

		await client.submitText('[fail]');
		await client.submitText('[fail]');
		expect(platform.books()).toMatchObject({ tasksMade: 6, duplicates: 1 });
		expect(JSON.parse(JSON.stringify(platform.books()))).toEqual(platform.books());
	});
});

test('the books record for each poll how many tasks were unfinished', async () => {
	await withPlatform({ runners: 1, taskMs: 10_000 }, async (client, platform) => {
		const other = new Client(platform, platform.createOwner('other').apiKey);
		const { id } = await client.submit();
		await client.submitText('another');
		await client.infos([id, 'unknown', 'unknown as well']);
		await other.infos([]);
		expect(platform.books()).toMatchObject({
			polls: [
				{ owner: 'default', unfinished: 2 },
				{ owner: 'other', unfinished: 0 },
			],
			maxIdsInPoll: 3,
		});
	});
});

test('the books count repeated calls of an agent, and those of one session at once', async () => {
	const platform = await startPlatform();
	const say = async (message: string, sessionId?: unknown): Promise<unknown> => {
		const response = await fetch(`${platform.apiUrl}/api/agents/Invoke`, {
			method: 'POST',
			headers: { authorization: `Bearer ${platform.agentToken}`, 'content-type': 'application/json' },
			body: JSON.stringify({ message, session_id: sessionId }),
		});
		return field(await response.json(), 'data');
	};
	const sessionId = field(await say('first'), 'session_id');
	const held = say('[hold] pay', sessionId);
	await until(() => platform.agent.held === 1);
	expect(await say('pay', sessionId)).toMatchObject({ reason: 'session_busy' });
	await say('first');
	platform.agent.release();
	await held;
	await say('pay', sessionId);
	await say('pay', sessionId);
	expect(platform.books()).toMatchObject({
		duplicateInvocations: 2,
		concurrentPerSession: 2,
		mostInvocationsAtOnce: 2,
	});
	platform.resetBooks();
	expect(platform.books()).toMatchObject({ invocations: [], sessions: [], duplicateInvocations: 0 });
	await platform.close();
});
