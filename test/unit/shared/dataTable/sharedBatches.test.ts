import { SharedBatches } from '../../../../nodes/shared/dataTable/sharedTable';
import { badInput, fail, ok, type Result } from '../../../../nodes/shared/errors/failure';

type Work = (items: readonly number[]) => Promise<Result<readonly number[]>>;

/** Work that ends when the test ends it. */
function heldWork() {
	const under: Array<{ items: readonly number[]; end: (isGood?: boolean) => void }> = [];
	const work: Work = async (items) =>
		await new Promise((resolve) => {
			const end = (isGood = true): void => resolve(isGood ? ok([...items]) : fail(badInput('no', '')));
			under.push({ items: [...items], end });
		});
	return { under, work };
}

const turn = async (): Promise<void> => await new Promise((resolve) => setImmediate(resolve));

it('runs the first call at once, and all calls that arrive meanwhile together in the next batch', async () => {
	const { under, work } = heldWork();
	const batches = new SharedBatches<number, Result<readonly number[]>>();
	const results = [[1], [2, 3], [4]].map(async (items) => await batches.add(items, work));
	expect(under.map(({ items }) => items)).toEqual([[1]]);
	under[0]!.end();
	await turn();
	expect(under.map(({ items }) => items)).toEqual([[1], [2, 3, 4]]);
	const late = batches.add([5], work);
	under[1]!.end();
	await turn();
	expect(under.map(({ items }) => items)).toEqual([[1], [2, 3, 4], [5]]);
	under[2]!.end();
	expect(await Promise.all([...results, late])).toEqual([ok([1]), ok([2, 3, 4]), ok([2, 3, 4]), ok([5])]);
	void batches.add([6], work);
	expect(under).toHaveLength(4);
});

it('repeats each call of a failed batch alone, whichever call opened the batch', async () => {
	const { under, work } = heldWork();
	const batches = new SharedBatches<number, Result<readonly number[]>>();
	const [alone, leader, joined] = [1, 2, 3].map(async (item) => await batches.add([item], work));
	under[0]!.end(false);
	await turn();
	under[1]!.end(false);
	await turn();
	expect(under.slice(2).map(({ items }) => items)).toEqual(expect.arrayContaining([[2], [3]]));
	for (const { end } of under.slice(2)) end();
	expect(await alone).toMatchObject({ ok: false });
	expect(await leader).toEqual(ok([2]));
	expect(await joined).toEqual(ok([3]));
	expect(under).toHaveLength(4);
});

describe('a batch that hangs', () => {
	beforeEach(() => void jest.useFakeTimers());
	afterEach(() => void jest.useRealTimers());

	it('does not block the calls that joined it: they run on their own', async () => {
		const { under, work } = heldWork();
		const batches = new SharedBatches<number, Result<readonly number[]>>();
		const [first, , joined] = [1, 2, 3].map(async (item) => await batches.add([item], work));
		under[0]!.end();
		await first;
		await jest.advanceTimersByTimeAsync(14_000);
		expect(under.map(({ items }) => items)).toEqual([[1], [2, 3]]);
		await jest.advanceTimersByTimeAsync(2_000);
		expect(under.map(({ items }) => items)).toEqual([[1], [2, 3], [3]]);
		under[2]!.end();
		expect(await joined).toEqual(ok([3]));
	});
});
