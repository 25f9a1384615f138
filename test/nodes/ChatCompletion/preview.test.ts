import { PIXEL, sayings, sharedStage } from '../harness/stage';
import { openChatStage } from './chat.fixture';

/* "Preview Request": outputs the request and sends nothing. */

const stage = sharedStage(openChatStage);

const PREVIEW = { options: { previewRequest: true } };

function expectNothingSent(): void {
	const { requests, chats } = stage.platform.books();
	expect([Object.values(requests).reduce((sum, count) => sum + count, 0), chats]).toEqual([0, []]);
}

test('shows the body that is sent, without the key', async () => {
	const parameters = {
		reasoning: 'on',
		tools: { tool: [{ name: 'weather', description: '', parameters: '{}' }] },
		options: { temperature: 0, tokenBudget: 5 },
	};
	const run = await stage.run(sayings('hello', 'you'), {
		...parameters,
		options: { ...parameters.options, ...PREVIEW.options },
	});
	expectNothingSent();
	await stage.run(sayings('hello', 'you'), { ...parameters, options: { temperature: 0 } });
	const bodies = stage.platform.books().chats.map(({ body }) => body);
	const said = (body: unknown): boolean => JSON.stringify(body).includes('hello');
	const sent = [...bodies.filter(said), ...bodies.filter((body) => !said(body))];
	expect(run.items()).toEqual(
		sent.map((body, item) => ({
			json: {
				preview: {
					method: 'POST',
					url: `${stage.platform.apiUrl}/maas/v1/chat/completions`,
					headers: { Authorization: 'Bearer <API key>', 'Content-Type': 'application/json' },
					body,
				},
			},
			pairedItem: { item },
		})),
	);
	expect(JSON.stringify(run.items())).not.toContain(stage.platform.apiKey);
});

test('reports a problem of one item in its position, and shows the others', async () => {
	const run = await stage.run([{ json: {} }, ...sayings('hello')], PREVIEW);
	expect(run.error).toBeUndefined();
	expect(run.items().map(({ json }) => Object.keys(json))).toEqual([['problem', 'advice'], ['preview']]);
	expect(run.jsons()[0]?.problem).toMatch(/^Message 1 \(user\) has no text/);
	expectNothingSent();
});

test('shows images by type and size', async () => {
	const images = {
		image: [
			{ source: 'binary', binaryPropertyName: 'photo' },
			{ source: 'url', url: 'https://example.com/b.png' },
		],
	};
	const run = await stage.run(
		[{ json: {}, binary: { photo: { data: PIXEL, fileName: 'a.png', mimeType: 'image/png' } } }],
		{ messages: { message: [{ role: 'user', content: 'What is it?', images }] }, ...PREVIEW },
	);
	expect(run.jsons()[0]).toMatchObject({
		preview: {
			body: {
				messages: [
					{
						content: [
							{ type: 'text', text: 'What is it?' },
							{ image_url: { url: `data:image/png;base64,<${PIXEL.byteLength} bytes>` } },
							{ image_url: { url: 'https://example.com/b.png' } },
						],
					},
				],
			},
		},
	});
	expectNothingSent();
});

test('hides a key in a message', async () => {
	const run = await stage.run(sayings(`My key is ${stage.platform.apiKey}`), PREVIEW);
	expect(JSON.stringify(run.items())).not.toContain(stage.platform.apiKey);
	expect(run.jsons()[0]).toHaveProperty('preview');
});

test('reads the switch for each item, and sends only those for which it is plainly off', async () => {
	const switches = [false, 'true', 1, 'false', 0, true];
	const items = switches.map((only, index) => ({ json: { say: `question ${index}`, only } }));
	const run = await stage.run(items, { options: { previewRequest: '={{ $json.only }}' } });
	expect(run.error).toBeUndefined();
	expect(run.items().map(({ json }) => 'preview' in json)).toEqual([
		...[false, true, true],
		...[false, false, true],
	]);
	expect(stage.platform.books().chats).toHaveLength(3);
});
