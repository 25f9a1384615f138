import { NODE_NAME, stopwatch, to } from '../harness';
import { PIXEL, sayings, sharedStage } from '../harness/stage';
import { openChatStage } from './chat.fixture';

const stage = sharedStage(openChatStage);

const TEXT = '={{ $json.say }}';

function mostAtOnce(): number {
	const { chats } = stage.platform.books();
	return Math.max(
		...chats.map(
			({ atMs }) => chats.filter((other) => other.atMs <= atMs && (other.endedAt ?? Infinity) > atMs).length,
		),
	);
}

test('sends nothing if there are no items', async () => {
	const run = await stage.run([]);
	expect(run.error).toBeUndefined();
	expect(stage.platform.books().requests.chat).toBe(0);
});

test('outputs a hundred items in order and paired, and never exceeds the concurrency', async () => {
	const run = await stage.run(sayings(...Array.from({ length: 100 }, (_, index) => `[answer: ${index}]`)), {
		options: { requestsPerSecond: 0, concurrency: 7 },
	});
	expect(run.items().map(({ json, pairedItem }) => [json.content, pairedItem])).toEqual(
		Array.from({ length: 100 }, (_, item) => [String(item), { item }]),
	);
	expect(stage.platform.books().requests.chat).toBe(100);
	expect(mostAtOnce()).toBeLessThanOrEqual(7);
});

test('never exceeds the requests per second', async () => {
	const says = Array.from({ length: 16 }, (_, index) => `[answer: ${index}]`);
	await stage.run(sayings(...says), { options: { requestsPerSecond: 10 } });
	const times = stage.platform.books().chats.map(({ atMs }) => atMs);
	// The limit spreads them over 1,500 ms, but the first one may arrive late.
	expect(Math.max(...times) - Math.min(...times)).toBeGreaterThan(1_000);
});

test.each(['[hold after: 2] [words: 9]', '[silent after: 2] [words: 9]', '[hold after: 0] [words: 9]'])(
	'a cancel closes the connection within a second: %s',
	async (say) => {
		const live = await stage.start(sayings(say));
		const open = () => stage.platform.books().chats[0];
		while (!open()) await new Promise((resolve) => setTimeout(resolve, 5));
		const sinceCancel = stopwatch();
		live.cancel();
		expect((await live.done).status).toBe('canceled');
		while (!open()?.hungUpAt) await new Promise((resolve) => setTimeout(resolve, 5));
		expect(sinceCancel.stop()).toBeLessThan(1_000);
		expect(stage.platform.books().requests.chat).toBe(1);
	},
);

test('a failure lets answers in flight finish and starts no others', async () => {
	const run = await stage.run(
		sayings(
			'[words: 5] [takes: 100] [error after: 1]',
			'[words: 9] [pause: 40]',
			'[words: 9] [pause: 40]',
			'never',
		),
		{ options: { requestsPerSecond: 0, concurrency: 3 } },
	);
	expect(run.error?.message).toContain('broke off');
	expect(run.error?.description).toContain('2 other item(s) were answered');
	expect(
		stage.platform
			.books()
			.chats.map(({ ended }) => ended)
			.sort(),
	).toEqual(['done', 'done', 'error']);
});

test('silence ends the wait and closes the connection', async () => {
	const run = await stage.run(sayings('[silent after: 2] [words: 9]'), {
		options: { idleTimeoutSeconds: 1 },
	});
	expect(run.error?.message).toBe('The answer broke off after 11 characters: the connection went silent');
	expect(run.error?.description).toContain("Raise 'Idle Timeout (Seconds)'");
	while (!stage.platform.books().chats[0]?.hungUpAt) await new Promise((resolve) => setTimeout(resolve, 5));
});

test('sends messages from the form and from JSON, with images from files and URLs', async () => {
	const image = (row: object) => ({ source: 'url', binaryPropertyName: 'data', url: '', detail: '', ...row });
	const items = [
		{
			json: { say: 'look' },
			binary: { a: { data: PIXEL, mimeType: 'image/png' }, b: { data: PIXEL, mimeType: 'image/png' } },
		},
	];
	await stage.run(items, {
		messages: {
			message: [
				{ role: 'system', content: 'Be brief.' },
				{ role: 'user', content: '  ' },
				{
					role: 'user',
					content: TEXT,
					images: {
						image: [
							image({ source: 'binary', binaryPropertyName: 'a, b' }),
							image({ url: 'https://example.com/x.png', detail: 'low' }),
							image({ url: 'data:image/JPG;base64,/9j/' }),
						],
					},
				},
			],
		},
		options: { extraBody: '{"top_k":3}', temperature: 0, stop: ['END', ''] },
	});
	const data = `data:image/png;base64,${PIXEL.toString('base64')}`;
	expect(stage.platform.books().chats[0]?.body).toMatchObject({
		top_k: 3,
		temperature: 0,
		stop: ['END'],
		messages: [
			{ role: 'system', content: 'Be brief.' },
			{
				role: 'user',
				content: [
					{ type: 'text', text: 'look' },
					{ type: 'image_url', image_url: { url: data } },
					{ type: 'image_url', image_url: { url: data } },
					{ type: 'image_url', image_url: { url: 'https://example.com/x.png', detail: 'low' } },
					{ type: 'image_url', image_url: { url: 'data:image/jpeg;base64,/9j/' } },
				],
			},
		],
	});
	await stage.run([{ json: { all: [{ role: 'user', content: 'hi' }] } }], {
		messagesJson: '={{ $json.all }}',
	});
	expect(stage.platform.books().chats[1]?.body.messages).toEqual([{ role: 'user', content: 'hi' }]);
});

test.each([
	[
		{ source: 'binary', binaryPropertyName: 'big' },
		{},
		/^Message 1: The file \(big\) is larger than 0\.01 MB$/,
	],
	[
		{ source: 'binary', binaryPropertyName: 'pdf' },
		{},
		/^Message 1: The file in field "pdf" is application\/pdf/,
	],
	[{ source: 'binary', binaryPropertyName: 'none' }, {}, /^Message 1: The item has no file in field "none"$/],
	[
		{ source: 'url', url: 'ftp://x/y.png' },
		{},
		/^Message 1: "ftp:\/\/x\/y.png" is not an http or https URL$/,
	],
	[{ source: 'url', url: '' }, {}, /^Message 1: An image has no URL$/],
	[
		{ source: 'binary', binaryPropertyName: 'page' },
		{},
		/^Message 1: The file in field "page" is a web page/,
	],
	[
		{ source: 'url', url: 'data:image/svg+xml;base64,AAAA' },
		{},
		/image\/svg\+xml, which models do not accept/,
	],
	[
		{ source: 'url', url: `data:image/png;base64,${'A'.repeat(20_000)}` },
		{},
		/^Message 1: An image is larger than 0.01 MB$/,
	],
	[{}, { extraBody: '{"model":"x"}' }, /^'Extra Body' sets "model"/],
	[{}, { temperature: 9 }, /^'Temperature' must be a number from 0 to 2$/],
	[{}, { temperature: '={{ [] }}' }, /^'Temperature' must be a number/],
])('refuses an invalid message before sending anything: %#', async (image, options, message) => {
	const big = Buffer.concat([PIXEL, Buffer.alloc(20_000)]);
	const binary = {
		big: { data: big, mimeType: 'image/png' },
		pdf: { data: Buffer.from('%PDF-1.4'), mimeType: 'application/pdf' },
		page: { data: Buffer.from('<!doctype html><title>Sign in</title>'), mimeType: 'image/png' },
	};
	const row = { role: 'user', content: 'x', ...('source' in image && { images: { image: [image] } }) };
	const run = await stage.run([{ json: {}, binary }], {
		messages: { message: [row] },
		options: { maxImageSizeMb: 0.01, ...options },
	});
	expect(run.error).toMatchObject({
		name: 'NodeOperationError',
		message: expect.stringMatching(message),
		context: { itemIndex: 0 },
	});
	expect(stage.platform.books().requests.chat).toBe(0);
});

test('outputs raw data on request', async () => {
	for (const stream of [true, false]) {
		const run = await stage.run(sayings('[answer: yes]'), { simplify: false, stream });
		expect(run.jsons()[0]).toMatchObject({
			content: 'yes',
			raw: {
				object: 'chat.completion',
				choices: [{ message: { role: 'assistant', content: 'yes' }, finish_reason: 'stop' }],
			},
		});
	}
});

test('streams items one after the other, reasoning if the option is on, and an error chunk for a failed item', async () => {
	const streamed = async (options: object) => {
		const run = await stage.run(
			sayings(
				'[think: hm\nand so on] [answer: a b] [takes: 150]',
				'[words: 5] [error after: 3]',
				'[think: hm\nand so on] [answer: c]',
			),
			{ reasoning: 'on', options: { ...options } },
			{ onError: 'continueRegularOutput', mode: 'webhook', streaming: true },
		);
		const said = new Map<number, string>();
		for (const { type, content, metadata } of run.chunks) {
			const index = metadata.itemIndex;
			said.set(index, `${said.get(index) ?? ''}${type === 'item' ? (content ?? '') : `<${type}>`}`);
		}
		expect(run.chunks.map(({ metadata }) => metadata.itemIndex)).toEqual(
			run.chunks.map(({ metadata }) => metadata.itemIndex).sort((a, b) => a - b),
		);
		return [...said.values()];
	};
	expect(await streamed({})).toEqual([
		'<begin>a b<end>',
		expect.stringMatching(/^<begin>.*<error>$/),
		'<begin>c<end>',
	]);
	expect(await streamed({ streamReasoning: true })).toEqual([
		'<begin>> hm\n> and so on\n\na b<end>',
		expect.stringMatching(/<error>$/),
		'<begin>> hm\n> and so on\n\nc<end>',
	]);
});

test('returns the text as a tool, and reports a failure in a single message', async () => {
	const tool = { type: 'n8n-nodes-flowtask.chatCompletionTool' };
	const good = await stage.run(sayings('[answer: yes]'), {}, tool);
	expect(good.jsons()).toEqual([{ content: 'yes' }]);
	const bad = await stage.run(sayings('[refuse: 400 no]'), {}, tool);
	expect(bad.error?.message).toMatch(
		/^The platform refused the question: no\. \(For the operator of this workflow, not for the user: Compare /,
	);
});

test.each(['Chat', 'Trigger'])(
	'also outputs the text in "output" if a chat started the execution: %s',
	async (startNode) => {
		const { nodes, connections } = stage.workflow({
			messages: { message: [{ role: 'user', content: '={{ $json.chatInput }}' }] },
		});
		const chat = { name: 'Chat', type: '@n8n/n8n-nodes-langchain.chatTrigger' };
		const run = await stage.runWorkflow(
			{ nodes: [...nodes, chat], connections: { ...connections, Chat: { main: [to(NODE_NAME)] } } },
			[{ json: { chatInput: '[answer: hello]' } }],
			{ startNode },
		);
		expect(run.error).toBeUndefined();
		const { output, content } = run.jsons()[0] ?? {};
		expect([output, content]).toEqual([startNode === 'Chat' ? 'hello' : undefined, 'hello']);
	},
);
