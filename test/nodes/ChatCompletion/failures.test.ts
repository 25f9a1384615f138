import { stopwatch } from '../harness';
import { everythingSaid, sayings, sharedStage } from '../harness/stage';
import { model, openChatStage } from './chat.fixture';

const stage = sharedStage(openChatStage);

const CONTINUE = { onError: 'continueErrorOutput', outputs: [['Good'], ['Bad']] } as const;
const continued = () => ({ ...CONTINUE, outputs: CONTINUE.outputs.map((names) => [...names]) });

test.each([
	{ kind: '429', retryAfter: 'seconds', retryAfterSeconds: 1 },
	{ kind: '429', retryAfter: 'date', retryAfterSeconds: 1 },
	{ kind: '429', retryAfter: 'none' },
	{ kind: '5xx', status: 503 },
	{ kind: '5xx', status: 502, body: 'html' },
	{ kind: 'resetBefore' },
	{ kind: 'html200' },
] as const)('repeats a call that fails before an answer begins: %j', async (fault) => {
	stage.platform.faults.add({ on: 'chat', times: 1, ...fault });
	const startedAt = Date.now();
	const run = await stage.run(sayings('[answer: yes]'));
	expect(run.jsons()[0]).toMatchObject({ content: 'yes' });
	const { requests, chats } = stage.platform.books();
	expect([requests.chat, chats.length]).toEqual([2, 1]);
	if ('retryAfterSeconds' in fault && fault.retryAfter === 'seconds') {
		expect(Date.now() - startedAt).toBeGreaterThan(950);
	}
});

test('reports a lasting outage with the number of tries', async () => {
	stage.platform.faults.add({ on: 'chat', kind: '5xx', status: 503 });
	const run = await stage.run(sayings('x'), { options: { retries: 1 } });
	expect(run.error).toMatchObject({
		name: 'NodeApiError',
		message: expect.stringMatching(
			/^The node could not get an answer from the model \(HTTP 503\) after 2 tries/,
		),
		context: { itemIndex: 0, httpStatus: 503 },
	});
	expect(stage.platform.books().requests.chat).toBe(2);
});

test('stops trying at the timeout of the answer, and says why', async () => {
	stage.platform.faults.add({ on: 'chat', kind: '429', retryAfterSeconds: 30 });
	const watch = stopwatch();
	const run = await stage.run(sayings('x'), { options: { timeoutSeconds: 2 } });
	expect(run.error?.message).toContain('The platform is not accepting more requests');
	expect(run.error?.description).toContain("Lower 'Concurrency'");
	expect(watch.stop()).toBeLessThan(2_000);
});

test.each([
	['[words: 9] [cut after: 4]', /^The answer broke off after \d+ characters/],
	['[words: 9] [end after: 4]', /the connection ended before the answer was finished$/],
	['[words: 9] [error after: 4]', /the platform said: /],
])('never repeats a call once an answer has begun: %s', async (say, message) => {
	const run = await stage.run(sayings(say), {}, continued());
	const [item] = run.output('Bad');
	expect(Object.keys(item?.json ?? {})).toEqual(expect.arrayContaining(['error', 'message', 'details']));
	expect(item?.json).toMatchObject({
		error: expect.stringMatching(message),
		message: expect.stringContaining('not sent again'),
		details: { content: expect.stringMatching(/^word1 word2/), kind: expect.any(String) },
	});
	expect(stage.platform.books().requests.chat).toBe(1);
});

test('does not repeat a call without a stream whose answer is cut off', async () => {
	const run = await stage.run(
		sayings('[words: 50] [cut after: 1]', '[words: 50] [end after: 1]'),
		{ stream: false },
		continued(),
	);
	expect(run.output('Bad').map(({ json }) => json.error)).toEqual([
		expect.stringMatching(/^The answer broke off/),
		expect.stringMatching(/^The answer broke off/),
	]);
	expect(stage.platform.books().requests.chat).toBe(2);
});

test('error items contain exactly error, message and details, and are paired with their input', async () => {
	const run = await stage.run(
		sayings('[answer: a]', '[refuse: 413 much too long]', '[answer: c]'),
		{},
		{ onError: 'continueRegularOutput' },
	);
	const items = run.items();
	expect(items.map(({ pairedItem }) => pairedItem)).toEqual([{ item: 0 }, { item: 1 }, { item: 2 }]);
	expect(items[1]?.json).toEqual({
		error: 'The platform refused the question: much too long',
		message: expect.stringContaining('Send less text'),
		details: { kind: 'refused', httpStatus: 413 },
	});
	expect(items[2]?.json).toMatchObject({ content: 'c' });
	expect(run.hints()).toEqual(['2 answered, 1 failed.']);
});

test('an expression that cannot be evaluated makes only its item fail, even in options and for the first item', async () => {
	for (const field of ['content', 'temperature'] as const) {
		const bad = "={{ $json.say === 'bad' ? $('Nope').item.json.x : 1 }}";
		const run = await stage.run(
			sayings('bad', 'good'),
			field === 'content'
				? { messages: { message: [{ role: 'user', content: bad }] } }
				: { options: { temperature: bad, concurrency: 2 } },
			{ onError: 'continueRegularOutput' },
		);
		const [first, second] = run.jsons();
		expect(first?.error).toContain('n8n could not read');
		expect(second?.content).toContain('You said');
	}
});

test.each([301, 302, 307, 308])('never follows a redirect with HTTP %d', async (status) => {
	stage.platform.faults.add({ on: 'chat', kind: 'redirect', status });
	const run = await stage.run(sayings('x'));
	expect(run.error?.message).toContain('The base URL redirects to another address');
	expect(stage.platform.books()).toMatchObject({ requests: { trap: 0 }, leaks: [] });
});

test('reports an unknown key and a wrong address', async () => {
	const run = await stage.run(sayings('x'), {}, { account: { apiKey: 'sk-unknown-0123456789' } });
	expect(run.error?.message).toContain('does not accept the API key');
	expect(everythingSaid(run)).not.toContain('sk-unknown');
	const lost = await stage.run(sayings('x'), {}, { account: { baseUrl: `${stage.platform.apiUrl}/api` } });
	expect(lost.error?.description).toContain('Base URL');
});

test('a key that the platform echoes appears in no item, chunk, hint or log', async () => {
	const { apiKey } = stage.platform;
	const says = [
		`[answer: ${apiKey}] [think: ${apiKey}]`,
		`[words: 3] ${apiKey} [cut after: 2]`,
		`[refuse: 400 key ${apiKey}]`,
	];
	for (const streaming of [false, true]) {
		const run = await stage.run(
			sayings(...says.map((say) => say.replaceAll(apiKey, 'KEY'))),
			{
				messages: { message: [{ role: 'user', content: `={{ $json.say.replace('KEY', '${apiKey}') }}` }] },
				simplify: false,
				reasoning: 'on',
				options: { streamReasoning: true },
			},
			{ onError: 'continueRegularOutput', mode: 'webhook', streaming },
		);
		// The workflow itself contains the key here, so only the node's output is searched.
		expect(JSON.stringify([run.items(), run.chunks, run.hints(), run.logs])).not.toContain(apiKey);
		expect(run.jsons()[0]?.content).toBe('[hidden]');
	}
});

test.each([
	['[answer: a b c d]', { options: { maxTokens: 2 } }, 'The answer was cut off'],
	['[think: a b c d]', { reasoning: 'on', options: { maxTokens: 2 } }, 'used all its tokens for reasoning'],
	['[empty]', {}, 'The model gave an empty answer'],
	['[empty] [think: hm]', { reasoning: 'on' }, 'The model reasoned, but gave no answer'],
	['[answer: a] [finish: content_filter]', {}, 'content filter'],
])('explains the result of %s', async (say, parameters, warning) => {
	const run = await stage.run(sayings(say), parameters);
	expect(run.jsons()[0]?.warning).toContain(warning);
	expect(run.hints()[0]).toContain(warning);
});

test('reports an answer that is not the requested JSON, or outputs its text', async () => {
	const schema = { responseFormat: 'jsonSchema', jsonSchema: '{"type":"object","required":["title"]}' };
	const failed = await stage.run(sayings('[answer: {"a":1}]'), schema);
	expect(failed.error).toMatchObject({
		message: expect.stringContaining('it does not fit the schema: the answer must have "title"'),
		context: { content: '{"a":1}', itemIndex: 0 },
	});
	const kept = await stage.run(sayings('[answer: {"a":1}]', '[answer: {"title":"x"}]'), {
		...schema,
		onInvalidJson: 'returnText',
	});
	expect(kept.items().map(({ json }) => [json.content, json.parseError])).toEqual([
		['{"a":1}', expect.stringContaining('does not fit')],
		[{ title: 'x' }, undefined],
	]);
	const fenced = await stage.run(sayings('[answer: Sure: ```json {"a":[1]} ``` Done.]'), {
		responseFormat: 'jsonObject',
	});
	expect(fenced.jsons()[0]?.content).toEqual({ a: [1] });
	expect(stage.platform.books().chats.at(-1)?.body.response_format).toEqual({ type: 'json_object' });
});

test('reports a model that the platform does not have', async () => {
	const run = await stage.run(sayings('x'), model('nobody-1'));
	expect(run.error?.description).toContain("Check the model's ID");
});
