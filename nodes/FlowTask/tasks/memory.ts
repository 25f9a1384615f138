import * as v from 'valibot';

import type { EffectMemory } from '../../shared/effects/due';
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
	/**
	 * What is told of the item's submit and task: each fact is kept at once, before anything else can fail. A failed task is
	 * forgotten, so that a retry makes a new one.
	 */
	record(item: ItemKey, fingerprint: string, seeds: SentSeeds, prompt?: string): EffectMemory;
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

export interface UploadedImages {
	get(digest: string): string | undefined;
	set(digest: string, imageId: string): void;
}

const NODE = 'flowTaskRuns';
/** As much of a prompt as is remembered and recorded. */
export const LONGEST_PROMPT_CHARS = 200;
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
			// The seeds of this run were not sent with a task that existed before.
			sent: (taskId, atMs, isReused) =>
				memory.keep(item, fingerprint, {
					taskId,
					atMs,
					seeds: isReused ? {} : { ...seeds },
					...(prompt && { prompt: excerpt(prompt, LONGEST_PROMPT_CHARS) }),
				}),
			unclear: (named) =>
				memory.keep(item, fingerprint, { unclear: true, ...(named !== undefined && { named }) }),
			done: (outcome) => (outcome === 'failed' ? memory : tool)?.forget(item, fingerprint),
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
