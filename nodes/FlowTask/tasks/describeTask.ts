import type { Failure } from '../../shared/errors/failure';
import { excerpt, isJsonObject, parseJson, type Json, type JsonObject } from '../../shared/text/json';
import { markdownLink } from '../../shared/text/markdown';
import { redactJson, type Redact } from '../../shared/text/redact';
import { listOf } from '../../shared/text/textOf';
import type { TaskOutcome } from './engine';
import type { TaskFacts } from './observer';
import { isPlainText, linksOf, nameInLink, type FileSelection } from './resultLinks';
import { submitCall } from '../api/api';
import { isFinal, MOST_FILES, type TaskInfo } from '../api/taskInfo';
import type { TaskSnapshot } from './watchedTask';

/** Some engines send their whole log. */
const LONGEST_ERROR_CHARS = 10_000;

/** How much of a prompt an item shows; a longer text takes several lines in n8n's table, however wide the window. */
const PROMPT_CHARS = 40;

/** The first words of a prompt, by which a person recognizes its row. */
export function firstWords(prompt: string): string {
	const line = prompt.replace(/\s+/g, ' ').trim();
	if (line.length <= PROMPT_CHARS) return line;
	const cut = line.lastIndexOf(' ', PROMPT_CHARS - 1);
	// A text with few spaces, as in Chinese, is cut anywhere.
	return cut > PROMPT_CHARS / 2
		? `${line.slice(0, cut).replace(/[\s,.;:]+$/, '')}…`
		: excerpt(line, PROMPT_CHARS);
}

/** Which row of the input a task belongs to, counted from 1 as people count. */
export function describeOrigin(itemIndex: number, { item = itemIndex, prompt, variant }: TaskFacts) {
	return {
		...(prompt && { prompt: firstWords(prompt) }),
		item: item + 1,
		...(variant !== undefined && { variant }),
	};
}

/** What a person or the next node reads of a task. @param links which are shown */
function describeReport(info: TaskInfo, redact: Redact, links: FileSelection): JsonObject {
	const [url, ...otherUrls] = linksOf(info, links).map((link) => redact.known(link.url));
	const errorMessage = errorMessageOf(info, redact);
	return {
		...(url !== undefined && { url }),
		...(otherUrls.length > 0 && { otherUrls }),
		...(!isFinal(info.state) && { progress: info.progress }),
		...(errorMessage && { errorMessage }),
	};
}

/** The fields of §2.4 that only a person who looks into a problem needs, under names that suit n8n. */
function describeRest(info: TaskInfo, redact: Redact): JsonObject {
	return {
		statusCode: info.statusCode,
		progress: info.progress,
		queue: { position: info.position, size: info.queueSize },
		files: Object.fromEntries([...info.files].map(([nodeId, urls]) => [nodeId, urls.map(redact.known)])),
		finalFiles: info.finalFiles.map(redact.known),
		errorMessage: errorMessageOf(info, redact),
		raw: rawTaskInfo(info, redact),
	};
}

function errorMessageOf({ errorMessage }: TaskInfo, redact: Redact): string {
	// Shortened last: the beginning of a secret that is cut off would be shown.
	return redact(errorMessage).slice(0, LONGEST_ERROR_CHARS);
}

/** A task as "Get" outputs it. */
export function describeTask(
	info: TaskInfo,
	{ itemIndex, facts, simplify }: { itemIndex: number; facts: TaskFacts; simplify: boolean },
	redact: Redact,
): JsonObject {
	return {
		...describeOrigin(itemIndex, facts),
		status: info.state,
		...describeSeeds(facts.seeds, simplify),
		taskId: info.taskId,
		...describeReport(info, redact, 'finalFiles'),
		...(!simplify && describeRest(info, redact)),
	};
}

/** The times of a task, as far as this run knows them. */
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

/** The JSON of a task, finished or as last seen. @param fileName of the file that the item contains */
export function describeOutcome(outcome: TaskOutcome, redact: Redact, fileName?: string): JsonObject {
	const { snapshot, taskId = null, reused, facts } = outcome;
	const { info } = snapshot ?? {};
	const { simplify, files } = outcome.delivery;
	const unseen = outcome.failure ? 'unknown' : 'submitted';
	return {
		...describeOrigin(outcome.itemIndex, facts),
		...(fileName !== undefined && { fileName }),
		status: info?.state ?? unseen,
		// If the task existed already, the seeds of this run were not sent.
		...(!reused && describeSeeds(facts.seeds, simplify)),
		taskId,
		// An item for a file does not repeat its link.
		...(info && describeReport(info, redact, fileName === undefined ? files : [])),
		...(reused && { reused }),
		...(!simplify && describeInFull(outcome, redact)),
	};
}

function describeInFull(outcome: TaskOutcome, redact: Redact): JsonObject {
	const { snapshot, facts } = outcome;
	const { info } = snapshot ?? {};
	return {
		...(facts.prompt && { prompt: facts.prompt }),
		...(facts.workflowId !== undefined && { workflowId: facts.workflowId }),
		...(snapshot && { timing: describeTiming(snapshot) }),
		...describeRequest(outcome, redact),
		...(info && describeRest(info, redact)),
	};
}

/** The request body of a task that this run made; "Prompt (JSON)" accepts it, to make the image again. */
function describeRequest({ sent, facts: { workflowId } }: TaskOutcome, redact: Redact): JsonObject {
	if (sent === undefined || workflowId === undefined) return {};
	return { request: redactJson(submitCall(workflowId, sent).json, redact.known) };
}

/** Usually all inputs have the same seed; different ones are also listed by node and parameter, if not simplified. */
function describeSeeds(seeds: TaskFacts['seeds'], simplify: boolean): JsonObject {
	const [seed, ...others] = new Set(Object.values(seeds ?? {}));
	if (seed === undefined) return {};
	return simplify || others.length === 0 ? { seed } : { seed, seeds: { ...seeds } };
}

/** The task info as the platform sent it, without its prompt token or anything that looks like a key. */
export function rawTaskInfo({ raw }: TaskInfo, redact: Redact): JsonObject {
	const withoutTokens = JSON.stringify(raw, (key, value: Json) =>
		key === 'prompt_token' ? undefined : value,
	);
	const safe = redactJson(parseJson(withoutTokens) ?? {}, redact);
	return isJsonObject(safe) ? safe : {};
}

/** A note for an agent, which would otherwise describe the links or copy them incorrectly. */
const SHOW_IMAGES =
	'Put the text of "markdown" into your answer exactly as it is: it shows the files. Do not change or shorten the links.';

const IMAGES_SHOWN = 'The user already sees the files. Do not repeat their links.';

/** @param isShown whether the chat already shows the images */
export function describeForAgent(outcome: TaskOutcome, redact: Redact, isShown: boolean): JsonObject {
	const files = shownFiles(outcome, redact);
	const { taskId = null, status = null, seed, variant } = describeOutcome(outcome, redact);
	return {
		...(files.length > 0 && !isShown && { markdown: markdownOf(files) }),
		...(files.length > 0 && { note: isShown ? IMAGES_SHOWN : SHOW_IMAGES }),
		taskId,
		status,
		...(seed !== undefined && { seed }),
		...(variant !== undefined && { variant }),
		files,
	};
}

export function shownFiles({ snapshot, delivery }: TaskOutcome, redact: Redact): string[] {
	const links = snapshot?.info ? linksOf(snapshot.info, delivery.files) : [];
	return links.map(({ url }) => redact.known(url));
}

/** Extensions of files that every browser shows as images. */
const SHOWN_AS_IMAGE = /\.(?:png|apng|jpe?g|jfif|gif|webp|avif|svg|bmp|ico)$/i;

/** Links as Markdown: images are shown, other files can be opened. */
export function markdownOf(urls: readonly string[]): string {
	const lines = urls.map((url) => {
		const name = nameInLink(url);
		return markdownLink(isPlainText(url) ? excerpt(url) : name || 'file', url, SHOWN_AS_IMAGE.test(name));
	});
	return lines.join('\n');
}

/** Whether the task succeeded, and its files were to be downloaded. */
export function wasToFetch({ failure, snapshot, delivery }: TaskOutcome): boolean {
	return !failure && snapshot?.info?.state === 'succeeded' && delivery.form !== 'urls';
}

/** The chosen output nodes that made no file. */
export function missingOutputs(outcome: TaskOutcome): string[] {
	if (!wasToFetch(outcome)) return [];
	const wanted = outcome.delivery.outputs?.map(({ nodeId }) => nodeId) ?? [];
	return wanted.filter((nodeId) => !outcome.snapshot?.info?.files.get(nodeId)?.length);
}

/** A hint about tasks that lack a file of a wanted node; `undefined` if there are none. */
export function missingOutputsHint(outcomes: readonly TaskOutcome[]): string | undefined {
	const lacking = outcomes.filter((outcome) => missingOutputs(outcome).length > 0);
	const info = lacking[0]?.snapshot?.info;
	if (!info) return undefined;
	const makers = [...info.files].flatMap(([nodeId, urls]) => (urls.length > 0 ? [nodeId] : []));
	const count = `${lacking.length} task(s)`;
	if (makers.length === 0 && info.finalFiles.length > 0) {
		return `The platform did not say which node made the files of ${count}, so there are none for 'Output Nodes'. Without that option you get the final files.`;
	}
	const found = makers.length > 0 ? ` Files came from ${listNodes(makers)}.` : '';
	const missing = new Set(lacking.flatMap(missingOutputs));
	return `${count} lack files from chosen output nodes: ${listNodes([...missing])}.${found}`;
}

function listNodes(nodeIds: readonly string[]): string {
	return nodeIds
		.slice(0, 10)
		.map((nodeId) => excerpt(nodeId, 40))
		.join(', ');
}

/** A hint about tasks with links that were not read; `undefined` if there are none. */
export function leftOutHint(infos: ReadonlyArray<TaskInfo | undefined>): string | undefined {
	const count = infos.filter((info) => info && info.filesLeftOut > 0).length;
	if (count === 0) return undefined;
	return `${count} task(s) list more than ${MOST_FILES} files, or links that are too long for any server; the files beyond these limits were left out.`;
}

const ROWS_NAMED = 10;

/** "37 done, 2 failed (rows 9 and 17), 1 still running": one line for the whole run. */
export function summarise(outcomes: readonly TaskOutcome[]): string {
	const order = ['done', 'failed', 'still running', 'not submitted', 'unclear whether submitted'];
	const groups = Map.groupBy(outcomes, ({ failure }) => groupOf(failure));
	return order
		.filter((group) => groups.has(group))
		.map((group) => {
			const own = groups.get(group) ?? [];
			return `${own.length} ${group}${GROUPS_WITH_ROWS.has(group) ? rowsOf(own) : ''}`;
		})
		.join(', ');
}

/** What an operator has to look at, row by row. */
const GROUPS_WITH_ROWS: ReadonlySet<string> = new Set(['failed', 'unclear whether submitted']);

function rowsOf(outcomes: readonly TaskOutcome[]): string {
	const rows = [...new Set(outcomes.map(({ itemIndex, facts: { item = itemIndex } }) => String(item + 1)))];
	const shown = rows.slice(0, ROWS_NAMED);
	const more = rows.length > shown.length ? [`${rows.length - shown.length} more`] : [];
	return ` (${rows.length === 1 ? 'row' : 'rows'} ${listOf([...shown, ...more])})`;
}

function groupOf(failure: Failure | undefined): string {
	if (!failure) return 'done';
	const { kind, details } = failure;
	if (kind === 'timedOut' || kind === 'stalled') return 'still running';
	if (kind === 'notSubmitted') return 'not submitted';
	return kind === 'unclear' && details?.mayExist === true ? 'unclear whether submitted' : 'failed';
}
