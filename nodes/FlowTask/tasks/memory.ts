import { isJsonObject, type JsonObject } from '../../shared/text/json';
import { createRunMemory, type RunMemory } from '../../shared/run/retryMemory';

/**
 * What this node run has already sent, kept in n8n's node context: it survives Retry On Fail and Retry
 * Execution, so that neither pays for a task twice.
 *
 * Entries belong to one run index, because a loop passes the same items through the same node again and
 * wants new tasks. They stay when the items are delivered: n8n also retries a node that returned normally,
 * if its first item holds an error.
 */
export interface TaskMemory {
	/** What is known of an item; `fingerprint` tells whether it is still the same item. */
	recall(itemIndex: number, fingerprint: string): Recollection;
	/** Where the engine notes what becomes of an item's task. */
	record(itemIndex: number, fingerprint: string, seeds: Readonly<Record<string, number>>): SubmitRecord;
	/** Uploaded images by the digest of their bytes. */
	readonly images: UploadedImages;
}

/**
 * - `new`: nothing was submitted for the item
 * - `task`: its task exists
 * - `unclear`: a submit was sent and its answer never came: a task may exist
 * - `edited`: a task exists, but the node or the item was changed since
 */
export type Recollection =
	| { readonly kind: 'new' }
	| { readonly kind: 'unclear' }
	| { readonly kind: 'edited' }
	| {
			readonly kind: 'task';
			readonly taskId: string;
			readonly submittedAtMs: number | undefined;
			readonly seeds: Readonly<Record<string, number>>;
	  };

/** Told by the engine at once, before anything else can fail. */
export interface SubmitRecord {
	/** @param reused the task was there already, so the seeds of this run were not sent */
	submitted(taskId: string, atMs: number, reused?: boolean): void;
	/** The submit was sent, and no answer says what became of it. */
	unclear(): void;
	/** The task came to a bad end, so that a retry has to make a new one. */
	spoiled(): void;
	/** The task came to its good end; left out where the same item goes on with the same task all the same. */
	delivered?(): void;
}

export interface UploadedImages {
	get(digest: string): string | undefined;
	set(digest: string, imageId: string): void;
}

const CONTEXT_KEY = 'flowTaskRuns';

/**
 * @param nodeContext n8n's own object; what is written into it is stored with the execution
 * @param runIndex counts the runs of the node within the execution
 */
export function createTaskMemory(nodeContext: Record<string, unknown>, runIndex: number): TaskMemory {
	const memory = createRunMemory(nodeContext, CONTEXT_KEY, runIndex);
	return {
		recall: (itemIndex, fingerprint) => recollect(memory.get('tasks', itemIndex), fingerprint),
		record: (itemIndex, fingerprint, seeds) => ({
			submitted: (taskId, atMs, reused = false) => {
				memory.set('tasks', itemIndex, { fingerprint, taskId, atMs, seeds: reused ? {} : { ...seeds } });
			},
			unclear: () => {
				memory.set('tasks', itemIndex, { fingerprint, unclear: true });
			},
			spoiled: () => {
				memory.remove('tasks', itemIndex);
			},
		}),
		images: uploadedImages(memory),
	};
}

/** Entries that a call under way has made. Those of a process that is gone are not among them. */
const underWay = new WeakSet<object>();

/**
 * The memory of an agent's tool. n8n raises the run index with each try of a call there, so entries are told
 * apart by what the agent has asked for alone. A good end removes them: the same words again want a new task,
 * and so do the same words said twice at once.
 */
export function createToolMemory(nodeContext: Record<string, unknown>): TaskMemory & { release(): void } {
	const memory = createRunMemory(nodeContext, CONTEXT_KEY, 'tool');
	const own = new Map<string, object>();
	const set = (fingerprint: string, entry: object): void => {
		memory.set('tasks', fingerprint, entry);
		own.set(fingerprint, entry);
		underWay.add(entry);
	};
	const remove = (fingerprint: string): void => {
		if (memory.get('tasks', fingerprint) === own.get(fingerprint)) memory.remove('tasks', fingerprint);
	};
	return {
		recall: (_itemIndex, fingerprint) => {
			const entry = memory.get('tasks', fingerprint);
			if (!isJsonObject(entry) || underWay.has(entry)) return { kind: 'new' };
			own.set(fingerprint, entry);
			underWay.add(entry);
			return recollect(entry, fingerprint);
		},
		record: (_itemIndex, fingerprint, seeds) => ({
			submitted: (taskId, atMs, reused = false) => {
				set(fingerprint, { fingerprint, taskId, atMs, seeds: reused ? {} : { ...seeds } });
			},
			unclear: () => {
				set(fingerprint, { fingerprint, unclear: true });
			},
			spoiled: () => {
				remove(fingerprint);
			},
			delivered: () => {
				remove(fingerprint);
			},
		}),
		images: uploadedImages(memory),
		release: () => {
			for (const entry of own.values()) underWay.delete(entry);
		},
	};
}

function uploadedImages(memory: RunMemory): UploadedImages {
	return {
		get: (digest) => {
			const imageId = memory.get('images', digest);
			return typeof imageId === 'string' ? imageId : undefined;
		},
		set: (digest, imageId) => {
			memory.set('images', digest, imageId);
		},
	};
}

function recollect(entry: unknown, fingerprint: string): Recollection {
	if (!isJsonObject(entry)) return { kind: 'new' };
	if (entry.fingerprint !== fingerprint) return { kind: 'edited' };
	if (typeof entry.taskId !== 'string') return { kind: entry.unclear === true ? 'unclear' : 'new' };
	return {
		kind: 'task',
		taskId: entry.taskId,
		submittedAtMs: typeof entry.atMs === 'number' ? entry.atMs : undefined,
		seeds: isJsonObject(entry.seeds) ? numbersOf(entry.seeds) : {},
	};
}

function numbersOf(object: JsonObject): Record<string, number> {
	return Object.fromEntries(
		Object.entries(object).flatMap(([key, value]) => (typeof value === 'number' ? [[key, value]] : [])),
	);
}
