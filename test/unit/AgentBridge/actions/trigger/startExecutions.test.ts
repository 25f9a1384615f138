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

interface Scene {
	readonly delivery: ExecutionStarter;
	readonly clock: TestClock;
	readonly emitted: Emitted[];
	readonly lines: string[];
	/** IDs that are new again if they arrive again. */
	readonly forgotten: string[];
	push(...ids: string[]): void;
}

function scene(maxBatch: number): Scene {
	const clock = new TestClock();
	const emitted: Emitted[] = [];
	const lines: string[] = [];
	const forgotten: string[] = [];
	const context = {
		getWorkflow: () => ({ id: 'w' }),
		getNode: () => ({ id: 'n' }),
		helpers: { createDeferredPromise: () => Promise.withResolvers<IRun>() },
		emit: ([items]: INodeExecutionData[][], _response: unknown, done: Deferred) => {
			emitted.push({ ids: (items ?? []).map(({ json }) => json.frameId), done });
		},
	} as unknown as ITriggerFunctions;
	const delivery = new ExecutionStarter(
		context,
		{ clock, peer: { redact: redactor(['wst_secret']) } },
		{ maxBatch, maxQueued: 100 },
		(level, text) => lines.push(`${level}: ${text}`),
		{ remove: (id) => void forgotten.push(id) },
		{ ended: () => undefined, responded: () => undefined },
	);
	const received = (id: string): IncomingFrame => ({ frame: { id }, event: undefined, id, receivedAt: '' });
	return {
		delivery,
		clock,
		emitted,
		lines,
		forgotten,
		push: (...ids) => {
			for (const id of ids) delivery.queue.push(received(id), 1);
		},
	};
}

const END = {} as IRun;

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
	const { emitted, push, clock, forgotten } = scene(2);
	push('a', 'b', 'c');
	await turn();
	emitted[0]?.done.reject(new Error('database is locked'));
	await clock.advance(1_999);
	expect(emitted).toHaveLength(1);
	await clock.advance(1);
	emitted[1]?.done.resolve(END);
	await turn();
	expect(emitted.map(({ ids }) => ids)).toEqual([['a', 'b'], ['a', 'b'], ['c']]);
	expect(forgotten).toEqual([]);
});

test('gives up on an execution after three tries, logs it, forgets its IDs and starts the next batch', async () => {
	const { emitted, push, clock, forgotten, lines } = scene(2);
	push('a', 'b', 'c');
	for (let tries = 0; tries < 3; tries++) {
		await clock.advance(10_000);
		emitted.at(-1)?.done.reject(new Error('database is locked'));
	}
	await clock.advance(10_000);
	expect(emitted.map(({ ids }) => ids)).toEqual([...Array<string[]>(3).fill(['a', 'b']), ['c']]);
	expect(forgotten).toEqual(['a', 'b']);
	expect(lines.at(-1)).toContain('error: the execution for 2 frame(s) did not start');
	expect(lines.at(-1)).toContain('(IDs: a, b)');
});

test('does not restart an execution that was stopped', async () => {
	const { emitted, push, clock, forgotten, lines } = scene(2);
	push('a');
	await turn();
	emitted[0]?.done.reject(new TimeoutExecutionCancelledError('17'));
	await clock.advance(60_000);
	expect(emitted).toHaveLength(1);
	expect(forgotten).toEqual([]);
	expect(lines).toEqual([expect.stringContaining('did not finish')]);
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
