import { failureOf, valueOf } from '../results';
import { askChat, delta, finish, sse } from './askChat';

/* Data that only keeps a connection alive is not an answer. */

const EVERY_MS = 1_000;
const HOUR_MS = 60 * 60_000;

const call = (fields: object): string => sse(delta({ tool_calls: [{ index: 0, ...fields }] }));

test.each<[string, string, string]>([
	['comments', '', ': ping\n\n'],
	['white space before a body', '', ' \n'],
	['comments after a text', sse(delta({ content: 'Hel' })), ': ping\n\n'],
	['empty deltas', sse(delta({ content: 'Hel' })), sse(delta({ content: '' }))],
	[
		'empty reasoning',
		sse(delta({ content: 'Hel' })),
		sse(delta({ reasoning_content: '', role: 'assistant' })),
	],
	['deltas without fields', '', sse(delta({}))],
	['chunks without choices', '', sse({ choices: [] })],
	['token counts', sse(delta({ content: 'Hel' })), sse({ choices: [], usage: { total_tokens: 1 } })],
	['text that is not a chunk', '', sse('ping')],
	[
		'tool calls without content',
		sse(delta({ content: 'Hel' })),
		call({ id: '', function: { name: '', arguments: '' } }),
	],
	[
		'repeated reasoning',
		'',
		sse(delta({ reasoning_details: [{ text: 'hm' }] }), delta({ reasoning_details: [{ text: 'hm, so' }] })),
	],
	['white space in a document', '{"choices":', ' '],
])('the idle timeout still applies to %s without end', async (_name, first, rest) => {
	const { result, tookMs } = await askChat({
		body: async function* (clock) {
			yield first;
			for (let piece = 0; clock.elapsedMs < HOUR_MS; piece++) {
				await clock.sleep(EVERY_MS);
				yield piece === 0 || !rest.includes('hm, so') ? rest : rest.slice(rest.lastIndexOf('data:'));
			}
		},
		idleMs: 10_000,
	});
	expect(failureOf(result)).toMatchObject({ kind: 'timedOut' });
	expect(tookMs).toBeGreaterThan(10_000);
	expect(tookMs).toBeLessThan(13_000);
});

test.each([
	['text', sse(delta({ content: 'a' }))],
	['reasoning', sse(delta({ reasoning_content: 'a' }))],
	['reasoning in details', sse(delta({ reasoning_details: [{ text: 'a' }] }))],
	['reasoning in tags', sse(delta({ content: '<' }))],
	['the arguments of a tool call', call({ function: { arguments: ' ' } })],
])('the idle timeout restarts with %s', async (_name, piece) => {
	const { result } = await askChat({
		body: async function* (clock) {
			yield call({ id: 'c', function: { name: 'f' } });
			for (let count = 0; count < 30; count++) {
				await clock.sleep(9_000);
				yield piece;
			}
			yield sse(finish('stop'), '[DONE]');
		},
		idleMs: 10_000,
	});
	valueOf(result);
});

test('an endless answer is cut off at the timeout', async () => {
	const { result, tookMs } = await askChat({
		body: async function* (clock) {
			while (clock.elapsedMs < HOUR_MS) {
				await clock.sleep(EVERY_MS);
				yield sse(delta({ content: 'a' }));
			}
		},
		totalMs: 60_000,
	});
	const failure = failureOf(result);
	expect(failure).toMatchObject({
		kind: 'timedOut',
		details: { content: expect.stringMatching(/^a{59,61}$/) },
	});
	expect(tookMs).toBeLessThan(62_000);
});

test('waits a moment for token counts after the finish reason, however long the silence before it', async () => {
	const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
	const { result, tookMs } = await askChat({
		body: async function* (clock) {
			yield sse(delta({ content: 'a' }));
			for (let count = 0; count < 9; count++) {
				await clock.sleep(1_000);
				yield ': ping\n\n';
			}
			yield sse(finish('stop'));
			await clock.sleep(1_500);
			yield sse({ choices: [], usage });
			for (;;) {
				await clock.sleep(1_000);
				yield ': ping\n\n';
			}
		},
	});
	expect(valueOf(result)).toMatchObject({ content: 'a', usage: { totalTokens: 3 } });
	expect(tookMs).toBeLessThan(14_000);
});

test.each([
	['after the text', [delta({ content: 'ab' }), finish('stop')]],
	['next to the last text', [delta({ content: 'a' }), finish('stop', { content: 'b' })]],
])('does not wait long after a finish reason %s, whatever still arrives', async (_name, chunks) => {
	const { result, tookMs } = await askChat({
		body: async function* (clock) {
			yield sse(...chunks);
			while (clock.elapsedMs < HOUR_MS) {
				await clock.sleep(EVERY_MS);
				yield sse(delta({}), finish('stop'));
			}
		},
	});
	expect(valueOf(result)).toMatchObject({ content: 'ab', finishReason: 'stop' });
	expect(tookMs).toBeLessThan(5_000);
});

const EACH_FINISHED = sse({ choices: [{ index: 0, delta: { content: 'a' }, finish_reason: 'stop' }] });

test('reads an answer to its end if every chunk has a finish reason, even after a longer pause', async () => {
	const { result, tookMs } = await askChat({
		body: async function* (clock) {
			yield sse({ choices: [{ index: 0, delta: { role: 'assistant' }, finish_reason: 'stop' }] });
			for (let count = 0; count < 20; count++) {
				await clock.sleep(8_000);
				yield EACH_FINISHED;
			}
			yield sse('[DONE]');
		},
		idleMs: 10_000,
	});
	expect(valueOf(result).content).toBe('a'.repeat(20));
	expect(tookMs).toBe(160_000);
});

test('a finish reason after which the answer continued does not prove that it is complete', async () => {
	const { result } = await askChat({
		body: function* () {
			yield EACH_FINISHED;
			yield EACH_FINISHED;
			throw new Error('the line was cut');
		},
	});
	expect(failureOf(result)).toMatchObject({ kind: 'unclear', details: { content: 'aa' } });
});
