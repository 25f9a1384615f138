import type { JsonObject } from '../../../nodes/shared/text/json';
import { stopwatch, type HarnessRun } from '../harness';
import { sayings, sharedStage } from '../harness/stage';
import { until } from '../../until';
import { CONTINUE, openAgentStage } from './agent.fixture';

const stage = sharedStage(openAgentStage);

const STREAM = { stream: true, options: { requestsPerSecond: 0, timeoutSeconds: 2 } };

function chunksOf(run: HarnessRun): string[] {
	return run.chunks.map(({ type, content }) => (type === 'item' ? (content ?? '') : `<${type}>`));
}

function detailsOf(run: HarnessRun, item = 0): JsonObject {
	const json = run.jsons()[item]!;
	expect(Object.keys(json)).toEqual(['error', 'message', 'details']);
	return json.details as JsonObject;
}

// The last character is not a letter, because the node could hold a letter back as the beginning of a secret.
test.each(['webhook', 'manual'] as const)('passes the answer on in pieces in mode %s', async (mode) => {
	const run = await stage.run(sayings('[answer: one two three!] [chunks: 3]'), STREAM, {
		mode,
		streaming: true,
	});
	const chunks = chunksOf(run);
	expect(chunks.length).toBe(5);
	expect(chunks.slice(1, -1).join('')).toBe('one two three!');
	expect([chunks[0], chunks.at(-1)]).toEqual(['<begin>', '<end>']);
	expect(run.jsons()[0]?.answer).toBe('one two three!');
});

test('passes the first piece on while the agent is still writing', async () => {
	const items = sayings('[answer: one two three] [hold after: 1]');
	const live = await stage.start(items, STREAM, { mode: 'webhook', streaming: true });
	await until(() => stage.platform.agent.held === 1);
	await until(() => live.said.chunks.length === 2);
	expect(stage.platform.books().invocations[0]?.answered).toBe('unknown');
	stage.platform.agent.release();
	const chunks = chunksOf(await live.done);
	expect(chunks.slice(1, -1).join('')).toBe('one two three');
});

test('passes items that stream at the same time on one after the other', async () => {
	const run = await stage.run(
		sayings('[answer: a a a] [pause: 30]', '[answer: b b b]', '[fail: c]'),
		STREAM,
		{ mode: 'webhook', streaming: true, ...CONTINUE },
	);
	const text = chunksOf(run).join('');
	expect(text).toMatch(/^<begin>a a a<end><begin>b b b<end><begin>.*\n\n<error>$/);
});

test.each([true, false])(
	'an unreadable item does not keep the others from streaming (stream: %s)',
	async (stream) => {
		const run = await stage.run(
			sayings('', '[answer: hello]', '[answer: again]', ''),
			{ ...STREAM, stream },
			{ mode: 'webhook', streaming: true, ...CONTINUE },
		);
		expect(chunksOf(run).join('')).toBe('<begin><error><begin>hello<end><begin>again<end><begin><error>');
	},
);

test('says for every item why it ended if an unreadable one ends the run, and n8n adds the only error', async () => {
	const run = await stage.run(sayings('hello', ''), STREAM, { mode: 'webhook', streaming: true });
	expect(run.status).toBe('error');
	// n8n itself sends the last chunk.
	expect(chunksOf(run)).toEqual([
		...['<begin>', expect.stringContaining('Nothing was sent to the agent for this item'), '<end>'],
		...['<begin>', expect.stringContaining('is empty for this item'), '<end>', '<error>'],
	]);
	expect(stage.platform.books().requests.invoke).toBe(0);
});

test('a retry does not stream again what the first try streamed', async () => {
	stage.platform.faults.add({ on: 'invoke', kind: 'code', code: 40000, match: 'second', times: 1 });
	const run = await stage.run(
		sayings('[answer: first]', 'second [answer: other]'),
		{ ...STREAM, options: { ...STREAM.options, retries: 0 } },
		{ mode: 'webhook', streaming: true, retryOnFail: true, maxTries: 2, waitBetweenTries: 1 },
	);
	expect(run.error).toBeUndefined();
	expect(chunksOf(run).join('')).toMatch(
		/^<begin>first<end><begin>The platform refused[^<]*<end><begin><end><begin>other<end>$/,
	);
});

test('passes on an answer without pieces as a whole, and an interrupt as its question', async () => {
	for (const stream of [true, false]) {
		const run = await stage.run(
			sayings('[answer: whole!] [no deltas]', '[question: sure?]'),
			{ stream },
			{
				mode: 'webhook',
				streaming: true,
			},
		);
		expect(chunksOf(run)).toEqual(['<begin>', 'whole!', '<end>', '<begin>', 'sure?', '<end>']);
	}
});

test.each(['cut', 'end', 'silent'])(
	'a stream that ends early (%s) is reported with the text received, and not repeated',
	async (how) => {
		const settings = { retryOnFail: true, maxTries: 2, waitBetweenTries: 1, ...CONTINUE };
		const items = sayings(`[answer: one two three] [chunks: 3] [${how} after: 2] [side effect: a]`);
		const run = await stage.run(
			items,
			{ ...STREAM, options: { ...STREAM.options, onUnknownOutcome: 'error' } },
			{
				...CONTINUE,
			},
		);
		expect(run.jsons()[0]?.error).toMatch(/^The agent's answer broke off after \d+ characters: /);
		const { sessions } = stage.platform.books();
		expect(detailsOf(run)).toMatchObject({
			kind: 'unclear',
			mayHaveRun: true,
			answer: 'one two th',
			sessionId: sessions[0]?.sessionId,
		});
		stage.platform.resetBooks();
		const retried = await stage.run(items, STREAM, settings);
		expect(retried.jsons()[0]?.error).toContain('and got no usable answer, so the agent may have run');
		expect(stage.platform.books().effects).toEqual({ a: 1 });
	},
);

test.each(['slowBody', 'numbersAsStrings'] as const)('%s does not affect the answer', async (kind) => {
	stage.platform.faults.add({ on: 'invoke', kind, ms: 100 });
	for (const stream of [true, false]) {
		const run = await stage.run(sayings('[answer: Füchse 🦊 狐]'), { ...STREAM, stream });
		expect(run.jsons()[0]).toMatchObject({
			answer: 'Füchse 🦊 狐',
			session: { source: 'new' },
		});
	}
});

test('the node ends ten seconds after a stop and logs its sessions', async () => {
	const live = await stage.start(sayings('done', '[hold after: 1]', '[hold]'), {
		...STREAM,
		options: { timeoutSeconds: 60, requestsPerSecond: 0 },
	});
	await until(() => stage.platform.agent.held === 2);
	const done = stage.platform.books().sessions.find(({ messages }) => messages[0] === 'done');
	const call = () => stage.platform.books().invocations.find(({ message }) => message === 'done');
	await until(() => call()?.answered === 'yes');
	// The node must have read the answer as well.
	await new Promise((resolve) => setTimeout(resolve, 300));
	const sinceCancel = stopwatch();
	live.cancel();
	const run = await live.done;
	const endedMs = sinceCancel.stop();
	expect(endedMs).toBeGreaterThan(9_000);
	expect(endedMs).toBeLessThan(11_500);
	const { message: line } = await until(() =>
		run.logs.find(({ message }) => message.includes('was stopped')),
	);
	expect(line).toContain(done?.sessionId);
	expect(line).toContain('2 call(s) had no answer yet');
	stage.platform.agent.release();
});
