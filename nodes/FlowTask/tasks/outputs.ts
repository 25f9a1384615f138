import type { Failure } from '../../shared/errors/failure';
import { isJsonObject, parseJson, type Json, type JsonObject } from '../../shared/text/json';
import { redactJson, type Redact } from '../../shared/text/redact';
import type { TaskOutcome } from './engine';
import { isFinal, MOST_FILES, type TaskInfo } from './taskInfo';
import type { TaskSnapshot } from './watched';

/** How result files leave the node. */
export type OutputForm = 'filePerItem' | 'allFiles' | 'urls';

/** What an item adds to the task's own report. */
export interface OutcomeFacts {
	readonly workflowId?: string | undefined;
	/** Seeds that were sent: `node.parameter` -> value. */
	readonly seeds?: Readonly<Record<string, number>> | undefined;
}

/** A task's report as the node outputs it (§2.4 under names that read well in n8n). */
export function describeTask(info: TaskInfo, redact: Redact): JsonObject {
	return {
		taskId: info.taskId,
		status: info.state,
		statusCode: info.statusCode,
		progress: info.progress,
		queue: { position: info.position, size: info.queueSize },
		files: Object.fromEntries(
			Object.entries(info.files).map(([nodeId, urls]) => [nodeId, urls.map(redact.known)]),
		),
		finalFiles: info.finalFiles.map(redact.known),
		errorMessage: redact(info.errorMessage),
	};
}

/** When things happened, as far as this run saw them. */
export function describeTiming({ info, sinceMs, generatingAtMs, endedAtMs }: TaskSnapshot): JsonObject {
	const finishedMs = info && isFinal(info.state) ? endedAtMs : undefined;
	return {
		submittedAt: isoTime(sinceMs),
		finishedAt: isoTime(finishedMs),
		queuedMs: msBetween(sinceMs, generatingAtMs),
		runMs: msBetween(generatingAtMs, finishedMs),
	};
}

function isoTime(ms: number | undefined): string | null {
	return ms === undefined ? null : new Date(ms).toISOString();
}

function msBetween(startMs: number | undefined, endMs: number | undefined): number | null {
	return startMs === undefined || endMs === undefined ? null : Math.max(0, endMs - startMs);
}

/** The JSON of a task, finished or as last seen. */
export function describeOutcome(outcome: TaskOutcome, facts: OutcomeFacts, redact: Redact): JsonObject {
	const { snapshot, taskId = null, reused } = outcome;
	const sent = {
		...(facts.workflowId !== undefined && { workflowId: facts.workflowId }),
		// If the task existed already, the seeds of this run were not sent.
		...(reused ? { reused } : describeSeeds(facts.seeds)),
	};
	if (!snapshot?.info) {
		const status = outcome.failure ? 'unknown' : 'submitted';
		return { taskId, status, ...sent, submittedAt: isoTime(snapshot?.sinceMs) };
	}
	return { ...describeTask(snapshot.info, redact), ...sent, timing: describeTiming(snapshot) };
}

/** One seed is the common case; different ones are listed by node and parameter too. */
function describeSeeds(seeds: OutcomeFacts['seeds'] = {}): JsonObject {
	const [seed, ...others] = new Set(Object.values(seeds));
	if (seed === undefined) return {};
	return others.length === 0 ? { seed } : { seed, seeds: { ...seeds } };
}

/** The task info as the platform sent it, without its prompt token and anything that looks like a key. */
export function rawTaskInfo({ raw }: TaskInfo, redact: Redact): JsonObject {
	const withoutTokens = JSON.stringify(raw, (key, value: Json) =>
		key === 'prompt_token' ? undefined : value,
	);
	const safe = redactJson(parseJson(withoutTokens) ?? {}, redact);
	return isJsonObject(safe) ? safe : {};
}

/** What an AI agent reads: the end of the task and where its images are. */
export function describeForAgent(outcome: TaskOutcome, json: JsonObject, redact: Redact): JsonObject {
	const urls = outcome.snapshot?.info?.finalFiles ?? [];
	const all = Object.values(outcome.snapshot?.info?.files ?? {}).flat();
	const files = (urls.length > 0 ? urls : all).map(redact.known);
	const { taskId = null, status = null, seed } = json;
	return { taskId, status, ...(seed !== undefined && { seed }), files };
}

/** What to say about tasks with links that were not read; `undefined` if there are none. */
export function leftOutHint(infos: ReadonlyArray<TaskInfo | undefined>): string | undefined {
	const count = infos.filter((info) => info && info.filesLeftOut > 0).length;
	if (count === 0) return undefined;
	return `${count} task(s) list more than ${MOST_FILES} files, or links that are too long for any server; those files were left out.`;
}

/** "37 done, 2 failed, 1 still running": one line for the whole run. */
export function summarise(outcomes: readonly TaskOutcome[]): string {
	const order = ['done', 'failed', 'still running', 'not submitted', 'unclear whether submitted'];
	const groups = Map.groupBy(outcomes, ({ failure }) => groupOf(failure));
	return order
		.filter((group) => groups.has(group))
		.map((group) => `${groups.get(group)?.length} ${group}`)
		.join(', ');
}

function groupOf(failure: Failure | undefined): string {
	if (!failure) return 'done';
	const { kind, details } = failure;
	if (kind === 'timedOut' || kind === 'stalled') return 'still running';
	if (kind === 'notSubmitted') return 'not submitted';
	return kind === 'unclear' && details?.mayExist === true ? 'unclear whether submitted' : 'failed';
}
