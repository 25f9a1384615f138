import { isJsonObject, type Json, type JsonObject } from '../../shared/text/json';
import type { Redact } from '../../shared/text/redact';
import type { TaskOutcome } from './engine';
import { MOST_FILES, type TaskInfo } from './taskInfo';
import { isFinal } from './states';
import type { TaskSnapshot } from './watched';

/** How result files leave the node. */
export type OutputForm = 'filePerItem' | 'allFiles' | 'urls';

/** What an outcome adds to the task's own report. */
export interface OutcomeFacts {
	readonly workflowId?: string | undefined;
	/** Seeds that were sent: `node.parameter` -> value. */
	readonly seeds?: Readonly<Record<string, number>> | undefined;
}

/** A task's report as the node puts it out (§2.4 under names that read well in n8n). */
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

/** Adds to a sighted task when things happened, as far as this run saw it. */
export function describeTiming(snapshot: TaskSnapshot): JsonObject {
	const { info, sinceMs, generatingAtMs, endedAtMs } = snapshot;
	const finished = info !== undefined && isFinal(info.state);
	return {
		submittedAt: sinceMs === undefined ? null : new Date(sinceMs).toISOString(),
		finishedAt: finished ? new Date(endedAtMs).toISOString() : null,
		queuedMs:
			sinceMs === undefined || generatingAtMs === undefined ? null : Math.max(0, generatingAtMs - sinceMs),
		runMs: generatingAtMs === undefined || !finished ? null : Math.max(0, endedAtMs - generatingAtMs),
	};
}

/** The json of a task that came to an end, or was last seen somewhere on its way. */
export function describeOutcome(outcome: TaskOutcome, facts: OutcomeFacts, redact: Redact): JsonObject {
	const { snapshot, taskId = null, reused } = outcome;
	const sent = {
		...(facts.workflowId !== undefined && { workflowId: facts.workflowId }),
		// The seeds of this run were not sent where the task was there already.
		...(reused ? { reused } : describeSeeds(facts.seeds)),
	};
	if (!snapshot?.info) {
		const submittedAt = snapshot?.sinceMs === undefined ? null : new Date(snapshot.sinceMs).toISOString();
		return { taskId, status: outcome.failure ? 'unknown' : 'submitted', ...sent, submittedAt };
	}
	return { ...describeTask(snapshot.info, redact), ...sent, timing: describeTiming(snapshot) };
}

/** One seed is the common case and stands by itself; more are told apart by node and parameter. */
function describeSeeds(seeds: Readonly<Record<string, number>> | undefined): JsonObject {
	const entries = Object.entries(seeds ?? {});
	const [only] = entries;
	if (!only) return {};
	const values = new Set(entries.map(([, value]) => value));
	return values.size === 1 ? { seed: only[1] } : { seed: only[1], seeds: Object.fromEntries(entries) };
}

/** The task info as the platform sent it, free of anything that looks like a key. */
export function rawTaskInfo(info: TaskInfo, redact: Redact): JsonObject {
	return redactObject(info.raw, redact);
}

/** Text by text: what is hidden in JSON as a whole may take a quotation mark with it. */
function redactObject(object: JsonObject, redact: Redact): JsonObject {
	return Object.fromEntries(
		Object.entries(object)
			.filter(([key]) => key !== 'prompt_token')
			.map(([key, value]) => [redact(key), redactJson(value, redact)]),
	);
}

function redactJson(value: Json, redact: Redact): Json {
	if (typeof value === 'string') return redact(value);
	if (Array.isArray(value)) return value.map((one) => redactJson(one, redact));
	return isJsonObject(value) ? redactObject(value, redact) : value;
}

/** What an AI agent gets to read: the end of the task and where its images are. */
export function describeForAgent(outcome: TaskOutcome, json: JsonObject, redact: Redact): JsonObject {
	const urls = outcome.snapshot?.info?.finalFiles ?? [];
	const all = Object.values(outcome.snapshot?.info?.files ?? {}).flat();
	const files = (urls.length > 0 ? urls : all).map(redact.known);
	const { taskId = null, status = null, seed } = json;
	return { taskId, status, ...(seed !== undefined && { seed }), files };
}

/** What to say of tasks with links that were not read; `undefined` where there is none. */
export function leftOutHint(infos: ReadonlyArray<TaskInfo | undefined>): string | undefined {
	const count = infos.filter((info) => info && info.filesLeftOut > 0).length;
	if (count === 0) return undefined;
	return `${count} task(s) list more than ${MOST_FILES} files, or links that are too long for any server: those files were left out.`;
}

/** "37 done, 2 failed, 1 still running": one line for the whole run. */
export function summarise(outcomes: readonly TaskOutcome[]): string {
	const counts = {
		done: 0,
		failed: 0,
		'still running': 0,
		'not submitted': 0,
		'unclear whether submitted': 0,
	};
	for (const { failure } of outcomes) {
		if (!failure) counts.done++;
		else if (failure.kind === 'timedOut' || failure.kind === 'stalled') counts['still running']++;
		else if (failure.kind === 'notSubmitted') counts['not submitted']++;
		else if (failure.kind === 'unclear' && failure.details?.mayExist === true)
			counts['unclear whether submitted']++;
		else counts.failed++;
	}
	return Object.entries(counts)
		.filter(([, count]) => count > 0)
		.map(([what, count]) => `${count} ${what}`)
		.join(', ');
}
