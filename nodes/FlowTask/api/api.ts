import * as v from 'valibot';

import { fail, ok, type Result } from '../../shared/errors/failure';
import type { Exchange, HttpRequest, SendHttp } from '../../shared/http/exchange';
import type { Outcome } from '../../shared/http/outcome';
import type { Retry, RetryTerms } from '../../shared/retry/retry';
import type { Clock } from '../../shared/time/clock';
import { classify, type BusyTerms } from '../../shared/platform/envelope';
import { isJsonObject, parseJson, type Json } from '../../shared/text/json';
import type { Redact } from '../../shared/text/redact';
import { explainTaskCall, type CallFailure } from './failures';
import { Id, LONGEST_LINK_CHARS, readTaskInfos, type TaskInfo } from './taskInfo';
import type { Prompt } from '../workflow/prompt';

export interface SubmittedTask {
	readonly taskId: string;
	/** Opens the progress WebSocket for 24 hours (§5.2); never shown. One sample answer has none (§4.1). */
	readonly promptToken: string | undefined;
}

const BASE_PATH = '/api/maas/flow_task_api';

const SUBMIT_TIMEOUT_MS = 60_000;
const INFO_TIMEOUT_MS = 30_000;
/** Images may be large and connections slow. */
const UPLOAD_TIMEOUT_MS = 5 * 60_000;

const READ_TRIES = 4;
/** Only requests that were not carried out are retried, so further tries cost nothing but time. */
const WRITE_TRIES = 10;
const UPLOAD_TRIES = 6;

/** It becomes part of a URL, so one that is too long is ignored. */
const PromptToken = v.fallback(v.optional(v.pipe(v.string(), v.maxLength(LONGEST_LINK_CHARS))), undefined);

export interface ApiCall
	extends Omit<RetryTerms, 'endByMs'>, Pick<HttpRequest, 'json' | 'form' | 'timeoutMs' | 'outlivesStop'> {
	readonly path: string;
	/** Completes "could not" and "the request to", e.g. `submit the task`. */
	readonly purpose: string;
	/** Finds in the data of an answer the ID of the task that the call created. */
	readonly taskIn?: (data: Json | undefined) => string | undefined;
}

/** Calls the service and unwraps its envelope (§7.1); never throws. */
type CallApi = (call: ApiCall) => Promise<Result<Json | undefined, CallFailure>>;

export interface ServiceAccount {
	readonly baseUrl: string;
	readonly busyTerms: BusyTerms;
	readonly send: SendHttp;
	readonly redact: Redact;
}

/** How long a call may outlast the run's deadline, because the ID of a task would be lost if its call were cut off. */
const CALL_GRACE_MS = 10_000;

/** @param deadlineMs when the run stops waiting, by the clock's `now()`; only polls begin after it, without retries */
export function createClient(
	{ baseUrl, busyTerms, send, redact }: ServiceAccount,
	retry: Pick<Retry, 'run'>,
	clock: Clock,
	deadlineMs: number,
): CallApi {
	return async (call) => {
		const { path, purpose, repeatability, json, form, outlivesStop, taskIn } = call;
		const { outcome, tries } = await retry.run({ ...call, endByMs: deadlineMs }, async () => {
			const leftMs = Math.max(0, deadlineMs - clock.now()) + CALL_GRACE_MS;
			const timeoutMs = Math.min(call.timeoutMs, leftMs);
			const url = `${baseUrl}${path}`;
			const exchange = await send({ method: 'POST', url, json, form, timeoutMs, outlivesStop });
			const classified = classify(exchange, busyTerms);
			return taskIn ? unlessMade(classified, exchange, taskIn) : classified;
		});
		if (outcome.kind === 'answered') return ok(outcome.data);
		return fail(explainTaskCall(outcome, { purpose, repeatability, baseUrl, tries, redact }));
	};
}

/**
 * Makes the outcome unclear if the answer is not a success, or broke off, but names a task, which the call may have
 * created. The call then does not count as refused and is not repeated, and the ID is kept.
 */
function unlessMade(
	outcome: Outcome<Json | undefined>,
	exchange: Exchange,
	taskIn: (data: Json | undefined) => string | undefined,
): Outcome<Json | undefined> {
	if (!('text' in outcome) || (exchange.kind !== 'reply' && exchange.kind !== 'unclear')) return outcome;
	const body = parseJson(exchange.kind === 'reply' ? exchange.text : (exchange.arrived ?? ''));
	const taskId = isJsonObject(body) ? (taskIn(body.data) ?? taskIn(body)) : undefined;
	if (taskId === undefined) return outcome;
	const where = exchange.kind === 'reply' ? { status: exchange.status } : { code: exchange.code };
	return { kind: 'unclear', ...where, text: outcome.text, details: { taskId } };
}

/** Explains a success without an ID. The advice is for uploads; a submit gets another one from `explainSubmit`. */
function withoutId(purpose: string, field: string): CallFailure {
	return {
		kind: 'unclear',
		message: `The node tried to ${purpose}, but the platform's answer contains no usable "${field}"`,
		advice: 'Run the node again. Nothing was submitted for this item, and a second upload costs nothing.',
		passing: false,
	};
}

export function submitCall(workflowId: string, prompt: Prompt) {
	return { path: `${BASE_PATH}/prompt`, json: { workflow_id: workflowId, prompt } };
}

/** The workflow service's calls (§4.1 to §4.3). None of them throws. */
export type TaskApi = Pick<ServiceApi, keyof ServiceApi>;

export class ServiceApi {
	private readonly SubmitData;
	private readonly UploadData;

	/** @param redact knows the API key: an ID that contains it must not get into items, logs or the ledger */
	constructor(
		private readonly call: CallApi,
		redact: Redact,
	) {
		const SafeId = v.pipe(
			Id,
			// Servers that fill in every field send 0 or the nil UUID if there is no ID.
			v.check((id) => redact.known(id) === id && !/^[0-]+$/.test(id)),
		);
		this.SubmitData = v.object({ prompt_id: SafeId, prompt_token: PromptToken });
		this.UploadData = v.object({ image_id: SafeId });
	}

	/** @param maySend asked before each attempt: if false, nothing is sent, and the call ends as `cancelled` */
	async submit(
		workflowId: string,
		prompt: Prompt,
		maySend?: () => boolean,
	): Promise<Result<SubmittedTask, CallFailure>> {
		const answer = await this.call({
			...submitCall(workflowId, prompt),
			purpose: 'submit the task',
			repeatability: 'write',
			lane: 'work',
			maySend,
			timeoutMs: SUBMIT_TIMEOUT_MS,
			outlivesStop: true,
			tries: WRITE_TRIES,
			taskIn: (data) => {
				const read = v.safeParse(this.SubmitData, data);
				return read.success ? read.output.prompt_id : undefined;
			},
		});
		if (!answer.ok) return answer;
		const data = v.safeParse(this.SubmitData, answer.value);
		if (!data.success) return fail(withoutId('submit the task', 'prompt_id'));
		return ok({ taskId: data.output.prompt_id, promptToken: data.output.prompt_token });
	}

	/** Reads the state of at most `IDS_PER_CALL` tasks. The answer lacks tasks that the platform does not know. */
	async info(taskIds: readonly string[], urlExpireSeconds: number): Promise<Result<TaskInfo[], CallFailure>> {
		const answer = await this.call({
			path: `${BASE_PATH}/get_task_info`,
			purpose: 'read the state of the tasks',
			repeatability: 'read',
			lane: 'watch',
			json: { flow_task_ids: taskIds, url_expire_period: urlExpireSeconds },
			timeoutMs: INFO_TIMEOUT_MS,
			tries: READ_TRIES,
		});
		if (!answer.ok) return answer;
		const infos = readTaskInfos(answer.value);
		if (infos) return ok(infos);
		return fail({
			kind: 'unclear',
			message: 'The platform answered without a task list when the node asked for the state of the tasks',
			advice: 'The platform seems to be having problems. Run the node again later.',
			passing: true,
		});
	}

	/** @param file is sent from its beginning by each try */
	async upload(file: File): Promise<Result<string, CallFailure>> {
		const form = new FormData();
		form.append('source_file', file);
		const answer = await this.call({
			path: `${BASE_PATH}/upload/image`,
			purpose: 'upload the image',
			// An upload creates no task, so a second copy costs nothing.
			repeatability: 'read',
			lane: 'work',
			form,
			timeoutMs: UPLOAD_TIMEOUT_MS,
			tries: UPLOAD_TRIES,
		});
		if (!answer.ok) return answer;
		const data = v.safeParse(this.UploadData, answer.value);
		return data.success ? ok(data.output.image_id) : fail(withoutId('upload the image', 'image_id'));
	}
}
