import fc from 'fast-check';

import { createTaskMemory } from '../../../../nodes/FlowTask/tasks/memory';
import { hostileJson } from '../hostileJson';

type Context = Record<string, unknown>;

/** The context that n8n stores with the execution and passes to the next try. */
function stored(context: Context): Context {
	const copy: unknown = JSON.parse(JSON.stringify(context));
	if (typeof copy !== 'object' || copy === null) throw new Error('n8n stores objects');
	return { ...copy };
}

describe('a task memory', () => {
	it('recalls a task in the next try, for the same item only', () => {
		const context: Context = { others: 1 };
		createTaskMemory(context, 0).record(3, 'f', { '3/seed': 7 }).sent?.('t-1', 1_000);
		const next = createTaskMemory(stored(context), 0);
		const task = { kind: 'task', taskId: 't-1', submittedAtMs: 1_000, seeds: { '3/seed': 7 } };
		expect(next.recall(3, 'f')).toEqual(task);
		expect(next.recall(3, 'changed')).toEqual({ kind: 'edited' });
		expect(next.recall(2, 'f')).toEqual({ kind: 'new' });
		expect(next.recall(3, 'f')).toEqual(task);
		expect(context.others).toBe(1);
	});

	it('belongs to one run of the node, so that a loop creates new tasks', () => {
		const context: Context = {};
		const first = createTaskMemory(context, 0);
		const second = createTaskMemory(context, 1);
		first.record(0, 'f', {}).sent?.('t-1', 1);
		first.images.set('d', 'image-1');
		expect(second.recall(0, 'f')).toEqual({ kind: 'new' });
		expect(second.images.get('d')).toBeUndefined();
		second.record(0, 'f', {}).sent?.('t-2', 2);
		expect(first.recall(0, 'f')).toMatchObject({ taskId: 't-1' });
		expect(second.recall(0, 'f')).toMatchObject({ taskId: 't-2' });
	});

	it('distinguishes unclear items from new and from edited ones', () => {
		const context: Context = {};
		createTaskMemory(context, 0).record(0, 'f', {}).unclear();
		const next = createTaskMemory(stored(context), 0);
		expect(next.recall(0, 'f')).toEqual({ kind: 'unclear' });
		expect(next.recall(0, 'g')).toEqual({ kind: 'edited' });
		next.record(0, 'f', {}).sent?.('t-1', 1);
		expect(next.recall(0, 'f')).toMatchObject({ kind: 'task', taskId: 't-1' });
	});

	it('keeps the ID in an unclear answer without treating it as a task', () => {
		const context: Context = {};
		createTaskMemory(context, 0).record(0, 'f', {}).unclear('t-9');
		expect(createTaskMemory(stored(context), 0).recall(0, 'f')).toEqual({ kind: 'unclear', taskId: 't-9' });
	});

	it('forgets a failed task, but no other', () => {
		const context: Context = {};
		const memory = createTaskMemory(context, 0);
		memory.record(0, 'f', {}).sent?.('t-1', 1);
		memory.record(1, 'f', {}).sent?.('t-2', 1);
		memory.record(0, 'f', {}).done('failed');
		memory.record(7, 'f', {}).done('failed');
		const next = createTaskMemory(stored(context), 0);
		expect(next.recall(0, 'f')).toEqual({ kind: 'new' });
		expect(next.recall(1, 'f')).toMatchObject({ taskId: 't-2' });
	});

	it('recalls images by their digests, but no prototype properties', () => {
		const context: Context = {};
		createTaskMemory(context, 0).images.set('digest', 'image-1');
		const { images } = createTaskMemory(stored(context), 0);
		expect(images.get('digest')).toBe('image-1');
		for (const name of ['constructor', '__proto__', 'toString']) expect(images.get(name)).toBeUndefined();
	});

	it.each<[string, unknown, object]>([
		['text', 'x', { kind: 'new' }],
		['null', null, { kind: 'new' }],
		['a list', [], { kind: 'new' }],
		['no fingerprint', { taskId: 't' }, { kind: 'edited' }],
		['a task ID that is a number', { fingerprint: 'f', taskId: 7 }, { kind: 'new' }],
		['unclear as text', { fingerprint: 'f', unclear: 'true' }, { kind: 'new' }],
		[
			'neither a time nor seeds',
			{ fingerprint: 'f', taskId: 't' },
			{ kind: 'task', taskId: 't', submittedAtMs: undefined, seeds: {} },
		],
		[
			'seeds of any kind',
			{ fingerprint: 'f', taskId: 't', atMs: '1', seeds: { a: 1, b: '2', c: null } },
			{ kind: 'task', taskId: 't', submittedAtMs: undefined, seeds: {} },
		],
	])('tolerates an entry with %s', (_name, entry, expected) => {
		const context = { flowTaskRuns: { '0': { tasks: { '0': entry } } } };
		expect(createTaskMemory(context, 0).recall(0, 'f')).toEqual(expected);
	});

	it('tolerates and replaces any other value in its place', () => {
		const place = fc.oneof(
			hostileJson(),
			fc.record({ '0': hostileJson() }),
			fc.record({ '0': fc.record({ tasks: hostileJson(), images: hostileJson() }) }),
		);
		fc.assert(
			fc.property(place, (flowTaskRuns) => {
				const context: Context = { flowTaskRuns };
				const memory = createTaskMemory(context, 0);
				expect(['new', 'edited', 'unclear', 'task']).toContain(memory.recall(0, 'f').kind);
				memory.images.set('d', 'image-1');
				memory.record(0, 'f', {}).sent?.('t-1', 1);
				const next = createTaskMemory(stored(context), 0);
				expect(next.recall(0, 'f')).toMatchObject({ kind: 'task', taskId: 't-1' });
				expect(next.images.get('d')).toBe('image-1');
			}),
			{ numRuns: 500 },
		);
	});
});

describe('the memory of a tool', () => {
	it.each(['succeeded', 'failed'] as const)(
		'allows a new task for the same call after one that has %s',
		(end) => {
			const context: Context = {};
			const first = createTaskMemory(context, 'tool');
			first.record(0, 'f', {}).sent?.('t-1', 1);
			first.release();
			const second = createTaskMemory(context, 'tool');
			second.recall(0, 'f');
			second.record(0, 'f', {}).done(end);
			second.release();
			expect(createTaskMemory(context, 'tool').recall(0, 'f')).toEqual({ kind: 'new' });
		},
	);

	it('distinguishes equal calls at the same time', () => {
		const context: Context = {};
		const [first, second] = [createTaskMemory(context, 'tool'), createTaskMemory(context, 'tool')];
		first.record(0, 'f', {}).sent?.('t-1', 1);
		expect(second.recall(0, 'f')).toEqual({ kind: 'new' });
		second.record(0, 'f', {}).sent?.('t-2', 2);
		first.record(0, 'f', {}).done('succeeded');
		first.release();
		second.release();
		expect(createTaskMemory(context, 'tool').recall(0, 'f')).toMatchObject({ taskId: 't-2' });
	});

	it('recalls an unclear submit, so that it is not repeated', () => {
		const context: Context = {};
		const first = createTaskMemory(context, 'tool');
		first.record(0, 'f', {}).unclear();
		first.release();
		expect(createTaskMemory(context, 'tool').recall(0, 'f')).toEqual({ kind: 'unclear' });
	});
});

test('an existing task is remembered without the seeds of this run, which were not sent', () => {
	const memory = createTaskMemory({}, 0);
	memory.record(0, 'print', { '3.seed': 7 }).sent?.('t', 1, true);
	expect(memory.recall(0, 'print')).toEqual({ kind: 'task', taskId: 't', submittedAtMs: 1, seeds: {} });
	memory.record(0, 'print', { '3.seed': 7 }).sent?.('t', 1);
	expect(memory.recall(0, 'print')).toMatchObject({ seeds: { '3.seed': 7 } });
});
