import * as v from 'valibot';

import { errorWords } from '../../shared/errors/serviceMessage';
import { isJsonObject, jsonText, type Json, type JsonObject } from '../../shared/text/json';
import { decodePercents, unescapeText } from '../../shared/text/webAddress';

/**
 * The states of a task by `status` (§2.4, §3.1), under the names that the node's output uses. `unknown` is any number
 * that the interface does not define, or a missing one: such a task does not count as finished.
 */
const STATES = ['unknown', 'queued', 'generating', 'succeeded', 'failed', 'denied'] as const;
type TaskState = (typeof STATES)[number];

/** Whether the platform is done with a task in this state. */
export function isFinal(state: TaskState): boolean {
	return state === 'succeeded' || state === 'failed' || state === 'denied';
}

/** A task as the platform reports it (§2.4), read into our own type. */
export interface TaskInfo {
	readonly taskId: string;
	readonly state: TaskState;
	/** The `status` as sent; `null` if there was none. */
	readonly statusCode: number | null;
	readonly progress: number | null;
	readonly queueSize: number | null;
	readonly position: number | null;
	/** Of any length, as the platform sent it. */
	readonly errorMessage: string;
	/** Output node ID -> decoded links. */
	readonly files: ReadonlyMap<string, readonly string[]>;
	readonly finalFiles: readonly string[];
	/** How many links were not read: those beyond `MOST_FILES`, or too long. */
	readonly filesLeftOut: number;
	/** The `flow_task_info` element as received. */
	readonly raw: JsonObject;
}

/** The most files that are read per task; no real workflow saves more. */
export const MOST_FILES = 1_000;
/** Signed links are long, but no server accepts longer ones than this. */
export const LONGEST_LINK_CHARS = 16_384;
/** Longer IDs are not accepted; real ones are far shorter. */
export const LONGEST_ID_CHARS = 1_000;

/** A number beyond 2^53 may already have lost its last digits, so it is not accepted as an ID. */
export const Id = v.union([
	v.pipe(v.string(), v.trim(), v.minLength(1), v.maxLength(LONGEST_ID_CHARS)),
	v.pipe(v.number(), v.safeInteger(), v.transform(String)),
]);

/** Some servers send numbers as strings, and `null` or nothing if there is none yet. */
const LooseNumber = v.fallback(
	v.nullable(
		v.union([
			v.pipe(v.number(), v.finite()),
			v.pipe(v.string(), v.trim(), v.regex(/^-?\d+(\.\d+)?$/), v.transform(Number)),
		]),
	),
	null,
);

/** A task's ID in a report: not trimmed, because it repeats the ID that was sent. */
const TaskId = v.union([
	v.pipe(v.string(), v.minLength(1), v.maxLength(LONGEST_ID_CHARS)),
	v.pipe(v.number(), v.transform(String)),
]);

/** Some servers send a single link without a list. */
const Texts = v.pipe(
	v.unknown(),
	v.transform((links) => (Array.isArray(links) ? links : [links]).filter((link) => typeof link === 'string')),
);

const InfoItem = v.object({
	flow_task_id: TaskId,
	status: v.optional(LooseNumber, null),
	queue_size: v.optional(LooseNumber, null),
	current_position: v.optional(LooseNumber, null),
	files: v.optional(v.fallback(v.record(v.string(), Texts), {}), {}),
	final_files: v.optional(Texts, []),
	progress_num: v.optional(LooseNumber, null),
});

/** Reads one `flow_task_info` element; `undefined` if the value is not one. */
export function readTaskInfo(value: unknown): TaskInfo | undefined {
	if (!isJsonObject(value)) return undefined;
	const parsed = v.safeParse(InfoItem, value);
	if (!parsed.success) return undefined;
	const { output } = parsed;
	const state = STATES[output.status ?? 0] ?? 'unknown';
	// Final files are read at progress 100 (§6.1); status 3 also means that all of them exist (§3.1).
	const hasFinalFiles = output.progress_num === 100 || state === 'succeeded';
	const final = readLinks(hasFinalFiles ? output.final_files : [], MOST_FILES);
	const files = readFiles(output.files);
	return {
		taskId: output.flow_task_id,
		state,
		statusCode: output.status,
		progress: output.progress_num,
		queueSize: output.queue_size,
		position: output.current_position,
		errorMessage: errorTextOf(value.errMsg),
		files: files.byNode,
		finalFiles: final.links,
		filesLeftOut: Math.max(files.leftOut, final.leftOut),
		raw: value,
	};
}

/** The text of an error. Some engines send an object or a list: its words are taken, or its JSON if it has none. */
function errorTextOf(error: Json | undefined): string {
	if (typeof error === 'string') return error;
	if (typeof error !== 'object' || error === null || Object.keys(error).length === 0) return '';
	return errorWords({ error }) || (jsonText(error) ?? '');
}

function readLinks(texts: readonly string[], most: number) {
	const usable = texts.filter((text) => text.length <= LONGEST_LINK_CHARS).slice(0, most);
	return { links: usable.map(decodeLink).filter(Boolean), leftOut: texts.length - usable.length };
}

/** Reads the links of all output nodes, which share one limit. */
function readFiles(files: Readonly<Record<string, readonly string[]>>) {
	let room = MOST_FILES;
	let leftOut = 0;
	const byNode = new Map<string, readonly string[]>();
	for (const [nodeId, texts] of Object.entries(files)) {
		const isUsable = nodeId.length <= LONGEST_ID_CHARS && byNode.size < MOST_FILES;
		const read = readLinks(texts, isUsable ? room : 0);
		if (isUsable) byNode.set(nodeId, read.links);
		room -= read.links.length;
		leftOut += read.leftOut;
	}
	return { byNode, leftOut };
}

/** Reads `data.flow_task_info` of §4.2; elements that are not task info are left out. */
export function readTaskInfos(data: Json | undefined): TaskInfo[] | undefined {
	if (data !== null && !isJsonObject(data)) return undefined;
	const list = data === null ? null : data.flow_task_info;
	// The platform knows none of the IDs.
	if (list === null) return [];
	if (Array.isArray(list)) return list.map(readTaskInfo).filter((info) => info !== undefined);
	// The WebSocket's messages contain a single object (§6.1), and some servers use that shape for both.
	const only = readTaskInfo(list);
	return only && [only];
}

/**
 * Decodes a link (§2.4): literal six-character escapes such as backslash-u-0-0-2-6, and percent-encoding if the whole
 * link is encoded. A signed link that is only partly encoded is kept, because decoding it would break its signature.
 */
export function decodeLink(link: string): string {
	const plain = unescapeText(link.trim().replace(/%5Cu0026/gi, '&'));
	if (plain.includes('://') || !/^https?%3a%2f%2f/i.test(plain)) return plain;
	// A link that was escaped before it was encoded shows its escapes only now.
	return unescapeText(decodePercents(plain));
}
