import { Client } from './client';
import { withPlatform } from './running';

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
	});
});

test('the books record for each poll how many tasks were unfinished', async () => {
	await withPlatform({ runners: 1, taskMs: 10_000 }, async (client, platform) => {
		const other = new Client(platform, platform.createOwner('other').apiKey);
		const ids: string[] = [];
		for (let seed = 0; seed < 3; seed++) ids.push((await client.submit({ '3': { inputs: { seed } } })).id);
		platform.faults.add({ on: 'submit', kind: 'resetAfter', times: 1 });
		await expect(client.submit()).rejects.toThrow();
		await client.infos([ids[0] ?? '', ids[1] ?? '', 'unknown']);
		await other.infos([]);
		expect(platform.books().polls).toMatchObject([
			{ owner: 'default', unfinished: 4, unfinishedKnown: 3, unfinishedAsked: 2, unknown: 1 },
			{ owner: 'other', unfinished: 0, unfinishedKnown: 0, unfinishedAsked: 0 },
		]);
		expect(platform.books().maxIdsInPoll).toBe(3);
	});
});

test('the books can be reset, and are plain JSON', async () => {
	await withPlatform({ taskMs: 0 }, async (client, platform) => {
		await client.submit();
		await fetch(`${platform.apiUrl}/maas/v1/other?x=1`);
		const books = platform.books();
		expect(books.requests).toMatchObject({ submit: 1, other: 1 });
		expect(books.paths).toEqual(['/api/maas/flow_task_api/prompt', '/maas/v1/other']);
		expect(JSON.parse(JSON.stringify(books))).toEqual(books);
		platform.resetBooks();
		expect(platform.books()).toMatchObject({ tasksMade: 0, paths: [], duplicates: 0 });
	});
});
