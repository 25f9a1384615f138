import { heldFile } from '../../../../nodes/shared/files/uploadFile';
import type { SubmittedTask } from '../../../../nodes/FlowTask/api/api';
import type { Prompt } from '../../../../nodes/FlowTask/workflow/prompt';
import type { StopReason } from '../../../../nodes/FlowTask/tasks/failures';
import {
	TaskSubmitter,
	type ImageInput,
	type ItemTask,
	type SubmitClient,
	type SubmitStart,
} from '../../../../nodes/FlowTask/tasks/submit';
import { fail, ok, type Failure, type Result } from '../../../../nodes/shared/errors/failure';
import type { EffectMemory } from '../../../../nodes/shared/effects/due';
import { HeldKey } from '../../../../nodes/shared/effects/heldKey';
import type { Ledger, LedgerAnswer, LedgerEntry } from '../../../../nodes/shared/effects/ledger';
import type { CallFailure } from '../../../../nodes/FlowTask/api/failures';
import { TestClock } from '../../testClock';
import { failureOf, valueOf } from '../../results';

const REFUSED: CallFailure = { kind: 'refused', message: 'Bad value', advice: 'Fix it', passing: false };
const UNREACHABLE: CallFailure = { kind: 'unreachable', message: 'No line', advice: '', passing: true };
const UNCLEAR: CallFailure = { kind: 'unclear', message: 'Line broke', advice: '', passing: true };
const CANCELLED: CallFailure = { kind: 'cancelled', message: 'Given up', advice: '', passing: false };
const TABLE_FULL: Failure = { kind: 'refused', message: 'The table is full', advice: 'Empty it' };
const BY = { executionId: '41', atMs: 1_234 };

type Submitted = Result<SubmittedTask, CallFailure>;
const MADE: Submitted = ok({ taskId: 't-1', promptToken: 'token' });

/** A scripted ledger and platform. `log` lists the calls they receive, in order. */
class Scene {
	readonly clock = new TestClock();
	readonly log: string[] = [];
	readonly entries: LedgerEntry[] = [];
	readonly prompts: Prompt[] = [];
	stopped: StopReason | undefined;
	/** The answer to each claim, counted from 1. */
	answerClaim: (number: number) => Promise<Result<LedgerAnswer>> | Result<LedgerAnswer> = (number) =>
		ok(this.mine(number));
	answerSubmit: (number: number) => Promise<Submitted> | Submitted = () => MADE;
	answerUpload: (number: number) => Result<string, CallFailure> = (number) => ok(`image-${number}`);
	private uploads = 0;

	readonly record: EffectMemory = {
		sent: (taskId, atMs) => this.log.push(`record submitted ${taskId} ${atMs - this.startMs}`),
		unclear: () => this.log.push('record unclear'),
		done: (end) => this.log.push(`record ${end}`),
	};
	private readonly startMs = this.clock.now();

	isFresh = true;
	readonly ledger: Ledger = {
		claim: async (entry) => {
			this.entries.push(entry);
			this.log.push(`claim ${entry.key}`);
			return await this.answerClaim(this.entries.length);
		},
		flush: async () => await Promise.resolve(ok(undefined)),
	};

	mine(number: number): LedgerAnswer {
		const note = (what: string): void => {
			this.log.push(`${number} ${what}`);
		};
		return {
			kind: 'mine',
			held: new HeldKey(
				ATTEMPT,
				{ isFresh: this.isFresh },
				{
					write: (state, reference) => note(`${state} ${reference ?? ''}`.trim()),
					giveBack: () => note('refused'),
					free: () => undefined,
				},
			),
		};
	}

	open(hasLedger = true): TaskSubmitter {
		const api: SubmitClient['api'] = {
			submit: async (workflowId, prompt, maySend) => {
				this.prompts.push(prompt);
				this.log.push(`submit ${workflowId}${maySend?.() === false ? ' too late' : ''}`);
				return await this.answerSubmit(this.prompts.length);
			},
			upload: async () => {
				this.log.push('upload');
				return await Promise.resolve(this.answerUpload(++this.uploads));
			},
		};
		return new TaskSubmitter({ api }, this.clock, () => this.stopped, hasLedger ? this.ledger : undefined);
	}
}

const ATTEMPT = {
	...{ holder: 'h', payloadHash: 'p', rowKeys: [] },
	by: { executionId: '7', atMs: 0 },
};

let scene: Scene;
beforeEach(() => {
	scene = new Scene();
});

function start(over: Partial<SubmitStart> = {}): SubmitStart {
	return {
		kind: 'submit',
		workflowId: 'wf',
		prompt: { '3': { inputs: { steps: 20 } } },
		images: [],
		idempotency: { key: 'order 1', payload: 'p' },
		...over,
	};
}

function image(bytes: string, nodeId = '10', parameter = 'image'): ImageInput {
	const file = heldFile({ bytes: Buffer.from(bytes), fileName: 'a.png', mimeType: 'image/png' });
	return { nodeId, parameter, load: async () => await Promise.resolve(ok(file)) };
}

async function submit(over: Partial<SubmitStart> = {}): Promise<Result<ItemTask>> {
	return await scene.open().submit(start(over), scene.record);
}

describe('without a key', () => {
	it('an ID of an earlier task is refused, unless both requests asked for the same', async () => {
		scene.answerSubmit = async () => await Promise.resolve(ok({ taskId: 'task 1', promptToken: undefined }));
		const submitter = scene.open(false);
		const ask = async (steps: number) =>
			await submitter.submit(start({ prompt: { '3': { inputs: { steps } } } }), scene.record);
		expect(await ask(20)).toMatchObject({ ok: true, value: { taskId: 'task 1' } });
		expect(await ask(20)).toMatchObject({ ok: true, value: { taskId: 'task 1' } });
		expect(failureOf(await ask(30))).toMatchObject({
			kind: 'unclear',
			message: expect.stringContaining(
				'ID is unknown. The platform answered with the ID of a task that this run had made before, task 1',
			),
			details: { mayExist: true, answeredId: 'task 1' },
		});
	});

	it.each<[string, Partial<SubmitStart>, boolean]>([
		['for the item', { idempotency: undefined }, true],
		['for any item', {}, false],
	])('%s, a submit asks no ledger', async (_name, over, hasLedger) => {
		const result = await scene.open(hasLedger).submit(start(over), scene.record);
		expect(scene.log).toEqual(['submit wf', 'record submitted t-1 0']);
		const { ticket, ...task } = valueOf(result);
		const submittedAtMs = scene.clock.now();
		const { prompt: sent } = start(over);
		expect(task).toEqual({ taskId: 't-1', promptToken: 'token', submittedAtMs, sent, reused: false });
		ticket.done('failed');
		expect(scene.log.slice(2)).toEqual(['record failed']);
	});

	it('a submit needs no record', async () => {
		expect(await scene.open().submit(start({ idempotency: undefined }), undefined)).toMatchObject({
			ok: true,
		});
		scene.answerSubmit = () => fail(UNCLEAR);
		expect(await scene.open().submit(start({ idempotency: undefined }), undefined)).toMatchObject({
			ok: false,
		});
	});

	it('a submit is never sent again', async () => {
		scene.answerSubmit = () => fail(CANCELLED);
		expect(failureOf(await submit({ idempotency: undefined }))).toEqual(CANCELLED);
		expect(scene.log).toEqual(['submit wf']);
	});
});

describe('a key', () => {
	it('is claimed, sent while the claim is valid, and recorded before the ledger is updated', async () => {
		const { reused, ticket } = valueOf(await submit());
		expect(scene.log).toEqual(['claim order 1', 'submit wf', 'record submitted t-1 0', '1 sent t-1']);
		expect(reused).toBe(false);
		ticket.done('succeeded');
		expect(scene.log.slice(4)).toEqual(['1 succeeded t-1', 'record succeeded']);
	});

	it.each([REFUSED, UNREACHABLE])(
		'is released if its submit fails without a task ($kind)',
		async (failure) => {
			scene.answerSubmit = () => fail(failure);
			expect(failureOf(await submit())).toEqual(failure);
			expect(scene.log).toEqual(['claim order 1', 'submit wf', '1 refused']);
		},
	);

	it('stays claimed if its submit was not answered, and the failure says that a task may exist', async () => {
		scene.answerSubmit = () => fail(UNCLEAR);
		expect(failureOf(await submit())).toMatchObject({
			kind: 'unclear',
			message: 'A task may have been created, but its ID is unknown. Line broke',
			details: { mayExist: true },
		});
		expect(scene.log).toEqual(['claim order 1', 'submit wf', 'record unclear', '1 unclear']);
	});

	it.each([1_234, undefined])('is not submitted if its task exists; created at %j', async (atMs) => {
		const told: string[] = [];
		const ended = (outcome: string): void => {
			told.push(outcome);
		};
		scene.answerClaim = () =>
			ok({ kind: 'exists', reference: 't-0', finished: false, by: { ...BY, atMs }, ended });
		const task = valueOf(await submit());
		const expected = { taskId: 't-0', promptToken: undefined, submittedAtMs: atMs, reused: true };
		expect(task).toMatchObject(expected);
		const notedMs = (atMs ?? scene.clock.now()) - scene.clock.now();
		expect(scene.log).toEqual(['claim order 1', `record submitted t-0 ${notedMs}`]);
		task.ticket.done('failed');
		expect(told).toEqual(['failed']);
	});

	it.each([
		['conflict', '41', 'execution 41 for other inputs'],
		['conflict', '', 'by another execution for other'],
		['unknown', '41', 'by execution 41, but its ID'],
		['unknown', '', 'by another execution, but its'],
	] as const)(
		'fails without a submit if the ledger says "%s" (of execution "%s")',
		async (kind, executionId, said) => {
			scene.answerClaim = () => ok({ kind, by: { ...BY, executionId } });
			const failure = failureOf(await submit());
			expect(failure.kind).toBe(kind === 'unknown' ? 'unclear' : 'badInput');
			expect(failure.message).toContain(said);
			expect(failure.details).toMatchObject({ idempotencyKey: 'order 1', executionId });
			expect(failure.details?.mayExist).toBe(kind === 'unknown' ? true : undefined);
			expect(failure.advice).toContain('Nothing was submitted');
			expect(scene.log).toEqual(['claim order 1']);
		},
	);

	it('is shown by its beginning, however long it is', async () => {
		scene.answerClaim = () => ok({ kind: 'conflict', by: BY });
		const { message } = failureOf(await submit({ idempotency: { key: 'k'.repeat(9_999), payload: '' } }));
		expect(message).toContain(`"${'k'.repeat(79)}…"`);
		expect(scene.entries[0]?.key).toHaveLength(9_999);
	});

	it("fails without a submit, with the table's failure, if it cannot be claimed", async () => {
		scene.answerClaim = () => fail(TABLE_FULL);
		expect(failureOf(await submit())).toEqual(TABLE_FULL);
		expect(scene.log).toEqual(['claim order 1']);
	});

	it('is claimed again if its claim expires before it can be sent', async () => {
		scene.answerSubmit = (number) => (number < 3 ? fail(CANCELLED) : MADE);
		expect(await submit()).toMatchObject({ ok: true, value: { taskId: 't-1' } });
		expect(scene.log).toEqual([
			...['claim order 1', 'submit wf', '1 refused'],
			...['claim order 1', 'submit wf', '2 refused'],
			...['claim order 1', 'submit wf', 'record submitted t-1 0', '3 sent t-1'],
		]);
		expect(new Set(scene.entries.map(({ payloadHash }) => payloadHash)).size).toBe(1);
	});

	it('may have been used by another run once its claim has expired', async () => {
		scene.answerSubmit = () => fail(CANCELLED);
		scene.answerClaim = (number) => (number === 1 ? ok(scene.mine(1)) : ok({ kind: 'unknown', by: BY }));
		expect(failureOf(await submit()).kind).toBe('unclear');
		expect(scene.log).toEqual(['claim order 1', 'submit wf', '1 refused', 'claim order 1']);
	});
});

describe('a stop', () => {
	it.each<StopReason>(['failure', 'maxFailures', 'timeout', 'cancelled'])(
		'(%s) before the turn of an item prevents claims, uploads and submits',
		async (reason) => {
			scene.stopped = reason;
			for (const over of [{}, { idempotency: undefined }, { images: [image('a')] }]) {
				expect(failureOf(await submit(over)).kind).toBe('notSubmitted');
			}
			expect(scene.log).toEqual([]);
		},
	);

	it('during a claim releases the claim', async () => {
		scene.answerClaim = (number) => {
			scene.stopped = 'failure';
			return ok(scene.mine(number));
		};
		expect(failureOf(await submit())).toMatchObject({
			kind: 'notSubmitted',
			message: expect.stringContaining('another item failed first'),
		});
		expect(scene.log).toEqual(['claim order 1', '1 refused']);
	});

	it('that prevents the request releases the claim once', async () => {
		scene.answerSubmit = () => {
			scene.stopped = 'cancelled';
			return fail(CANCELLED);
		};
		expect(failureOf(await submit()).kind).toBe('notSubmitted');
		expect(scene.log).toEqual(['claim order 1', 'submit wf', '1 refused']);
	});

	it('during a submit does not change the failure of a refused or unanswered one', async () => {
		for (const failure of [REFUSED, UNCLEAR]) {
			scene = new Scene();
			scene.answerSubmit = () => {
				scene.stopped = 'timeout';
				return fail(failure);
			};
			expect(failureOf(await submit()).kind).toBe(failure.kind);
		}
	});

	it('does not lose a task that was created meanwhile', async () => {
		scene.answerSubmit = () => {
			scene.stopped = 'cancelled';
			return MADE;
		};
		expect(await submit()).toMatchObject({ ok: true, value: { taskId: 't-1' } });
		expect(scene.log.at(-1)).toBe('1 sent t-1');
	});

	it('between two uploads prevents the second', async () => {
		scene.answerUpload = () => {
			scene.stopped = 'maxFailures';
			return ok('image-1');
		};
		expect(failureOf(await submit({ images: [image('a'), image('b', '11')] })).kind).toBe('notSubmitted');
		expect(scene.log).toEqual(['upload']);
	});
});

describe('images', () => {
	it('are uploaded before anything is claimed, and put into their inputs', async () => {
		const images = [image('a'), image('b', '3', 'mask'), image('a', '12')];
		await submit({ images });
		expect(scene.log.slice(0, 3)).toEqual(['upload', 'upload', 'claim order 1']);
		expect(scene.prompts).toEqual([
			{
				'3': { inputs: { steps: 20, mask: 'image-2' } },
				'10': { inputs: { image: 'image-1' } },
				'12': { inputs: { image: 'image-1' } },
			},
		]);
	});

	it('that cannot be read or uploaded prevent the claim', async () => {
		const unread: ImageInput = { ...image('a'), load: async () => await Promise.resolve(fail(TABLE_FULL)) };
		expect(failureOf(await submit({ images: [unread] }))).toEqual(TABLE_FULL);
		scene.answerUpload = () => fail(REFUSED);
		expect(failureOf(await submit({ images: [image('a')] }))).toEqual(REFUSED);
		// An unanswered upload creates no task.
		scene.answerUpload = () => fail(UNCLEAR);
		expect(failureOf(await submit({ images: [image('a')] }))).toEqual(UNCLEAR);
		expect(scene.log).toEqual(['upload', 'upload']);
	});
});

describe('the payload', () => {
	async function hashOf(over: Partial<SubmitStart>, firstImage = 1): Promise<string> {
		const fresh = new Scene();
		fresh.answerUpload = (number) => ok(`image-${number + firstImage}`);
		await fresh.open().submit(start(over), undefined);
		return fresh.entries[0]?.payloadHash ?? '';
	}
	const keyed = (key: string, payload: string) => ({ idempotency: { key, payload } });

	it('does not change with random seeds, upload IDs or the key', async () => {
		const images = [image('a')];
		const first = await hashOf({ images });
		expect(first).toMatch(/^[\w-]{43}$/);
		expect(await hashOf({ images }, 50)).toBe(first);
		expect(await hashOf({ images, prompt: { '3': { inputs: { steps: 20, seed: 99 } } } })).toBe(first);
		expect(await hashOf({ images, ...keyed('order 2', 'p') })).toBe(first);
	});

	it('changes with the inputs, the workflow, the images, and their positions', async () => {
		const hashes = await Promise.all([
			hashOf({}),
			hashOf(keyed('order 1', 'q')),
			hashOf({ workflowId: 'other' }),
			hashOf({ images: [image('a')] }),
			hashOf({ images: [image('b')] }),
			hashOf({ images: [image('a'), image('b', '11')] }),
			hashOf({ images: [image('b'), image('a', '11')] }),
			hashOf({ images: [image('a'), image('a', '11')] }),
			hashOf({ images: [image('a', '11')] }),
			hashOf({ images: [image('a', '10', 'mask')] }),
		]);
		expect(new Set(hashes).size).toBe(hashes.length);
	});
});

describe('a limit', () => {
	const full: Failure = { kind: 'notSubmitted', message: 'The limit is reached', advice: '' };
	const asked = async (over: Partial<SubmitStart>, admitted: Result<undefined>) => {
		const admit = async (): Promise<Result<undefined>> => {
			scene.log.push('admit');
			return await Promise.resolve(admitted);
		};
		return await scene.open().submit(start({ images: [image('a')], ...over }), scene.record, admit);
	};

	it('is asked before anything is uploaded, and what it forbids is not sent', async () => {
		expect(failureOf(await asked({ idempotency: undefined }, fail(full)))).toEqual(full);
		expect(scene.log).toEqual(['admit']);
	});

	it('counts only what a key makes: it is asked after the key, which it frees if it forbids the submit', async () => {
		expect(failureOf(await asked({}, fail(full)))).toEqual(full);
		expect(scene.log).toEqual(['upload', 'claim order 1', 'admit', '1 refused']);
	});

	it('is not asked for a task that exists', async () => {
		const known = { kind: 'exists', reference: 't-0', finished: true, by: BY, ended: jest.fn() } as const;
		scene.answerClaim = () => ok(known);
		expect(valueOf(await asked({}, fail(full)))).toMatchObject({ taskId: 't-0', reused: true });
		expect(scene.log).not.toContain('admit');
	});
});
