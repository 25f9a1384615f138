import { withPlatform } from './client';

/** The outcome of 200 submits, one after the other, while a campaign is under way. */
async function fates(seed: number): Promise<string[]> {
	const seen: string[] = [];
	await withPlatform({ taskMs: 0 }, async (client, platform) => {
		platform.faults.campaign({ rate: 0.2, seed });
		for (let count = 0; count < 200; count++) {
			const answer = client.call('prompt', { workflow_id: 'text-to-image', prompt: {} });
			const text = await answer.then(
				async (response) => `${response.status} ${await response.text().catch(() => 'cut')}`,
				() => 'broken',
			);
			seen.push(/^200 .*\}$/s.test(text) ? 'delivered' : text.slice(0, 12));
		}
		platform.faults.clear();
		const { faults, tasksMade, undeliveredSubmits } = platform.books();
		expect(tasksMade - undeliveredSubmits).toBe(seen.filter((fate) => fate === 'delivered').length);
		expect(undeliveredSubmits).toBe((faults['resetAfter'] ?? 0) + (faults['truncatedJson'] ?? 0));
	});
	return seen;
}

test('a campaign hits its share of requests, the same ones with the same seed', async () => {
	const first = await fates(3);
	const hit = first.filter((fate) => fate !== 'delivered').length;
	expect(hit).toBeGreaterThan(20);
	expect(hit).toBeLessThan(60);
	expect(await fates(3)).toEqual(first);
	expect(await fates(4)).not.toEqual(first);
});
