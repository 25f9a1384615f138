import fc from 'fast-check';
import {
	TimeoutExecutionCancelledError,
	type INodeExecutionData,
	type IRun,
	type ITriggerFunctions,
} from 'n8n-workflow';

import {
	deduplicationKey,
	ExecutionStarter,
} from '../../../../../nodes/AgentBridge/actions/trigger/startExecutions';
import type { IncomingFrame } from '../../../../../nodes/AgentBridge/actions/trigger/incomingFrame';
import { redactor } from '../../../../../nodes/shared/text/redact';
import { TestClock, turn } from '../../../testClock';

type Deferred = PromiseWithResolvers<IRun>;
type Emitted = { readonly ids: unknown[]; readonly done: Deferred };

function scene(maxBatch: number, maxQueued = 100) {
	const clock = new TestClock();
	const emitted: Emitted[] = [];
	const lines: string[] = [];
	const running: Deferred[] = [];
	const context = {
		getWorkflow: () => ({ id: 'w' }),
		getNode: () => ({ id: 'n' }),
		helpers: { createDeferredPromise: () => Promise.withResolvers<IRun>() },
		emit: ([items]: INodeExecutionData[][], _response: unknown, done: Deferred) => {
			emitted.push({ ids: (items ?? []).map(({ json }) => json.frameId), done });
			running.push(done);
		},
	} as unknown as ITriggerFunctions;
	const delivery = new ExecutionStarter(
		context,
		{ clock, peer: { redact: redactor(['wst_secret']) } },
		{ maxBatch, maxQueued },
		(level, text) => lines.push(`${level}: ${text}`),
		{ ended: () => undefined, responded: () => undefined },
	);
	const received = (id: string): IncomingFrame => ({
		frame: { id },
		event: undefined,
		id,
		receivedAt: '',
		correlation: undefined,
	});
	return {
		delivery,
		clock,
		emitted,
		lines,
		push: (...ids: string[]) => {
			for (const id of ids) delivery.push(received(id), 1);
		},
		pushSaying: (id: string, text: string) => delivery.push({ ...received(id), frame: { id, text } }, 30),
		/** Pushes a frame without an ID, whose text has this length. @returns whether it was queued */
		pushLong: (chars: number) => delivery.push({ ...received(''), id: undefined }, chars),
		/** Ends the oldest execution that runs. */
		endOne: async () => {
			running.shift()?.resolve(END);
			await turn();
		},
	};
}

const END = {} as IRun;

test('keeps the order and the batch size, whenever frames arrive', async () => {
	const steps = fc.array(fc.constantFrom('push', 'end'), { maxLength: 60 });
	await fc.assert(
		fc.asyncProperty(steps, fc.integer({ min: 1, max: 5 }), async (script, maxBatch) => {
			const { delivery, emitted, push, endOne } = scene(maxBatch);
			const pushed: string[] = [];
			for (const step of script) {
				if (step === 'end') {
					await endOne();
					continue;
				}
				push(`${pushed.length}`);
				pushed.push(`${pushed.length}`);
			}
			for (let round = 0; round <= pushed.length; round++) {
				await turn();
				await endOne();
			}
			expect([delivery.queued, emitted.flatMap(({ ids }) => ids)]).toEqual([0, pushed]);
			expect(Math.max(0, ...emitted.map(({ ids }) => ids.length))).toBeLessThanOrEqual(maxBatch);
		}),
		{ numRuns: 50 },
	);
});

test('a full queue accepts nothing until there is room, by number and by size', async () => {
	const { delivery, pushLong, endOne } = scene(1, 2);
	pushLong(1);
	await turn();
	expect([1, 1, 1].map(pushLong)).toEqual([true, true, false]);
	expect(delivery.queued).toBe(2);
	let idle = false;
	void delivery.idle().then(() => {
		idle = true;
	});
	await endOne();
	await endOne();
	expect(idle).toBe(false);
	await endOne();
	expect(idle).toBe(true);

	// Frames of a running execution do not count.
	expect(pushLong(50_000_000)).toBe(true);
	await turn();
	expect([49_999_999, 2, 1, 0].map(pushLong)).toEqual([true, false, true, false]);
});

test('accepts a frame larger than the limit if nothing else waits', async () => {
	const { pushLong, endOne } = scene(1);
	pushLong(1);
	await turn();
	expect([50_000_001, 2].map(pushLong)).toEqual([true, false]);
	await endOne();
	expect([30_000_000, 30_000_000].map(pushLong)).toEqual([true, false]);
});

test('a frame with the ID of another one is skipped, and the first that differs from it is told of', () => {
	const { delivery, lines, pushSaying } = scene(1);
	for (const text of ['yes', 'yes', 'no!', 'why']) expect(pushSaying('anna', text)).toBe(true);
	expect(delivery.queued).toBe(1);
	expect(lines).toEqual([
		expect.stringMatching(/^debug: skipped a frame that arrived twice$/),
		expect.stringMatching(/^warn: skipped a frame whose ID .* 'ID Path' leads to .* \(IDs: anna\)$/),
		expect.stringMatching(/^debug: /),
	]);
});

test('a frame that found no room is new if it arrives again', async () => {
	const { delivery, emitted, push, endOne } = scene(1, 1);
	push('a');
	await turn();
	push('b', 'c');
	expect(delivery.queued).toBe(1);
	await endOne();
	push('c');
	await endOne();
	expect(emitted.map(({ ids }) => ids)).toEqual([['a'], ['b'], ['c']]);
});

test('when closed, starts executions for all waiting frames at once, in batches', async () => {
	const { delivery, emitted, push, lines } = scene(2);
	push('a', 'b', 'c', 'd', 'e');
	await turn();
	delivery.close();
	expect(emitted.map(({ ids }) => ids)).toEqual([['a', 'b'], ['c', 'd'], ['e']]);
	for (const { done } of emitted) done.resolve(END);
	await turn();
	expect(emitted).toHaveLength(3);
	expect(lines).toEqual(['info: 3 frame(s) were waiting; their executions start now, all at once']);
});

test('when closed, logs the number and IDs of frames that n8n refuses, without the token', async () => {
	const { delivery, emitted, push, lines, clock } = scene(2);
	push('a', 'b', 'c', 'd');
	await turn();
	delivery.close();
	emitted[0]?.done.resolve(END);
	for (let round = 0; round < 5; round++) {
		emitted.at(-1)?.done.reject(new Error('no database for wst_secret'));
		await clock.advance(60_000);
	}
	expect(lines.at(-1)).toContain('2 frame(s)');
	expect(lines.at(-1)).toContain('no database for [hidden]');
	expect(lines.at(-1)).toContain('c, d');
	expect(emitted).toHaveLength(2);
});

test('retries an execution that does not start, and nothing overtakes it', async () => {
	const { emitted, push, clock } = scene(2);
	push('a', 'b', 'c');
	await turn();
	emitted[0]?.done.reject(new Error('database is locked'));
	await clock.advance(1_999);
	expect(emitted).toHaveLength(1);
	await clock.advance(1);
	emitted[1]?.done.resolve(END);
	await turn();
	push('a');
	expect(emitted.map(({ ids }) => ids)).toEqual([['a', 'b'], ['a', 'b'], ['c']]);
});

test('gives up on an execution after three tries, logs it, forgets its IDs and starts the next batch', async () => {
	const { emitted, push, clock, lines } = scene(2);
	push('a', 'b', 'c');
	for (let tries = 0; tries < 3; tries++) {
		await clock.advance(10_000);
		emitted.at(-1)?.done.reject(new Error('database is locked'));
	}
	await clock.advance(10_000);
	expect(emitted.map(({ ids }) => ids)).toEqual([...Array<string[]>(3).fill(['a', 'b']), ['c']]);
	expect(lines.at(-1)).toContain('error: the execution for 2 frame(s) did not start');
	expect(lines.at(-1)).toContain('(IDs: a, b)');
	emitted.at(-1)?.done.resolve(END);
	push('a', 'c');
	await turn();
	expect(emitted.at(-1)?.ids).toEqual(['a']);
});

test('does not restart an execution that was stopped', async () => {
	const { emitted, push, clock, lines } = scene(2);
	push('a');
	await turn();
	emitted[0]?.done.reject(new TimeoutExecutionCancelledError('17'));
	await clock.advance(60_000);
	push('a');
	await turn();
	expect(emitted).toHaveLength(1);
	expect(lines[0]).toContain('did not finish');
});

test('the key of a frame contains workflow, node and ID, because n8n has one index per instance', () => {
	expect(deduplicationKey('w1', 'n1', [{ id: 'f-1' }])).toBe('flowbridge:w1:n1:f-1');
	const keys = [
		['w1', 'n1'],
		['w1', 'n2'],
		['w2', 'n1'],
	].map(([workflow = '', node = '']) => deduplicationKey(workflow, node, [{ id: '1' }]));
	expect(new Set(keys).size).toBe(3);
});

test('a batch has no key, because its frames may arrive in another batch, and neither has a frame without an ID', () => {
	expect(deduplicationKey('w', 'n', [{ id: '1' }, { id: '2' }])).toBeUndefined();
	expect(deduplicationKey('w', 'n', [{ id: undefined }])).toBeUndefined();
	expect(deduplicationKey('w', 'n', [])).toBeUndefined();
});

test("a key fits into n8n's column, however long the ID, and long IDs get different keys", () => {
	const keys = ['a', 'b'].map((end) =>
		deduplicationKey('w'.repeat(36), 'n'.repeat(36), [{ id: 'x'.repeat(5_000) + end }]),
	);
	expect(keys[0]).not.toBe(keys[1]);
	expect(keys[0]?.length).toBeLessThanOrEqual(255);
});

test('a key contains no NUL, which PostgreSQL rejects, and IDs with one get different keys', () => {
	const keys = ['a\0', 'a\uFFFD', 'a'].map((id) => deduplicationKey('w', 'n', [{ id }]));
	expect(new Set(keys).size).toBe(3);
	expect(keys.join('')).not.toContain('\0');
});
