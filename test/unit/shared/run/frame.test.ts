import type { IExecuteFunctions } from 'n8n-workflow';

import { fail, ok, type Failure, type Result } from '../../../../nodes/shared/errors/failure';
import { inRunFrame, overBudget, type RunFrame } from '../../../../nodes/shared/run/frame';

const REFUSED: Failure = { kind: 'credential', message: 'No key', advice: 'Enter one.' };
const NOT_WRITTEN: Failure = { kind: 'refused', message: 'The table is full', advice: '' };

interface Given {
	items?: number;
	goesOn?: boolean;
	cancelSignal?: AbortSignal;
}

function contextOf({ items = 1, goesOn = false, cancelSignal }: Given = {}) {
	const hints: string[] = [];
	const context = {
		addExecutionHints: ({ message }: { message: string }) => hints.push(message),
		continueOnFail: () => goesOn,
		getExecutionCancelSignal: () => cancelSignal,
		getInputData: () => Array.from({ length: items }, () => ({ json: {} })),
		getNode: () => ({ name: 'Node', type: 'node' }),
	} as unknown as IExecuteFunctions;
	return { context, hints };
}

const CLIENTS = { of: (): Result<string> => ok('an account') };

/** Runs with nothing opened but the frame, and returns the frame. */
async function frameOf(context: IExecuteFunctions, work: (frame: RunFrame) => unknown): Promise<RunFrame> {
	let frame: RunFrame | undefined;
	await inRunFrame(
		context,
		async (given) => ok({ ...given, clients: CLIENTS }),
		async (run) => {
			frame = run;
			await work(run);
			return [[]];
		},
	);
	if (!frame) throw new Error('Nothing was opened');
	return frame;
}

it('opens nothing if there are no items', async () => {
	const open = jest.fn();
	expect(await inRunFrame(contextOf({ items: 0 }).context, open, async () => [])).toEqual([[]]);
	expect(open).not.toHaveBeenCalled();
});

it.each(['returns', 'throws'])('aborts its signal when the work %s', async (how) => {
	let signal: AbortSignal | undefined;
	const run = frameOf(contextOf().context, (frame) => {
		({ signal } = frame);
		expect(signal.aborted).toBe(false);
		if (how === 'throws') throw new Error('Broken');
	});
	await run.catch(() => undefined);
	expect(signal?.aborted).toBe(true);
});

it.each(['before', 'during'])('ends with an execution that is cancelled %s the run', async (when) => {
	const cancelling = new AbortController();
	if (when === 'before') cancelling.abort();
	await frameOf(contextOf({ cancelSignal: cancelling.signal }).context, ({ signal, cancelled }) => {
		cancelling.abort();
		expect([signal.aborted, cancelled()]).toEqual([true, true]);
	});
});

it('is not cancelled if it ended early by itself', async () => {
	const { cancelled, ending } = await frameOf(contextOf().context, (frame) => frame.ending.abort());
	expect([ending.signal.aborted, cancelled()]).toEqual([true, false]);
});

it.each([{ goesOn: false }, { goesOn: true }])(
	'fails as a whole if it cannot be opened: %j',
	async (given) => {
		const run = inRunFrame(
			contextOf({ ...given, items: 2 }).context,
			async () => fail(REFUSED),
			async () => [],
		);
		if (!given.goesOn) {
			await expect(run).rejects.toThrow('No key');
			return;
		}
		expect(await run).toMatchObject([[{ json: { error: 'No key' } }, { json: { error: 'No key' } }]]);
	},
);

it.each(['returns', 'throws'])('waits for the last writes when the work %s', async (how) => {
	const { context, hints } = contextOf();
	const written: string[] = [];
	const write = async (name: string, result: Result<undefined>): Promise<Result<undefined>> => {
		await new Promise((resolve) => {
			setTimeout(resolve, 5);
		});
		written.push(name);
		return result;
	};
	const run = frameOf(context, ({ writeLast }) => {
		writeLast(async () => await write('a', ok(undefined)), 'a is missing');
		for (const name of ['b', 'c'])
			writeLast(async () => await write(name, fail(NOT_WRITTEN)), 'the rest is missing');
		if (how === 'throws') throw new Error('Broken');
	});
	await run.catch(() => undefined);
	expect(written).toEqual(['a', 'b', 'c']);
	expect(hints).toEqual(['the rest is missing']);
});

it('does not wait long for a last write after a cancellation', async () => {
	const cancelling = new AbortController();
	const { context, hints } = contextOf({ cancelSignal: cancelling.signal });
	jest.useFakeTimers();
	try {
		let hasEnded = false;
		const run = frameOf(context, ({ writeLast }) => {
			writeLast(async () => await new Promise(() => undefined), 'is missing');
			cancelling.abort();
		}).then(() => {
			hasEnded = true;
		});
		await jest.advanceTimersByTimeAsync(999);
		expect(hasEnded).toBe(true);
		await run;
	} finally {
		jest.useRealTimers();
	}
	expect(hints).toEqual([]);
});

it.each([
	[2, 0, undefined],
	[2, 2, undefined],
	[3, 2, "This run would submit 3 tasks, more than the 2 that 'Max Tasks' allows"],
])('returns for %d with a limit of %d the message: %s', (count, most, message) => {
	expect(overBudget(count, most, `submit ${count} tasks`, 'Max Tasks')?.message).toBe(message);
});
