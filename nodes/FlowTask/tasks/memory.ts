import * as v from 'valibot';

import { excerpt } from '../../shared/text/json';
import {
	createRetryMemory,
	createToolMemory,
	openEntries,
	type ItemKey,
	type RetryMemory,
} from '../../shared/run/retryMemory';

/** What earlier tries of this node run have sent, so that no task is paid for twice. */
export interface TaskMemory {
	/** @param fingerprint shows whether it is still the same item */
	recall(item: ItemKey, fingerprint: string): Recollection;
	record(item: ItemKey, fingerprint: string, seeds: SentSeeds, prompt?: string): SubmitRecord;
	/** Uploaded images by the digest of their bytes. */
	readonly images: UploadedImages;
	/** To be called at the end of the run. */
	release(): void;
}

/** `node.parameter` -> the seed that is sent. */
type SentSeeds = Readonly<Record<string, number>>;

/**
 * - `new`: nothing was submitted for the item
 * - `task`: its task exists
 * - `unclear`: a submit was sent but got no clear answer, so a task may exist; `taskId` if the answer named one
 * - `edited`: an earlier try submitted the item, but the node or the item has changed since
 */
export type Recollection =
	| { readonly kind: 'new' }
	| { readonly kind: 'unclear'; readonly taskId?: string }
	| { readonly kind: 'edited' }
	| {
			readonly kind: 'task';
			readonly taskId: string;
			readonly submittedAtMs: number | undefined;
			readonly seeds: SentSeeds;
			/** The start of the prompt, for file names and the column `prompt` of the task log. */
			readonly prompt: string | undefined;
	  };

/** Records what became of an item's submit and task. Each fact is recorded at once, before anything else can fail. */
export interface SubmitRecord {
	/** @param reused whether the task already existed, so that the seeds of this run were not sent */
	submitted(taskId: string, atMs: number, reused?: boolean): void;
	/** The submit was sent but got no clear answer. @param taskId the ID in that answer, if any */
	unclear(taskId?: string): void;
	/** The task failed, so a retry must make a new one. */
	failed(): void;
	/** The item has what it asked for: its task succeeded, or was submitted if the run only submits. */
	delivered(): void;
}

export interface UploadedImages {
	get(digest: string): string | undefined;
	set(digest: string, imageId: string): void;
}

const NODE = 'flowTaskRuns';
const PROMPT_CHARS = 200;
const Seeds = v.fallback(v.record(v.string(), v.number()), {});

/**
 * @param nodeContext n8n's own object; what is written into it is stored with the execution
 * @param run the index of the node's run within the execution, or `tool` for an agent's tool: there, delivery removes
 *   the entry, because a later call with the same input asks for a new task
 */
export function createTaskMemory(nodeContext: Record<string, unknown>, run: number | 'tool'): TaskMemory {
	const scope = { node: NODE, part: 'tasks' };
	const tool = run === 'tool' ? createToolMemory(nodeContext, scope) : undefined;
	const memory = tool ?? createRetryMemory(nodeContext, { ...scope, run });
	const images = openEntries(nodeContext, { node: NODE, run, part: 'images' });
	return {
		recall: (item, fingerprint) => recollect(memory, item, fingerprint),
		record: (item, fingerprint, seeds, prompt = '') => ({
			submitted: (taskId, atMs, reused = false) =>
				memory.keep(item, fingerprint, {
					taskId,
					atMs,
					seeds: reused ? {} : { ...seeds },
					...(prompt && { prompt: excerpt(prompt, PROMPT_CHARS) }),
				}),
			unclear: (named) =>
				memory.keep(item, fingerprint, { unclear: true, ...(named !== undefined && { named }) }),
			failed: () => memory.forget(item, fingerprint),
			delivered: () => tool?.forget(item, fingerprint),
		}),
		images: {
			get: (digest) => {
				const imageId = images.get(digest);
				return typeof imageId === 'string' ? imageId : undefined;
			},
			set: images.set,
		},
		release: () => tool?.release(),
	};
}

function recollect(
	memory: Pick<RetryMemory, 'recall' | 'isEdited'>,
	item: ItemKey,
	fingerprint: string,
): Recollection {
	const entry = memory.recall(item, fingerprint);
	if (!entry) return { kind: memory.isEdited(item, fingerprint) ? 'edited' : 'new' };
	const { taskId, atMs, seeds, prompt, unclear, named } = entry;
	if (typeof taskId !== 'string') {
		if (unclear !== true) return { kind: 'new' };
		return { kind: 'unclear', ...(typeof named === 'string' && { taskId: named }) };
	}
	return {
		kind: 'task',
		taskId,
		submittedAtMs: typeof atMs === 'number' ? atMs : undefined,
		seeds: v.parse(Seeds, seeds),
		prompt: typeof prompt === 'string' ? prompt : undefined,
	};
}
