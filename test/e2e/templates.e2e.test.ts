// Imports each template into a real n8n and runs it unchanged.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import sharp from 'sharp';
import { startPlatform } from '../platform';
import { until } from '../until';
import imageToImage from '../platform/workflows/image-to-image.json';
import textToImage from '../platform/workflows/text-to-image.json';
import { saveImages } from './demoImages';
import { failureOf, fillTemplate, hostedWorkflow, outputItems, readTemplate } from './runner';
import type { WorkflowDocument } from './runner';
import { platformAccount, templateStage } from './stage';

const stage = templateStage('flowtask-templates-');

test('each template is run by a test', () => {
	const tests = readdirSync(__dirname)
		.filter((file) => file.endsWith('.e2e.test.ts'))
		.map((file) => readFileSync(join(__dirname, file), 'utf8'))
		.join('\n');
	const templates = readdirSync(join(__dirname, '..', '..', 'templates')).filter((file) =>
		file.endsWith('.json'),
	);
	expect(templates.filter((file) => !tests.includes(`readTemplate('${file}')`))).toEqual([]);
});

describe('Image batch', () => {
	async function ready(): Promise<WorkflowDocument> {
		const { workflowId } = await stage.platform.hostWorkflow(textToImage);
		return fillTemplate(readTemplate('image-batch.json'), {
			fields: { 'Make the pictures': hostedWorkflow(workflowId, textToImage) },
			credentials: { flowPlatformApi: stage.account },
		});
	}

	async function runOnce(document: WorkflowDocument) {
		const workflow = await stage.n8n.client.createWorkflow(document);
		const execution = await stage.n8n.client.waitForExecution(
			await stage.n8n.client.run(workflow, 'Run now'),
		);
		expect([execution.status, failureOf(execution)]).toEqual(['success', undefined]);
		return execution;
	}

	test('each prompt of the list becomes an image of its own', async () => {
		const execution = await runOnce(await ready());

		const prompts = outputItems(execution, 'One item per prompt').map(({ json }) => String(json.prompt));
		expect(prompts.length).toBeGreaterThanOrEqual(8);
		expect(outputItems(execution, 'Make the pictures', 1)).toEqual([]);
		const items = outputItems(execution, 'Pictures');
		const images = await saveImages(stage.n8n.client, items, join(stage.userFolder, 'pictures'));
		// The images are in the order of the list, each with the prompt from which it was made.
		expect(images.map(({ prompt, width, height }) => ({ prompt, width, height }))).toEqual(
			prompts.map((prompt) => ({ prompt, width: 512, height: 512 })),
		);
		expect(new Set(images.map(({ pixelHash }) => pixelHash)).size).toBe(prompts.length);

		const books = stage.platform.books();
		const sent = new Map(books.tasks.map(({ taskId, prompt }) => [taskId, prompt]));
		expect(images.map(({ taskId }) => sent.get(taskId))).toEqual(
			prompts.map((text, index) => ({
				'3': { inputs: { seed: Number(images[index]?.seed) } },
				'6': { inputs: { text } },
			})),
		);
		expect({ made: books.tasksMade, twice: books.duplicates, leaks: books.leaks }).toEqual({
			made: prompts.length,
			twice: 0,
			leaks: [],
		});
		expect(stage.n8n.log.errors()).toEqual([]);
	});

	test('a failed task goes to the lower output with its ID, and the others continue', async () => {
		const document = await ready();
		const fault = stage.platform.faults.add({
			on: 'submit',
			kind: 'failTask',
			match: 'a bowl of lemons',
			msg: 'out of memory',
		});
		const execution = await runOnce(document);
		fault.remove();

		const { tasks } = stage.platform.books();
		const failedTask = tasks.find(({ prompt }) => JSON.stringify(prompt).includes('a bowl of lemons'));
		expect(outputItems(execution, 'Failed').map(({ json }) => json)).toEqual([
			expect.objectContaining({
				error: expect.stringContaining('out of memory'),
				details: expect.objectContaining({ taskId: failedTask?.taskId, status: 'failed' }),
			}),
		]);
		const done = outputItems(execution, 'Pictures').map(({ json }) => json.taskId);
		expect(done).toEqual(tasks.filter((task) => task !== failedTask).map(({ taskId }) => taskId));
		expect(stage.n8n.log.errors()).toEqual([]);
	});

	test('the weekly run can be published once the template is filled in', async () => {
		const workflow = await stage.n8n.client.createWorkflow(await ready());
		await stage.n8n.client.activate(workflow);
		await stage.n8n.client.deactivate(workflow);
	});
});

describe('Image to image from a form', () => {
	/** Fills in the page as a visitor does, and reads the page that follows. */
	async function visit(document: WorkflowDocument, image: Buffer, wish: string) {
		const workflow = await stage.n8n.client.createWorkflow(document);
		await stage.n8n.client.activate(workflow);
		const page = document.nodes.find(({ name }) => name === 'Ask for a picture')?.webhookId;
		const form = new FormData();
		form.set('field-0', new Blob([new Uint8Array(image)], { type: 'image/png' }), 'harbour.png');
		form.set('field-1', wish);
		const sent = await fetch(`${stage.n8n.url}/form/${String(page)}`, { method: 'POST', body: form });
		const { formWaitingUrl } = (await sent.json()) as { formWaitingUrl: string };
		const id = await newestExecution(workflow.id);
		await stage.n8n.client.waitForExecution(id, { until: ['waiting'] });
		const answer = await (await fetch(formWaitingUrl)).text();
		// The script of the answer's page does this.
		await fetch(formWaitingUrl, { method: 'POST' });
		const execution = await stage.n8n.client.waitForExecution(id);
		await stage.n8n.client.deactivate(workflow);
		return { answer, execution };
	}

	async function ready(): Promise<WorkflowDocument> {
		const { workflowId } = await stage.platform.hostWorkflow(imageToImage);
		return fillTemplate(readTemplate('image-to-image-form.json'), {
			fields: {
				'Repaint the picture': {
					...hostedWorkflow(workflowId, imageToImage),
					options: {
						output: 'urls',
						expert: {
							imageSlots: {
								slot: [
									{
										nodeId: { __rl: true, mode: 'list', value: '10' },
										source: 'binary',
										binaryField: 'Picture',
									},
								],
							},
						},
					},
				},
			},
			credentials: { flowPlatformApi: stage.account },
		});
	}

	const upload = async () =>
		await sharp({ create: { width: 320, height: 240, channels: 3, background: '#2a6f97' } })
			.png()
			.toBuffer();

	test('the uploaded image is repainted, and the visitor gets the result', async () => {
		const { answer, execution } = await visit(await ready(), await upload(), 'a harbour in winter');

		expect([execution.status, failureOf(execution)]).toEqual(['success', undefined]);
		const [result] = outputItems(execution, 'Repaint the picture');
		expect(answer).toContain('Here is your picture');
		const shown = /<img src="([^"]+)"/.exec(answer)?.[1]?.replaceAll('&amp;', '&') ?? '';
		expect(shown).toBe(result?.json.url);
		const image = Buffer.from(await (await fetch(shown)).arrayBuffer());
		expect((await sharp(image).metadata()).format).toBe('png');
		const { tasks, requests, leaks } = stage.platform.books();
		expect(tasks.map(({ prompt }) => prompt)).toEqual([
			{
				'3': { inputs: { seed: result?.json.seed } },
				'6': { inputs: { text: 'a harbour in winter' } },
				'10': { inputs: { image: expect.any(String) } },
			},
		]);
		expect({ uploads: requests.upload, leaks }).toEqual({ uploads: 1, leaks: [] });
		expect(stage.n8n.log.errors()).toEqual([]);
	});

	test('a failed task leads to the other page', async () => {
		const fault = stage.platform.faults.add({ on: 'submit', kind: 'failTask', msg: 'out of memory' });
		const { answer, execution } = await visit(await ready(), await upload(), 'a harbour in spring');
		fault.remove();

		expect(execution.status).toBe('success');
		expect(answer).toContain('That did not work out');
		expect(answer).not.toContain('out of memory');
		expect(outputItems(execution, 'Repaint the picture', 1).map(({ json }) => json.error)).toEqual([
			expect.stringContaining('out of memory'),
		]);
		expect(stage.n8n.log.errors()).toEqual([]);
	});
});

describe('Review of a batch', () => {
	test('ticked images are made again under their numbers until none is ticked, each image is kept once, a failure is not, and the last page says so', async () => {
		const { workflowId } = await stage.platform.hostWorkflow(textToImage);
		const document = fillTemplate(readTemplate('image-review.json'), {
			fields: { 'Make the pictures': hostedWorkflow(workflowId, textToImage) },
			credentials: { flowPlatformApi: stage.account },
		});
		const workflow = await stage.n8n.client.createWorkflow(document);
		await stage.n8n.client.activate(workflow);
		const fault = stage.platform.faults.add({
			on: 'submit',
			kind: 'failTask',
			match: 'a tram',
			msg: 'out of memory',
		});
		stage.platform.faults.add({ on: 'submit', kind: 'failTask', match: 'a wreck', msg: 'sunk' });
		const form = new FormData();
		form.set('field-0', 'a lighthouse\n\na tram\n a fox \na wreck');
		const start = document.nodes.find(({ name }) => name === 'What to make')?.webhookId;
		const sent = await fetch(`${stage.n8n.url}/form/${String(start)}`, { method: 'POST', body: form });
		const { formWaitingUrl } = (await sent.json()) as { formWaitingUrl: string };
		const id = await newestExecution(workflow.id);

		const pageOf = async (): Promise<string> => {
			await stage.n8n.client.waitForExecution(id, { until: ['waiting'] });
			return await (await fetch(formWaitingUrl)).text();
		};
		const tick = async (...numbers: string[]): Promise<void> => {
			const ticks = new FormData();
			ticks.set('field-1', JSON.stringify(numbers));
			await (await fetch(formWaitingUrl, { method: 'POST', body: ticks })).arrayBuffer();
		};
		const first = await pageOf();
		fault.remove();
		expect(first.match(/<img [^>]*\/files\//g)).toHaveLength(2);
		expect(first).toContain('out of memory');
		await tick('2', '3');
		await until(() => stage.platform.books().tasksMade === 6, 'two images are made again');
		const second = await pageOf();
		expect(second.match(/<img [^>]*\/files\//g)).toHaveLength(2);
		expect(second).not.toContain('a lighthouse');
		expect(second.match(/<h3>[^<]*/g)).toEqual(['<h3>2: a tram', '<h3>3: a fox']);
		await tick();
		expect(await pageOf()).toContain('Kept 3 of 4: rows 1, 2 and 3');
		// The script of the last page does this.
		await fetch(formWaitingUrl, { method: 'POST' });
		const execution = await stage.n8n.client.waitForExecution(id);

		expect([execution.status, failureOf(execution)]).toEqual(['success', undefined]);
		expect(outputItems(execution, 'Kept').map(({ json }) => json.prompt)).toEqual([
			'a lighthouse',
			'a tram',
			'a fox',
		]);
		const { tasks, leaks } = stage.platform.books();
		expect({ tasks: tasks.length, leaks }).toEqual({ tasks: 6, leaks: [] });
		await stage.n8n.client.deactivate(workflow);
		expect(stage.n8n.log.errors()).toEqual([]);
	});
});

describe('Submit now, collect later', () => {
	test('one run submits tasks and another collects them, each image once', async () => {
		const { workflowId } = await stage.platform.hostWorkflow(textToImage);
		const workflow = await stage.n8n.client.createWorkflow(
			fillTemplate(readTemplate('submit-now-collect-later.json'), {
				fields: { Submit: hostedWorkflow(workflowId, textToImage) },
				credentials: { flowPlatformApi: stage.account },
			}),
		);
		const run = async (trigger: string) => {
			const execution = await stage.n8n.client.waitForExecution(
				await stage.n8n.client.run(workflow, trigger),
			);
			expect([execution.status, failureOf(execution)]).toEqual(['success', undefined]);
			return execution;
		};
		expect(outputItems(await run('Collect now'), 'What is still to come')).toEqual([]);
		const fault = stage.platform.faults.add({
			on: 'submit',
			kind: 'failTask',
			match: 'a night train',
			msg: 'out of memory',
		});
		const submitted = outputItems(await run('Submit now'), 'Keep the task IDs').map(({ json }) => json);
		fault.remove();
		expect(submitted).toHaveLength(3);

		const collected = await run('Collect now');
		const [bakery, train, owl] = submitted;
		expect(outputItems(collected, 'Pictures').map(({ json }) => [json.taskId, json.prompt])).toEqual([
			[bakery?.taskId, bakery?.prompt],
			[owl?.taskId, owl?.prompt],
		]);
		expect(outputItems(collected, 'Pictures').every(({ binary }) => binary?.data)).toBe(true);
		expect(outputItems(collected, 'Take these off as well').map(({ json }) => json.taskId)).toEqual([
			train?.taskId,
		]);

		expect(outputItems(await run('Collect now'), 'What is still to come')).toEqual([]);
		const { tasksMade, duplicates, leaks } = stage.platform.books();
		expect({ tasksMade, duplicates, leaks }).toEqual({ tasksMade: 3, duplicates: 0, leaks: [] });
		await stage.n8n.client.activate(workflow);
		await stage.n8n.client.deactivate(workflow);
		expect(stage.n8n.log.errors()).toEqual([]);
	});
});

describe('Long render', () => {
	test('the execution sleeps until the images are ready, and ends with all of them', async () => {
		const slow = await startPlatform({ runners: 1, taskMs: 8_000, images: 'prepared' });
		try {
			const slowAccount = await platformAccount({ platform: slow, n8n: stage.n8n });
			const { workflowId } = await slow.hostWorkflow(textToImage);
			const workflow = await stage.n8n.client.createWorkflow(
				fillTemplate(readTemplate('long-render.json'), {
					fields: { Submit: hostedWorkflow(workflowId, textToImage) },
					credentials: { flowPlatformApi: slowAccount },
				}),
			);
			const id = await stage.n8n.client.run(workflow, 'Run now');
			await stage.n8n.client.waitForExecution(id, { until: ['waiting'] });
			const execution = await stage.n8n.client.waitForExecution(id, { timeoutMs: 240_000 });

			expect([execution.status, failureOf(execution)]).toEqual(['success', undefined]);
			const submitted = outputItems(execution, 'Submit').map(({ json }) => json.taskId);
			const images = outputItems(execution, 'Pictures');
			expect(images.map(({ json }) => json.taskId)).toEqual(submitted);
			expect(images.every(({ binary }) => binary?.data)).toBe(true);
			const { tasksMade, duplicates, leaks } = slow.books();
			expect({ tasksMade, duplicates, leaks }).toEqual({ tasksMade: 3, duplicates: 0, leaks: [] });
			expect(stage.n8n.log.errors()).toEqual([]);
		} finally {
			await slow.close();
		}
	}, 300_000);
});

async function newestExecution(workflowId: string): Promise<string> {
	for (;;) {
		const [execution] = await stage.n8n.client.listExecutions({ id: workflowId });
		if (execution) return execution.id;
		await sleep(100);
	}
}
