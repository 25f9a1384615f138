import * as v from 'valibot';

import { errorWords } from '../shared/errorWords';
import { excerpt, isJsonObject, jsonText, type Json, type JsonObject } from '../shared/json';
import { stateOf, type TaskState } from './task.states';

/** A task as the platform reports it (§2.4), read into our own type. */
export interface TaskInfo {
	readonly taskId: string;
	readonly state: TaskState;
	/** The number as it came; `null` where none came. */
	readonly statusCode: number | null;
	readonly progress: number | null;
	readonly queueSize: number | null;
	readonly position: number | null;
	readonly errorMessage: string;
	/** Output node id -> decoded links. */
	readonly files: Readonly<Record<string, readonly string[]>>;
	readonly finalFiles: readonly string[];
	/** The element as it came. */
	readonly raw: JsonObject;
}

/** Servers send numbers as text, and `null` or nothing where there is none yet. */
const LooseNumber = v.fallback(
	v.nullable(
		v.union([
			v.pipe(v.number(), v.finite()),
			v.pipe(v.string(), v.trim(), v.regex(/^-?\d+(\.\d+)?$/), v.transform(Number)),
		]),
	),
	null,
);

const TaskId = v.union([v.pipe(v.string(), v.minLength(1)), v.pipe(v.number(), v.transform(String))]);

const Links = v.fallback(
	v.pipe(
		v.array(v.unknown()),
		v.transform((links) =>
			links
				.filter((link) => typeof link === 'string')
				.map(decodeLink)
				.filter(Boolean),
		),
	),
	[],
);

/** Some engines pass the exception on as it is: its words, or all of it where it has none. */
const ErrorObject = v.pipe(
	v.custom<JsonObject>((error) => isJsonObject(error) && Object.keys(error).length > 0),
	v.transform((error) => errorWords(error) || excerpt(jsonText(error) ?? '', 500)),
);

const InfoItem = v.object({
	flow_task_id: TaskId,
	status: v.optional(LooseNumber, null),
	queue_size: v.optional(LooseNumber, null),
	current_position: v.optional(LooseNumber, null),
	errMsg: v.optional(v.fallback(v.union([v.string(), ErrorObject]), ''), ''),
	files: v.optional(v.fallback(v.record(v.string(), Links), {}), {}),
	final_files: v.optional(Links, []),
	progress_num: v.optional(LooseNumber, null),
});

/**
 * Reads one `flow_task_info` element.
 * @returns `undefined` where the value is no task info at all
 */
export function readTaskInfo(value: unknown): TaskInfo | undefined {
	if (!isJsonObject(value)) return undefined;
	const parsed = v.safeParse(InfoItem, value);
	if (!parsed.success) return undefined;
	const { output } = parsed;
	const state = stateOf(output.status);
	// Final files are read at 100 (§6.1.4); status 3 says that all of them are there (§3.1), whatever else is left out.
	const hasFinalFiles = output.progress_num === 100 || state === 'succeeded';
	return {
		taskId: output.flow_task_id,
		state,
		statusCode: output.status,
		progress: output.progress_num,
		queueSize: output.queue_size,
		position: output.current_position,
		errorMessage: output.errMsg,
		files: output.files,
		finalFiles: hasFinalFiles ? output.final_files : [],
		raw: value,
	};
}

/** Reads `data.flow_task_info` of §4.2; elements that are no task info are left out. */
export function readTaskInfos(data: Json | undefined): TaskInfo[] | undefined {
	// What the platform writes where it knows none of the ids.
	if (data === null) return [];
	if (!isJsonObject(data)) return undefined;
	const list = data.flow_task_info;
	if (list === null) return [];
	if (!Array.isArray(list)) {
		// The WebSocket's messages hold a single object (§6.1), and servers use one shape for both.
		const only = readTaskInfo(list);
		return only && [only];
	}
	return list.map(readTaskInfo).filter((info) => info !== undefined);
}

/**
 * Undoes what the service does to links (§2.4): literal six-character escapes such as backslash-u-0-0-2-6,
 * and percent-encoding where the whole link is encoded. A signed link that is only partly encoded stays as
 * it is, because decoding it would break its signature.
 */
export function decodeLink(link: string): string {
	const plain = unescapeText(link.trim().replace(/%5Cu0026/gi, '&'));
	if (plain.includes('://') || !/^https?%3a%2f%2f/i.test(plain)) return plain;
	try {
		// What was escaped first and encoded then shows its escapes only now.
		return unescapeText(decodeURIComponent(plain));
	} catch {
		return plain;
	}
}

function unescapeText(text: string): string {
	return text.replace(/\\u([0-9a-f]{4})/gi, (_, hex: string) =>
		String.fromCharCode(Number.parseInt(hex, 16)),
	);
}
