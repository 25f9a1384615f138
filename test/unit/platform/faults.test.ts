import { fate } from './client';
import type { Client } from './client';
import { withPlatform } from './running';

const submitBody = { workflow_id: 'text-to-image', prompt: {} };

async function fateOfSubmit(client: Client): Promise<string> {
	return fate(client.call('prompt', submitBody));
}

describe('fault rules', () => {
	test('support skip, times, match and removal', async () => {
		await withPlatform({ taskMs: 0 }, async (client, platform) => {
			const rule = platform.faults.add({
				on: 'submit',
				kind: 'code',
				skip: 1,
				times: 2,
				match: 'dragon',
			});
			const codes: number[] = [];
			for (const text of ['dragon', 'fox', 'dragon', 'fox', 'dragon', 'dragon']) {
				codes.push((await client.submitText(text)).code);
			}
			expect(codes).toEqual([0, 0, 50000, 0, 50000, 0]);
			expect(rule.injected).toBe(2);
			platform.faults.add({ on: 'submit', kind: 'code' }).remove();
			expect((await client.submit()).code).toBe(0);
		});
	});

	async function pattern(seed: number, campaign: boolean): Promise<string> {
		let marks = '';
		await withPlatform({ taskMs: 0, seed }, async (client, platform) => {
			if (campaign) platform.faults.campaign({ rate: 0.4, seed });
			else platform.faults.add({ on: 'submit', kind: 'code', probability: 0.4 });
			for (let count = 0; count < 30; count++) {
				marks += (await fateOfSubmit(client)).slice(0, 18).replace(/[{"]/g, '') + '|';
			}
		});
		return marks;
	}

	test.each([true, false])('inject the same faults with the same seed (campaign: %s)', async (campaign) => {
		const first = await pattern(5, campaign);
		expect(await pattern(5, campaign)).toBe(first);
		expect(await pattern(6, campaign)).not.toBe(first);
	});

	test('of a campaign hit their share of requests, and the books agree with the caller', async () => {
		await withPlatform({ taskMs: 0 }, async (client, platform) => {
			platform.faults.campaign({ rate: 0.2, seed: 3 });
			let delivered = 0;
			for (let count = 0; count < 200; count++) {
				const text = await fateOfSubmit(client);
				if (/^200 .*\}$/s.test(text)) delivered++;
			}
			platform.faults.clear();
			const { faults, tasksMade, undeliveredSubmits } = platform.books();
			const injected = Object.values(faults).reduce((sum, count) => sum + count, 0);
			expect(injected).toBeGreaterThan(20);
			expect(injected).toBeLessThan(60);
			expect(tasksMade - undeliveredSubmits).toBe(delivered);
			expect(undeliveredSubmits).toBe((faults['resetAfter'] ?? 0) + (faults['truncatedJson'] ?? 0));
		});
	});
});
