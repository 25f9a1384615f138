import { heldFile, type UploadFile } from '../../../../nodes/shared/files/uploadFile';
import { createImageUploads, type LoadImage } from '../../../../nodes/FlowTask/tasks/uploads';
import { fail, ok } from '../../../../nodes/shared/errors/failure';
import { tooLarge as explainTooLarge } from '../../../../nodes/shared/files/inputFile';
import { TestClock } from '../../testClock';
import { ScriptedPlatform } from '../platform.script';

const MB = 1024 * 1024;

function scene() {
	const clock = new TestClock();
	const platform = new ScriptedPlatform(clock);
	platform.uploadTakesMs = 1_000;
	return {
		clock,
		platform,
		/** Uploads images of these sizes. @returns the most bytes that were held at once */
		most: async (sizes: readonly number[], isKnown: (index: number) => boolean) => {
			let held = 0;
			let most = 0;
			const upload = createImageUploads(
				{
					upload: async (file) => {
						const answer = await platform.upload(file);
						held -= file.size;
						return answer;
					},
				},
				undefined,
			);
			const uploads = sizes.map(async (size, index) => {
				const load: LoadImage = async (mostBytes) => {
					const read = Math.min(size, mostBytes);
					held += read;
					most = Math.max(most, held);
					await clock.sleep(100);
					if (read === size) return ok(image(size, index));
					held -= read;
					return fail(explainTooLarge('it', mostBytes));
				};
				return await upload(load, isKnown(index) ? size : undefined);
			});
			const results = await clock.run(Promise.all(uploads));
			expect(results.every((result) => result.ok)).toBe(true);
			return most;
		},
	};
}

/** An image with bytes of its own and a pretended size, so that the test itself needs no memory. */
function image(size: number, index: number): UploadFile {
	const image = heldFile({ bytes: Buffer.from(String(index)), fileName: 'a.png', mimeType: 'image/png' });
	Object.defineProperty(image.file, 'size', { value: size });
	return { ...image, heldBytes: size };
}

describe('createImageUploads: the bytes held at once', () => {
	it.each([
		['whose size n8n has recorded', () => true],
		['whose size is unknown', () => false],
	])('are those of one large image: images %s', async (_name, isKnown) => {
		const { most } = scene();
		expect(await most([100 * MB, 100 * MB, 100 * MB, 100 * MB, 100 * MB], isKnown)).toBe(100 * MB);
	});

	it('are those of one large image even after many small ones', async () => {
		const { most } = scene();
		const sizes = [...Array.from({ length: 20 }, () => MB), 100 * MB, 100 * MB, 100 * MB];
		expect(await most(sizes, () => true)).toBe(100 * MB);
	});

	it('are those of one large image even after small ones of unknown size', async () => {
		const { most } = scene();
		const sizes = [1, 1, 1, 1, 100 * MB, 100 * MB, 100 * MB, 100 * MB, 1];
		expect(await most(sizes, () => false)).toBe(100 * MB);
	});

	it.each([
		['known', true],
		['unknown', false],
	])('are those of four small images whose size is %s', async (_name, isKnown) => {
		const { most, clock } = scene();
		const sizes = Array.from({ length: 40 }, () => 5 * MB);
		expect(await most(sizes, () => isKnown)).toBe(20 * MB);
		expect(clock.elapsedMs).toBe(10 * 1_100);
	});

	it('are none if images are streamed, four at once, however large', async () => {
		const { clock, platform } = scene();
		const upload = createImageUploads(platform, undefined);
		const uploads = Array.from(
			{ length: 8 },
			async (_, index) => await upload(async () => ok({ ...image(100 * MB, index), heldBytes: 0 }), 0),
		);
		await clock.run(Promise.all(uploads));
		expect([platform.uploads.length, clock.elapsedMs]).toEqual([8, 2_000]);
	});

	it('are released by an image that cannot be read', async () => {
		const { clock, platform } = scene();
		const upload = createImageUploads(platform, undefined);
		const unreadable: LoadImage = async () => fail({ kind: 'file', message: 'It is not there', advice: '' });
		const thrown: LoadImage = async () => await Promise.reject(new Error('no'));
		const results = Promise.allSettled([
			upload(unreadable, 100 * MB),
			upload(thrown, 100 * MB),
			upload(async () => ok(image(100 * MB, 1)), 100 * MB),
		]);
		expect((await clock.run(results)).map(({ status }) => status)).toEqual([
			'fulfilled',
			'rejected',
			'fulfilled',
		]);
		expect(platform.uploads).toHaveLength(1);
	});
});
