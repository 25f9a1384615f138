import sharp from 'sharp';
import { startPlatform, SAMPLE_WORKFLOWS } from '../../platform';
import type { LocalPlatform } from '../../platform';
import { Client } from './client';

/** The mean difference of two images of the same size, 0 to 255. */
async function distance(a: Buffer, b: Buffer): Promise<number> {
	const [first, second] = await Promise.all([a, b].map(async (file) => sharp(file).raw().toBuffer()));
	if (first === undefined || second === undefined || first.length !== second.length) return 255;
	let sum = 0;
	for (const [index, value] of first.entries()) sum += Math.abs(value - (second[index] ?? 0));
	return sum / first.length;
}

describe('images', () => {
	let platform: LocalPlatform;
	let client: Client;

	beforeAll(async () => {
		platform = await startPlatform({ taskMs: 0 });
		client = new Client(platform);
		for (const [workflowId, exported] of Object.entries(SAMPLE_WORKFLOWS)) {
			await platform.hostWorkflow(exported, { workflowId });
		}
	});

	afterAll(async () => {
		await platform.close();
	});

	const small = { '5': { inputs: { width: 256, height: 192 } } };

	async function draw(prompt: object, workflowId?: string): Promise<Buffer> {
		return client.image((await client.submit(prompt, workflowId)).id);
	}

	test('have the requested size', async () => {
		expect(await sharp(await draw(small)).metadata()).toMatchObject({
			format: 'png',
			width: 256,
			height: 192,
		});
	});

	test('are the same for the same inputs, even on another platform', async () => {
		const other = await startPlatform({ taskMs: 0, seed: 99 });
		await other.hostWorkflow(SAMPLE_WORKFLOWS['text-to-image'], { workflowId: 'text-to-image' });
		const stranger = new Client(other);
		const same = await stranger.image((await stranger.submit(small)).id);
		await other.close();
		expect((await draw(small)).equals(same)).toBe(true);
	});

	test.each<[string, object]>([
		['seed', { '3': { inputs: { seed: 1 } } }],
		['text', { '6': { inputs: { text: 'blue ocean' } } }],
		['steps', { '3': { inputs: { steps: 60 } } }],
		['cfg', { '3': { inputs: { cfg: 1 } } }],
		['sampler', { '3': { inputs: { sampler_name: 'heun' } } }],
		['model', { '4': { inputs: { ckpt_name: 'line-art-2.safetensors' } } }],
	])('clearly depend on the %s', async (_what, change) => {
		expect(await distance(await draw(small), await draw({ ...small, ...change }))).toBeGreaterThan(3);
	});

	test('can be drawn for any text', async () => {
		const text = '<svg>&"\'\u0000\u0007\ud800 \u{1f984} ]]> 漢字 العربية\n\n' + 'long '.repeat(400);
		expect(await sharp(await draw({ ...small, '6': { inputs: { text } } })).metadata()).toMatchObject({
			width: 256,
		});
	});
});
