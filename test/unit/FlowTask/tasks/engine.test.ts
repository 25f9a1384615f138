import fc from 'fast-check';

import {
	runTasks,
	type Delivery,
	type EngineRun,
	type EngineSettings,
	type TaskJob,
	type TaskOutcome,
} from '../../../../nodes/FlowTask/tasks/engine';
import type { Json } from '../../../../nodes/shared/text/json';
import type { TaskObserver } from '../../../../nodes/FlowTask/tasks/observer';
import type { ImageInput } from '../../../../nodes/FlowTask/tasks/submit';
import { ok, fail } from '../../../../nodes/shared/errors/failure';
import { redactor } from '../../../../nodes/shared/text/redact';
import type { CallFailure } from '../../../../nodes/FlowTask/api/failures';
import type { Download, DownloadFailure, DownloadRequest } from '../../../../nodes/shared/files/download';
import { heldFile } from '../../../../nodes/shared/files/uploadFile';
import { TestClock, turn } from '../../testClock';
import { course, failing, ScriptedPlatform, SUCCEEDED } from '../platform.script';
import { LINKS_ONLY } from '../taskInfo.builder';

const MINUTE = 60_000;
const REFUSED: CallFailure = { kind: 'refused', message: 'Bad value', advice: 'Fix it', passing: false };
const UNCLEAR: CallFailure = { kind: 'unclear', message: 'Line broke', advice: '', passing: true };
const CANCELLED: CallFailure = { kind: 'cancelled', message: 'Stopped', advice: '', passing: false };
const GONE: DownloadFailure = { kind: 'file', message: 'HTTP 403', advice: 'Old', expired: true };
const BROKEN: DownloadFailure = { kind: 'file', message: 'broken', advice: 'Later', expired: false };

function scene() {
	const clock = new TestClock();
	const platform = new ScriptedPlatform(clock);
	const client = { api: platform, mayFetch: () => true };
	const ending = new AbortController();
	const downloads: DownloadRequest[] = [];
	const download: Download = async (request) => {
		downloads.push(request);
		if (made.downloadTakesMs > 0) await clock.sleep(made.downloadTakesMs, ending.signal);
		const failure = made.downloadFails(request);
		if (failure) return fail(failure);
		return ok({ binary: { data: request.url, mimeType: 'image/png' }, bytes: 1 });
	};
	const made = {
		clock,
		platform,
		ending,
		downloads,
		downloadFails: (_request: DownloadRequest): DownloadFailure | undefined => undefined,
		downloadTakesMs: 0,
		run: async (
			jobs: readonly TaskJob[],
			settings: Partial<EngineSettings> = {},
			more: Partial<EngineRun> = {},
		) =>
			await runTasks(
				jobs,
				{
					goal: 'finished',
					maxInFlight: 100,
					maxFailures: 0,
					stopAtFailure: false,
					lateIsFailure: true,
					deadlineMs: clock.now() + 60 * MINUTE,
					noProgressMs: 0,
					urlExpireSeconds: 3_600,
					...settings,
				},
				{ client, clock, redact: redactor([]), download, ending, ...more },
			),
	};
	return made;
}

function image(bytes: string, nodeId = '10'): ImageInput {
	const file = heldFile({ bytes: Buffer.from(bytes), fileName: 'a.png', mimeType: 'image/png' });
	return { nodeId, parameter: 'image', load: async () => ok(file) };
}

function submitJob(
	itemIndex: number,
	more: Partial<TaskJob> = {},
	images: readonly ImageInput[] = [],
): TaskJob {
	return {
		itemIndex,
		facts: {},
		delivery: { ...LINKS_ONLY, form: 'filePerItem' },
		start: { kind: 'submit', workflowId: 'w', prompt: { '3': { inputs: { seed: itemIndex } } }, images },
		...more,
	};
}

function watchJob(itemIndex: number, taskId: string, submittedAtMs?: number): TaskJob {
	return { itemIndex, facts: {}, delivery: LINKS_ONLY, start: { kind: 'watch', taskId, submittedAtMs } };
}

function submitJobs(count: number): TaskJob[] {
	return Array.from({ length: count }, (_, index) => submitJob(index));
}

/** The kind of each outcome, in order. */
function kinds(outcomes: readonly TaskOutcome[]): string[] {
	return outcomes.map(({ failure }) => failure?.kind ?? 'done');
}

const FILES = (taskId: string): { files: Record<string, string[]>; final_files: string[] } => ({
	files: { '9': [`https://h/${taskId}/a.png?sig=1`, `https://h/${taskId}/b.png?sig=1`] },
	final_files: [`https://h/${taskId}/a.png?sig=1`, `https://h/${taskId}/b.png?sig=1`],
});

describe('runTasks: the prompt token', () => {
	const withToken = (taskId: string): ReturnType<typeof FILES> => ({
		files: { '9': [`https://h/${taskId}/a.png?authorization=token-1&x=1`] },
		final_files: [`https://h/${taskId}/a.png?authorization=token-1&x=1`],
	});

	it('leaves a text among the files of a task unchanged', async () => {
		const { clock, platform, downloads, run } = scene();
		platform.filesOf = (taskId) => ({
			files: { '9': [`https://h/${taskId}/a.png`], '12': ['a cat on a mat, photo'] },
			final_files: [`https://h/${taskId}/a.png`, 'a cat on a mat, photo'],
		});
		const [result] = await clock.run(run([submitJob(0)]));
		expect(downloads.map(({ url }) => url)).toEqual([expect.stringMatching(/a\.png$/)]);
		expect(result).toMatchObject({ failure: undefined, files: [{ link: { nodeId: '9' } }] });
	});

	it('downloads with the original link, and shows it without the token', async () => {
		const { clock, platform, downloads, run } = scene();
		platform.filesOf = withToken;
		const [outcome] = await clock.run(run([submitJob(0)]));
		expect(downloads.map(({ url }) => url)).toEqual(['https://h/t-1/a.png?authorization=token-1&x=1']);
		expect(outcome?.files[0]?.link).toEqual({
			nodeId: '9',
			index: 0,
			url: 'https://h/t-1/a.png?authorization=[hidden]&x=1',
		});
		expect(JSON.stringify(outcome?.snapshot)).not.toContain('token-1');
		expect(outcome?.snapshot?.info?.finalFiles).toEqual([outcome?.files[0]?.link.url]);
	});

	it('also shows the link without the token, and without the key, if the download fails', async () => {
		const made = scene();
		made.platform.filesOf = () => ({
			final_files: ['https://h/a.png?authorization=token-1&k=0123456789&x=1'],
		});
		made.downloadFails = () => BROKEN;
		const redact = redactor(['0123456789']);
		const [outcome] = await made.clock.run(made.run([submitJob(0)], {}, { redact }));
		expect(outcome?.failure?.details?.urls).toEqual([
			'https://h/a.png?authorization=[hidden]&k=[hidden]&x=1',
		]);
	});
});

describe('runTasks: a batch', () => {
	it('does nothing without jobs, and leaves no timer behind', async () => {
		const { clock, run } = scene();
		await expect(clock.run(run([]))).resolves.toEqual([]);
		await turn();
		expect(clock.sleepers).toBe(0);
	});

	it('returns outcomes in the order of the jobs, whatever the order in which tasks end', async () => {
		await fc.assert(
			fc.asyncProperty(
				fc.array(fc.tuple(fc.integer({ min: 0, max: 40_000 }), fc.constantFrom(3, 4, 5)), { maxLength: 25 }),
				fc.integer({ min: 1, max: 8 }),
				async (tasks, maxInFlight) => {
					const { clock, platform, run } = scene();
					const taskOf = new Map<number, string>();
					platform.courseOf = (number) => {
						const [takesMs, status] = tasks[
							Number(platform.submits[number - 1]?.prompt['3']?.inputs.seed)
						] ?? [0, 3];
						return course(takesMs, { status });
					};
					const jobs = tasks.map((_, index) =>
						submitJob(index, {
							delivery: LINKS_ONLY,
							record: {
								sent: (taskId) => taskOf.set(index, taskId),
								unclear: jest.fn(),
								done: jest.fn(),
							},
						}),
					);
					const outcomes = await clock.run(run(jobs, { maxInFlight }));
					expect(outcomes.map(({ itemIndex }) => itemIndex)).toEqual(tasks.map((_, index) => index));
					expect(outcomes.map(({ taskId }) => taskId)).toEqual(tasks.map((_, index) => taskOf.get(index)));
					expect(kinds(outcomes)).toEqual(
						tasks.map(([, status]) => ({ 3: 'done', 4: 'taskFailed', 5: 'taskDenied' })[status]),
					);
					expect(platform.mostAtOnce).toBeLessThanOrEqual(maxInFlight);
					expect(clock.sleepers).toBe(0);
				},
			),
			{ numRuns: 40 },
		);
	});

	it('keeps exactly as many tasks under way as allowed', async () => {
		const { clock, platform, run } = scene();
		platform.courseOf = () => course(5_000);
		await clock.run(run(submitJobs(20), { maxInFlight: 4 }));
		expect(platform.mostAtOnce).toBe(4);
		expect(platform.submits).toHaveLength(20);
	});

	it('submits without polling if nothing else is wanted', async () => {
		const { clock, platform, run } = scene();
		const outcomes = await clock.run(run(submitJobs(3), { goal: 'submitted' }));
		expect(outcomes).toMatchObject([{ taskId: 't-1' }, { taskId: 't-2' }, { taskId: 't-3' }]);
		expect(outcomes[0]?.snapshot).toEqual({ sinceMs: clock.now(), endedAtMs: clock.now() });
		expect(platform.infoCalls).toEqual([]);
	});

	it('watches an existing task without submitting anything', async () => {
		const { clock, platform, run } = scene();
		platform.add('old', course(2_000));
		const job = watchJob(0, 'old');
		const outcomes = await clock.run(run([job, { ...job, itemIndex: 1 }]));
		expect(outcomes).toMatchObject([
			{ itemIndex: 0, taskId: 'old', failure: undefined },
			{ itemIndex: 1, taskId: 'old', failure: undefined },
		]);
		expect(platform.submits).toEqual([]);
	});

	it('waits for a task of an earlier try that the index does not show for a minute, however old it is', async () => {
		const { clock, platform, run } = scene();
		platform.add('own', (ageMs) => (ageMs < MINUTE ? undefined : SUCCEEDED));
		const outcomes = await clock.run(run([watchJob(0, 'own', clock.wallNow() - 60 * MINUTE)]));
		expect(outcomes).toMatchObject([{ taskId: 'own', failure: undefined }]);
	});

	it('records each submit at once, and failed tasks', async () => {
		const { clock, platform, run } = scene();
		const notes: string[] = [];
		platform.submitFails = (number) => [undefined, undefined, undefined, UNCLEAR, REFUSED][number - 1];
		platform.courseOf = (number) => course(1_000, { status: number + 2 });
		const jobs = [0, 1, 2, 3, 4].map((index) =>
			submitJob(index, {
				record: {
					sent: (taskId) => notes.push(`${index} ${taskId} @${clock.elapsedMs}`),
					unclear: () => notes.push(`${index} unclear`),
					done: (end) => notes.push(`${index} ${end}`),
				},
			}),
		);
		await clock.run(run(jobs));
		const expected = '0 succeeded, 0 t-1 @0, 1 failed, 1 t-2 @0, 2 failed, 2 t-3 @0, 3 unclear';
		expect(notes.sort().join(', ')).toBe(expected);
	});
});

describe('runTasks: failures', () => {
	it('stops submitting after the maximum number of failures, and finishes running tasks', async () => {
		const { clock, platform, run } = scene();
		platform.courseOf = (number) => course(number === 3 ? 60_000 : 1_000, { status: number <= 2 ? 4 : 3 });
		const outcomes = await clock.run(run(submitJobs(10), { maxInFlight: 3, maxFailures: 2 }));
		expect(kinds(outcomes).slice(0, 3)).toEqual(['taskFailed', 'taskFailed', 'done']);
		const unsubmitted = kinds(outcomes).filter((kind) => kind === 'notSubmitted').length;
		expect(unsubmitted).toBe(10 - platform.submits.length);
		expect(unsubmitted).toBeGreaterThanOrEqual(6);
		expect(outcomes.at(-1)?.failure?.message).toContain('Max Failures');
	});

	it('ends everything at the first failure, without losing the ID of a submit under way', async () => {
		const { clock, platform, run } = scene();
		platform.submitTakesMs = () => 3_000;
		platform.submitFails = (number) => (number === 1 ? REFUSED : undefined);
		platform.courseOf = () => course(10 * MINUTE);
		const outcomes = await clock.run(run(submitJobs(8), { maxInFlight: 4, stopAtFailure: true }));
		expect(kinds(outcomes)).toEqual([
			'refused',
			...Array(3).fill('cancelled'),
			...Array(4).fill('notSubmitted'),
		]);
		expect(outcomes.slice(1, 4).map(({ taskId }) => taskId)).toEqual(['t-2', 't-3', 't-4']);
		expect(platform.submits).toHaveLength(4);
		expect(clock.elapsedMs).toBe(3_000);
		expect(clock.sleepers).toBe(0);
	});

	it('returns every known ID even if a task fails while others are submitted', async () => {
		await fc.assert(
			fc.asyncProperty(
				fc.array(fc.tuple(fc.nat(5_000), fc.constantFrom(3, 3, 3, 4)), { minLength: 1, maxLength: 20 }),
				fc.nat(3_000),
				fc.integer({ min: 1, max: 6 }),
				async (tasks, submitTakesMs, maxInFlight) => {
					const { clock, platform, run } = scene();
					platform.submitTakesMs = () => submitTakesMs;
					platform.courseOf = (number) => {
						const [takesMs, status] = tasks[number - 1] ?? [0, 3];
						return course(takesMs, { status });
					};
					const outcomes = await clock.run(
						run(submitJobs(tasks.length), { maxInFlight, stopAtFailure: true }),
					);
					const ids = outcomes.flatMap(({ taskId }) => taskId ?? []);
					expect(ids.sort()).toEqual(platform.submits.map((_, index) => `t-${index + 1}`).sort());
					expect(clock.sleepers).toBe(0);
				},
			),
			{ numRuns: 60 },
		);
	});

	it('reports an item as not submitted if the stop prevented its submit', async () => {
		const { clock, platform, run } = scene();
		platform.submitTakesMs = (number) => number * 1_000;
		platform.submitFails = (number) => (number === 1 ? REFUSED : CANCELLED);
		const outcomes = await clock.run(run(submitJobs(2), { stopAtFailure: true }));
		expect(kinds(outcomes)).toEqual(['refused', 'notSubmitted']);
		expect(outcomes[1]?.failure?.message).toContain('another item failed first');
	});

	it('reports an item as not submitted because of the timeout if its submit came too late', async () => {
		const { clock, platform, run } = scene();
		platform.submitTakesMs = () => 20_000;
		platform.submitFails = () => CANCELLED;
		const outcomes = await clock.run(run(submitJobs(1), { deadlineMs: clock.now() + 10_000 }));
		expect(kinds(outcomes)).toEqual(['notSubmitted']);
		expect(outcomes[0]?.failure?.message).toContain("'Timeout (Minutes)'");
	});

	it('submits nothing after the timeout', async () => {
		const { clock, platform, run } = scene();
		platform.courseOf = () => course(25_000);
		const outcomes = await clock.run(
			run(submitJobs(4), { maxInFlight: 1, deadlineMs: clock.now() + 30_000 }),
		);
		expect(kinds(outcomes)).toEqual(['done', 'timedOut', 'notSubmitted', 'notSubmitted']);
		expect(platform.submits).toHaveLength(2);
		expect(outcomes[1]?.taskId).toBe('t-2');
	});

	it.each([
		[true, 2],
		[false, 3],
	])('counts a stalled task as a failure: %s', async (lateIsFailure, submits) => {
		const { clock, platform, run } = scene();
		platform.courseOf = (number) => (number <= 1 ? () => ({ status: 2, progress_num: 1 }) : course(100_000));
		const outcomes = await clock.run(
			run(submitJobs(3), { maxInFlight: 2, maxFailures: 1, lateIsFailure, noProgressMs: MINUTE }),
		);
		expect(kinds(outcomes)[0]).toBe('stalled');
		expect(platform.submits).toHaveLength(submits);
	});

	it('keeps the ID of a task and the results of other items if the node itself fails', async () => {
		const made = scene();
		made.platform.filesOf = FILES;
		made.downloadFails = ({ url }) => {
			if (url.includes('/t-1/')) throw new RangeError('Maximum call stack size exceeded');
			return undefined;
		};
		const outcomes = await made.clock.run(made.run(submitJobs(2)));
		expect(outcomes).toMatchObject([
			{
				taskId: 't-1',
				failure: {
					kind: 'unclear',
					message: 'The node failed while it worked on task t-1: Maximum call stack size exceeded',
					advice: expect.stringContaining('This is a bug in the node') as string,
					details: { taskId: 't-1', status: 'unknown' },
				},
			},
			{ taskId: 't-2', failure: undefined },
		]);
	});

	it('ends a task whose state cannot be read, and keeps its ID', async () => {
		const { clock, platform, run } = scene();
		platform.infoFails = () => failing(false);
		const [outcome] = await clock.run(run(submitJobs(1)));
		expect(outcome).toMatchObject({
			taskId: 't-1',
			failure: { kind: 'credential', details: { taskId: 't-1' } },
		});
		expect(outcome?.failure?.message).toMatch(/^Task t-1 was submitted, but its state cannot be read/);
		expect(outcome?.failure?.advice).toContain("'Wait for Completion' operation with task ID t-1");
		expect(outcome?.failure?.advice).not.toContain('run the node again');
	});
});

describe('runTasks: cancel', () => {
	it('ends at once and returns every ID, without leaving timers behind', async () => {
		const { clock, platform, run, ending } = scene();
		platform.courseOf = () => course(10 * MINUTE);
		const outcomes = run(submitJobs(6), { maxInFlight: 3 });
		await clock.advance(10_000);
		ending.abort();
		expect(kinds(await clock.run(outcomes))).toEqual([
			...Array(3).fill('cancelled'),
			...Array(3).fill('notSubmitted'),
		]);
		expect(clock.elapsedMs).toBe(10_000);
		expect(clock.sleepers).toBe(0);
	});

	it('does nothing if the execution was already stopped', async () => {
		const { clock, platform, run, ending } = scene();
		ending.abort();
		expect(kinds(await clock.run(run(submitJobs(3))))).toEqual(Array(3).fill('notSubmitted'));
		expect([platform.submits, platform.infoCalls]).toEqual([[], []]);
		expect(clock.sleepers).toBe(0);
	});

	it('also ends downloads', async () => {
		const made = scene();
		made.downloadTakesMs = 10 * MINUTE;
		made.downloadFails = () => ({ ...BROKEN, kind: 'cancelled' });
		made.platform.filesOf = FILES;
		const outcomes = made.run(submitJobs(1));
		await made.clock.advance(5_000);
		expect(made.downloads).toHaveLength(2);
		made.ending.abort();
		await expect(made.clock.run(outcomes)).resolves.toMatchObject([
			{ taskId: 't-1', failure: { kind: 'cancelled' } },
		]);
		expect(made.clock.elapsedMs).toBe(5_000);
	});
});

describe('runTasks: images', () => {
	it('uploads equal bytes once per run, even while the first upload is under way', async () => {
		const { clock, platform, run } = scene();
		platform.uploadTakesMs = 2_000;
		const jobs = Array.from({ length: 12 }, (_, index) =>
			submitJob(index, {}, [image(index % 2 ? 'a' : 'b')]),
		);
		await clock.run(run(jobs));
		expect(platform.uploads).toHaveLength(2);
		expect(platform.submits).toHaveLength(12);
	});

	it('tries again with the next item if an upload failed', async () => {
		const { clock, platform, run } = scene();
		platform.uploadFails = (number) => (number === 1 ? REFUSED : undefined);
		const jobs = [0, 1].map((index) => submitJob(index, {}, [image('same')]));
		const outcomes = await clock.run(run(jobs, { maxInFlight: 1 }));
		expect(kinds(outcomes)).toEqual(['refused', 'done']);
		expect(platform.uploads).toHaveLength(2);
	});

	it('holds few images in memory at once', async () => {
		const { clock, platform, run } = scene();
		platform.uploadTakesMs = 1_000;
		let held = 0;
		let most = 0;
		const jobs = Array.from({ length: 30 }, (_, index) => {
			const one = image(`bytes ${index}`);
			const load: ImageInput['load'] = async () => {
				most = Math.max(most, ++held);
				void clock.sleep(1_000).then(() => held--);
				return await one.load(Infinity);
			};
			return submitJob(index, {}, [{ ...one, load }]);
		});
		await clock.run(run(jobs));
		expect(platform.uploads).toHaveLength(30);
		expect(most).toBeLessThanOrEqual(4);
	});
});

describe('runTasks: files', () => {
	it('downloads the files of each task in order, with names that distinguish items', async () => {
		const { clock, platform, run, downloads } = scene();
		platform.filesOf = FILES;
		const outcomes = await clock.run(run(submitJobs(2)));
		expect(outcomes.map(({ files }) => files.map(({ link }) => link.url))).toEqual([
			['https://h/t-1/a.png?sig=1', 'https://h/t-1/b.png?sig=1'],
			['https://h/t-2/a.png?sig=1', 'https://h/t-2/b.png?sig=1'],
		]);
		expect(downloads.map(({ fileName }) => fileName).sort()).toEqual([
			'a_1.png',
			'a_2.png',
			'b_1.png',
			'b_2.png',
		]);
	});

	it('leaves names unchanged if there is only one task', async () => {
		const { clock, platform, run, downloads } = scene();
		platform.filesOf = FILES;
		await clock.run(run(submitJobs(1)));
		expect(downloads.map(({ fileName }) => fileName)).toEqual(['a.png', 'b.png']);
	});

	it.each([
		['that another execution saw succeed', true, 10_000],
		['that may still be under way', false, 5 * MINUTE],
	])(
		'a task of the same key %s, and that the platform lost, is given up',
		async (_name, finished, afterMs) => {
			const { clock, run } = scene();
			const startMs = clock.now();
			const by = { workflowId: 'w', executionId: '7', atMs: clock.wallNow() };
			const known = { kind: 'exists' as const, reference: 'gone', finished, by, ended: () => undefined };
			const ledger = { claim: async () => ok(known), flush: async () => ok(undefined) };
			const job = submitJob(0);
			const start = { ...job.start, idempotency: { key: 'k', payload: 'p' } };
			const [done] = await clock.run(run([{ ...job, start }], {}, { ledger }));
			expect(done?.failure?.kind).toBe('taskUnknown');
			expect(clock.now() - startMs).toBeGreaterThanOrEqual(afterMs);
			expect(clock.now() - startMs).toBeLessThan(1.5 * afterMs + 10_000);
		},
	);

	describe('of a task that succeeded without any', () => {
		const outcomeOf = async (info: Record<string, Json>, delivery: Partial<Delivery>): Promise<unknown> => {
			const { clock, platform, run } = scene();
			platform.filesOf = () => info;
			const job = {
				delivery: { ...LINKS_ONLY, form: 'filePerItem' as const, mayBeEmpty: false, ...delivery },
			};
			const [done] = await clock.run(run([submitJob(0, job)]));
			return done?.failure?.message;
		};
		const plain = 'Task t-1 succeeded without any file';
		const withheld = `${plain}, with the message "content was flagged"`;
		const errMsg = 'content was flagged';

		it.each<[string, Record<string, Json>, Partial<Delivery>, string | undefined]>([
			['is an error', {}, {}, plain],
			['quotes the message', { errMsg }, {}, withheld],
			['is an error for chosen nodes', { errMsg }, { outputs: [{ nodeId: '9', field: 'data' }] }, withheld],
			['quotes the message where links are wanted', { errMsg }, { form: 'urls' }, withheld],
			['is done where links are wanted and there is no message', {}, { form: 'urls' }, undefined],
			['is done if its workflow saves none', { errMsg }, { mayBeEmpty: true }, undefined],
			[
				'is done if its workflow saves none, with links',
				{ errMsg },
				{ form: 'urls', mayBeEmpty: true },
				undefined,
			],
			['is done with files and a message', { errMsg, ...FILES('t-1') }, {}, undefined],
			[
				'is done with files of other nodes',
				{ ...FILES('t-1') },
				{ outputs: [{ nodeId: '7', field: 'data' }] },
				undefined,
			],
			['is done with a text', { final_files: ['a cat on a mat'] }, {}, undefined],
		])('%s', async (_name, info, delivery, message) => {
			await expect(outcomeOf(info, delivery)).resolves.toBe(message);
		});
	});

	it.each(['urls', 'filePerItem'] as const)(
		'waits a moment for the links of a task that has just finished: %s',
		async (form) => {
			const { clock, platform, run } = scene();
			platform.filesOf = (taskId) => (platform.infoCalls.length > 1 ? FILES(taskId) : {});
			platform.courseOf = () => course(0);
			const [done] = await clock.run(
				run([submitJob(0, { delivery: { ...LINKS_ONLY, form, mayBeEmpty: false } })]),
			);
			expect(done?.failure).toBeUndefined();
			const links = ['https://h/t-1/a.png?sig=1', 'https://h/t-1/b.png?sig=1'];
			// The report that is shown has them, too, so that no file counts as missing.
			expect(done?.snapshot?.info?.finalFiles).toEqual(links);
			expect(done?.files.map(({ link }) => link.url)).toEqual(form === 'urls' ? [] : links);
		},
	);

	it.each(['urls', 'filePerItem'] as const)(
		'tells what a later report says of missing files: %s',
		async (form) => {
			const { clock, platform, run } = scene();
			platform.filesOf = () => ({ errMsg: platform.infoCalls.length > 1 ? 'flagged' : '' });
			platform.courseOf = () => course(0);
			const [done] = await clock.run(
				run([submitJob(0, { delivery: { ...LINKS_ONLY, form, mayBeEmpty: false } })]),
			);
			expect(done?.failure?.message).toContain('with the message "flagged"');
		},
	);

	it('requests fresh links once if links have expired, and downloads each file with its own', async () => {
		const made = scene();
		const { clock, platform, run, downloads } = made;
		let signature = 0;
		platform.filesOf = (taskId) => {
			signature++;
			const links = ['a', 'b'].map((name) => `https://h/${taskId}/${name}.png?sig=${signature}`);
			return { files: { '9': links }, final_files: links };
		};
		const old = new Set<string>();
		made.downloadFails = ({ url }) => {
			if (downloads.length <= 2) old.add(url);
			return old.has(url) ? GONE : undefined;
		};
		const outcomes = await clock.run(run(submitJobs(1)));
		expect(kinds(outcomes)).toEqual(['done']);
		const paths = downloads.map(({ url }) => new URL(url).pathname);
		expect(paths).toEqual(['/t-1/a.png', '/t-1/b.png', '/t-1/a.png', '/t-1/b.png']);
		expect(new Set(downloads.slice(2).map(({ url }) => new URL(url).search)).size).toBe(1);
		expect(platform.infoCalls).toHaveLength(2 + 1);
	});

	it.each<[string, paths: (isFresh: boolean) => string[]]>([
		['in another order', (isFresh) => (isFresh ? ['b.png?', 'a.png?'] : ['a.png?', 'b.png?'])],
		['with numbers that only their order distinguishes', () => ['get?id=1&', 'get?id=2&']],
	])('downloads each file if the fresh links arrive %s', async (_name, pathsAt) => {
		const made = scene();
		const { clock, platform, run, downloads } = made;
		let answers = 0;
		platform.filesOf = (taskId) => {
			const paths = pathsAt(downloads.length > 0);
			answers++;
			return { final_files: paths.map((path) => `https://h/${taskId}/${path}sig=${answers}`) };
		};
		made.downloadFails = () => (downloads.length <= 2 ? GONE : undefined);
		const [outcome] = await clock.run(run(submitJobs(1)));
		const fileIn = (url: string): string => url.replace(/sig=.*/, '');
		expect(outcome?.files).toHaveLength(2);
		for (const { link, stored } of outcome?.files ?? []) {
			expect(fileIn(stored.binary.data)).toBe(fileIn(link.url));
		}
	});

	it('gives up after three expired fresh links, and keeps the files that were downloaded', async () => {
		const made = scene();
		made.platform.filesOf = FILES;
		made.downloadFails = ({ url }) => (url.includes('/b.png') ? GONE : undefined);
		const outcomes = await made.clock.run(made.run(submitJobs(1)));
		expect(outcomes).toMatchObject([
			{
				taskId: 't-1',
				files: [{ link: { url: 'https://h/t-1/a.png?sig=1' } }],
				failure: {
					kind: 'file',
					details: { taskId: 't-1', status: 'succeeded', urls: FILES('t-1').final_files },
				},
			},
		]);
		expect(made.downloads).toHaveLength(2 + 3);
	});

	it('requests fresh links for many tasks in one call', async () => {
		const made = scene();
		const { clock, platform, run, downloads } = made;
		platform.filesOf = FILES;
		platform.courseOf = () => course(1_000);
		const seen = new Set<string>();
		made.downloadFails = ({ url }) => {
			// Links turn out to have expired at different times.
			made.downloadTakesMs = 1 + (downloads.length % 7);
			const isFirst = !seen.has(url);
			seen.add(url);
			return isFirst ? GONE : undefined;
		};
		const outcomes = await clock.run(run(submitJobs(100)));
		expect(new Set(kinds(outcomes))).toEqual(new Set(['done']));
		expect(downloads).toHaveLength(400);
		// One poll finds all tasks done, and another returns all fresh links.
		expect(platform.infoCalls.slice(-2).map(({ ids }) => ids.length)).toEqual([100, 100]);
	});

	it('lets other tasks download while it requests fresh links', async () => {
		const made = scene();
		const { clock, platform, run, downloads } = made;
		platform.filesOf = FILES;
		made.downloadFails = ({ url }) => (url.includes('/t-20/') ? undefined : GONE);
		const outcomes = run(submitJobs(20));
		await clock.advance(1_600);
		expect(downloads.filter(({ url }) => url.includes('/t-20/'))).toHaveLength(2);
		await clock.run(outcomes);
	});

	it('does not request fresh links if the link is not the cause', async () => {
		const made = scene();
		made.platform.filesOf = FILES;
		made.downloadFails = () => BROKEN;
		await made.clock.run(made.run(submitJobs(1)));
		expect(made.downloads).toHaveLength(2);
	});

	it('downloads while other tasks still run', async () => {
		const { clock, platform, run, downloads } = scene();
		platform.filesOf = FILES;
		platform.courseOf = (number) => course(number === 1 ? 1_000 : 60_000);
		const outcomes = run(submitJobs(2));
		await clock.advance(10_000);
		expect(downloads.map(({ url }) => url)).toEqual(FILES('t-1').final_files);
		await clock.run(outcomes);
	});

	it('runs at most eight downloads at a time', async () => {
		const made = scene();
		made.downloadTakesMs = 1_000;
		made.platform.filesOf = (taskId) => ({
			final_files: Array.from({ length: 20 }, (_, index) => `https://h/${taskId}/${index}.png`),
		});
		const outcomes = made.run([submitJob(0)]);
		await made.clock.advance(700);
		const before = made.downloads.length;
		await made.clock.run(outcomes);
		expect(before).toBeLessThanOrEqual(8);
		expect(made.downloads).toHaveLength(20);
		expect(made.clock.elapsedMs).toBeGreaterThanOrEqual(3_000);
	});
});

describe('runTasks: observers', () => {
	it("get a task's news for each job that waits for it", async () => {
		const { clock, platform, run } = scene();
		platform.add('t', course(3_000));
		const jobs = [0, 1].map((itemIndex) => watchJob(itemIndex, 't'));
		const news: Array<[number, string]> = [];
		const observer: TaskObserver = {
			began: () => undefined,
			news: (job, { state }) => void news.push([job.itemIndex, state]),
			ended: () => undefined,
		};
		await clock.run(run(jobs, {}, { observers: [observer] }));
		const done = news.filter(([, state]) => state === 'succeeded');
		expect(done.map(([itemIndex]) => itemIndex)).toEqual([0, 1]);
	});
});
