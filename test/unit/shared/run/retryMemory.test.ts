import type { IDataObject, IExecuteFunctions, INodeParameters } from 'n8n-workflow';

import {
	createRetryMemory,
	fingerprinter,
	openRetryMemory,
	requestFingerprints,
	type RetryMemory,
} from '../../../../nodes/shared/run/retryMemory';

type Context = Record<string, unknown>;

const open = (context: Context, run = 0): RetryMemory =>
	createRetryMemory(context, { node: 'x', run, part: 'turns' });

/** The context that n8n stores with the execution and passes to the next try. */
const stored = (context: Context): Context => JSON.parse(JSON.stringify(context)) as Context;

describe('a retry memory', () => {
	test('recalls what was kept for the same item in the same run, even through JSON', () => {
		const context: Context = { others: 1 };
		open(context).keep(3, 'f', { outcome: { a: 1 } });
		open(context).keep(4, 'f', { unclear: 'it broke' });
		const next = stored(context);
		expect(open(next).recall(3, 'f')).toMatchObject({ outcome: { a: 1 } });
		expect(open(next).recall(4, 'f')).toMatchObject({ unclear: 'it broke' });
		expect(open(next).recall(3, 'other')).toBeUndefined();
		expect(open(next).recall(5, 'f')).toBeUndefined();
		expect(open(next, 1).recall(3, 'f')).toBeUndefined();
		expect([open(next).isEdited(3, 'other'), open(next).isEdited(3, 'f')]).toEqual([true, false]);
		expect(open(next).isEdited(5, 'f')).toBe(false);
	});

	test.each([undefined, null, 7, [], {}, 'x'])('recalls nothing from %j', (entry) => {
		expect(open({ x: { 0: { turns: { 3: entry } } } }).recall(3, 'f')).toBeUndefined();
		expect(open({ x: { 0: { turns: entry } } }).recall(3, 'f')).toBeUndefined();
		expect(open({ x: entry }).recall(3, 'f')).toBeUndefined();
	});

	test('forgets an item, or all items of its run', () => {
		const context: Context = {};
		for (const item of [0, 1, 2]) open(context).keep(item, 'f', { item });
		open(context, 1).keep(0, 'f', { item: 0 });
		open(context).forget(1, 'f');
		expect([0, 1, 2].map((item) => open(context).recall(item, 'f')?.item)).toEqual([0, undefined, 2]);
		open(context).clear();
		expect([0, 1, 2].map((item) => open(context).recall(item, 'f'))).toEqual(Array(3).fill(undefined));
		expect(open(context, 1).recall(0, 'f')).toMatchObject({ item: 0 });
	});

	test('of a tool keeps nothing, because simultaneous calls have the same run index', () => {
		const context: Context = {};
		const opened = (type: string): RetryMemory => {
			const functions: Partial<IExecuteFunctions> = {
				getNode: () => ({ ...NODE, type }),
				getContext: () => context,
				getWorkflowDataProxy: () =>
					({ $runIndex: 0 }) as unknown as ReturnType<IExecuteFunctions['getWorkflowDataProxy']>,
			};
			return openRetryMemory(functions as IExecuteFunctions, 'x', 'turns');
		};
		opened('a.bTool').keep(0, 'f', {});
		expect(context).toEqual({});
		expect(opened('a.bTool').recall(0, 'f')).toBeUndefined();
		opened('a.b').keep(0, 'f', {});
		expect(opened('a.b').recall(0, 'f')).toEqual({ fingerprint: 'f' });
	});
});

const NODE = {
	...{ id: 'i', name: 'n', type: 'a.b', typeVersion: 1, parameters: {} },
	position: [0, 0] as [number, number],
};

describe('the fingerprint of a request', () => {
	const fingerprint = (parameters: INodeParameters, json: IDataObject = { a: 1 }): string =>
		requestFingerprints({ getNode: () => ({ ...NODE, parameters }), getInputData: () => [{ json }] }, [
			'simplify',
			'timeout',
		])(0);
	const asked = { text: 'x', options: { seed: 1, timeout: 5 }, simplify: true };

	test('changes with the item, the fields and the options that are part of it', () => {
		const others = [
			fingerprint(asked, { a: 2 }),
			fingerprint({ ...asked, text: 'y' }),
			fingerprint({ ...asked, options: { seed: 2 } }),
			fingerprint({ ...asked, options: { seed: 1, unknown: 1 } }),
		];
		expect(new Set([fingerprint(asked), ...others]).size).toBe(5);
	});

	test('does not change with other fields and options', () => {
		expect(fingerprint({ ...asked, simplify: false })).toBe(fingerprint(asked));
		expect(fingerprint({ ...asked, options: { seed: 1 } })).toBe(fingerprint(asked));
		expect(fingerprint({ text: 'x' })).toBe(fingerprint({ text: 'x', options: { timeout: 9 } }));
	});
});

describe('a fingerprint', () => {
	it('is the same for equal values, and short enough to be kept for each item', () => {
		const parameters = { prompt: '={{ $now }}' };
		expect(fingerprinter(parameters)({ a: 1 })).toBe(fingerprinter({ ...parameters })({ a: 1 }));
		expect(fingerprinter(parameters)('x'.repeat(1_000_000))).toMatch(/^[\w-]{22}$/);
		expect(fingerprinter(undefined)(undefined)).toMatch(/^[\w-]{22}$/);
	});

	it('is also made of items that JSON cannot express', () => {
		let deep: unknown = 1;
		for (let level = 0; level < 20_000; level++) deep = { a: deep };
		const circle: Record<string, unknown> = {};
		circle.self = circle;
		for (const item of [deep, circle, { big: 1n }]) {
			expect(fingerprinter('node')(item)).toMatch(/^[\w-]{22}$/);
			expect(fingerprinter('node')(item)).not.toBe(fingerprinter('node')({}));
		}
		expect(fingerprinter(deep)({})).toMatch(/^[\w-]{22}$/);
	});

	it('differs for another node, another item and another order of a list', () => {
		const items = [undefined, {}, [], '', '{}', 0, { a: 1 }, { a: '1' }, { a: [1, 2] }, { a: [2, 1] }];
		const prints = [{}, { b: 1 }, 'x', '[]'].flatMap((node) => items.map(fingerprinter(node)));
		expect(new Set(prints).size).toBe(prints.length);
	});
});
