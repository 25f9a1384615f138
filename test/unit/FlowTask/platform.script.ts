import type { SubmittedTask, TaskApi } from '../../../nodes/FlowTask/api/api';
import type { Prompt } from '../../../nodes/FlowTask/workflow/prompt';
import type { TaskInfo } from '../../../nodes/FlowTask/api/taskInfo';
import type { Json } from '../../../nodes/shared/text/json';
import { fail, ok, type Result } from '../../../nodes/shared/errors/failure';
import type { CallFailure } from '../../../nodes/FlowTask/api/failures';
import type { TestClock } from '../testClock';
import { taskInfo } from './taskInfo.builder';

type Fields = Readonly<Record<string, Json>>;

/** The fields of a task's info by the time since it was added; `undefined` if the task is unknown at that time. */
type Course = (ageMs: number) => Fields | undefined;

export interface InfoCall {
	readonly atMs: number;
	readonly ids: readonly string[];
}

export const SUCCEEDED: Fields = { status: 3, progress_num: 100 };

/** The course of a task that is queued, then generating with progress, then ended. */
export function course(takesMs: number, last: Fields = SUCCEEDED): Course {
	return (ageMs) => {
		if (ageMs >= takesMs) return last;
		return ageMs < takesMs / 4
			? { status: 1, current_position: 1 }
			: { status: 2, progress_num: Math.floor((ageMs / takesMs) * 100) };
	};
}

export const failing = (passing: boolean): CallFailure => ({
	kind: passing ? 'unclear' : 'credential',
	message: 'The poll failed',
	advice: 'Poll again.',
	passing,
});

/** The service in virtual time; a test decides how long calls take and which ones fail. */
export class ScriptedPlatform implements TaskApi {
	readonly infoCalls: InfoCall[] = [];
	readonly submits: Array<{ readonly atMs: number; readonly workflowId: string; readonly prompt: Prompt }> =
		[];
	readonly uploads: File[] = [];
	readonly asked: Array<{ readonly ids: readonly string[]; readonly urlExpireSeconds: number }> = [];
	infoTakesMs = 0;
	submitTakesMs: (number: number) => number = () => 0;
	uploadTakesMs = 0;
	/** Returns the failure of a poll, or `undefined` to let it succeed. */
	infoFails: (call: InfoCall) => CallFailure | undefined = () => undefined;
	submitFails: (number: number) => CallFailure | undefined = () => undefined;
	uploadFails: (number: number) => CallFailure | undefined = () => undefined;
	/** The course of each submitted task, counted from 1. */
	courseOf: (number: number) => Course = () => course(1_000);
	/** Fields that are added at any time: the files of a task. */
	filesOf: (taskId: string) => Fields = () => ({});
	mostAtOnce = 0;
	private readonly tasks = new Map<string, { readonly sinceMs: number; readonly course: Course }>();

	constructor(private readonly clock: TestClock) {}

	add(taskId: string, taskCourse: Course): string {
		this.tasks.set(taskId, { sinceMs: this.clock.now(), course: taskCourse });
		return taskId;
	}

	async info(taskIds: readonly string[], urlExpireSeconds: number): Promise<Result<TaskInfo[], CallFailure>> {
		const call = { atMs: this.clock.elapsedMs, ids: [...taskIds] };
		this.infoCalls.push(call);
		this.asked.push({ ids: call.ids, urlExpireSeconds });
		if (this.infoTakesMs > 0) await this.clock.sleep(this.infoTakesMs);
		const failure = this.infoFails(call);
		if (failure) return fail(failure);
		return ok(taskIds.map((id) => this.infoOf(id)).filter((info) => info !== undefined));
	}

	async submit(workflowId: string, prompt: Prompt): Promise<Result<SubmittedTask, CallFailure>> {
		this.submits.push({ atMs: this.clock.elapsedMs, workflowId, prompt });
		const number = this.submits.length;
		await this.clock.sleep(this.submitTakesMs(number));
		const failure = this.submitFails(number);
		if (failure) return fail(failure);
		const taskId = this.add(`t-${number}`, this.courseOf(number));
		this.mostAtOnce = Math.max(this.mostAtOnce, this.unfinished());
		return ok({ taskId, promptToken: `token-${number}` });
	}

	async upload(file: File): Promise<Result<string, CallFailure>> {
		this.uploads.push(file);
		const number = this.uploads.length;
		if (this.uploadTakesMs > 0) await this.clock.sleep(this.uploadTakesMs);
		const failure = this.uploadFails(number);
		return failure ? fail(failure) : ok(`image-${number}`);
	}

	/** The polls grouped by time: which IDs were requested at the same time, and in how many calls. */
	rounds(): Array<{ readonly atMs: number; readonly calls: number; readonly ids: readonly string[] }> {
		const byTime = Map.groupBy(this.infoCalls, ({ atMs }) => atMs);
		return [...byTime].map(([atMs, calls]) => ({
			atMs,
			calls: calls.length,
			ids: calls.flatMap(({ ids }) => ids),
		}));
	}

	private infoOf(taskId: string): TaskInfo | undefined {
		const task = this.tasks.get(taskId);
		const fields = task?.course(this.clock.now() - task.sinceMs);
		return fields && taskInfo(taskId, { ...fields, ...this.filesOf(taskId) });
	}

	private unfinished(): number {
		return [...this.tasks.values()].filter(({ sinceMs, course: of }) => {
			const status = of(this.clock.now() - sinceMs)?.status;
			return status === 1 || status === 2;
		}).length;
	}
}

/** The intervals between polls. */
export function gaps(rounds: ReadonlyArray<{ readonly atMs: number }>): number[] {
	return rounds.slice(1).map(({ atMs }, index) => atMs - (rounds[index]?.atMs ?? 0));
}
