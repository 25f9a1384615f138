import type { IExecuteFunctions } from 'n8n-workflow';

import { isJsonObject, jsonText, type JsonObject } from '../text/json';
import { shortSha256 } from '../text/sha256';
import { isTool } from '../errors/nodeError';

/** The index of an item; for its second and later requests a string such as `3.2`. */
export type ItemKey = number | string;

/**
 * What earlier tries of a node run have done for its items, kept in n8n's node context, which survives Retry On Fail
 * and Retry Execution, so that neither repeats the work.
 *
 * Entries belong to one run index, because a loop passes the same items through the node again and expects new results.
 * They outlive the delivery of errors, because n8n also retries a node whose first output item is an error.
 */
export interface RetryMemory {
	/** What was kept for the item, unless the item or the node has been edited since. */
	recall(item: ItemKey, fingerprint: string): JsonObject | undefined;
	/** Whether something was kept for the item, but the item or the node has been edited since. */
	isEdited(item: ItemKey, fingerprint: string): boolean;
	/** @param entry JSON, because it is stored with the execution */
	keep(item: ItemKey, fingerprint: string, entry: object): void;
	forget(item: ItemKey, fingerprint: string): void;
	clear(): void;
}

/** The path of entries in the node context. */
interface MemoryScope {
	readonly node: string;
	/** The index of the run within the execution; a word if entries outlive the run. */
	readonly run: number | string;
	readonly part: string;
}

export function openRetryMemory(context: IExecuteFunctions, node: string, part: string): RetryMemory {
	// A tool has no such memory: n8n counts each try as a run, and simultaneous calls as one run, so an entry could be
	// another person's answer.
	const nodeContext = isTool(context.getNode()) ? {} : context.getContext('node');
	return createRetryMemory(nodeContext, { node, run: runIndexOf(context), part });
}

/** @param nodeContext n8n's own object; what is written into it is stored with the execution */
export function createRetryMemory(nodeContext: Record<string, unknown>, scope: MemoryScope): RetryMemory {
	const entries = openEntries(nodeContext, scope);
	const entryOf = (item: ItemKey): JsonObject | undefined => {
		const entry = entries.get(String(item));
		return isJsonObject(entry) ? entry : undefined;
	};
	return {
		recall: (item, fingerprint) => {
			const entry = entryOf(item);
			return entry?.fingerprint === fingerprint ? entry : undefined;
		},
		isEdited: (item, fingerprint) => {
			const entry = entryOf(item);
			return entry !== undefined && entry.fingerprint !== fingerprint;
		},
		keep: (item, fingerprint, entry) => entries.set(String(item), { fingerprint, ...entry }),
		forget: (item) => entries.remove(String(item)),
		clear: () => entries.clear(),
	};
}

/** Entries of calls under way in this process. */
const underWay = new WeakSet<object>();

/**
 * The memory of an agent's tool. n8n counts each try of a call as a run, so entries are distinguished only by what the
 * agent asked for. The same request made twice at the same time counts as two.
 */
export function createToolMemory(
	nodeContext: Record<string, unknown>,
	scope: Omit<MemoryScope, 'run'>,
): Omit<RetryMemory, 'clear'> & { release(): void } {
	const entries = openEntries(nodeContext, { ...scope, run: 'tool' });
	const own = new Map<string, object>();
	const hold = (fingerprint: string, entry: object): void => {
		own.set(fingerprint, entry);
		underWay.add(entry);
	};
	return {
		recall: (_item, fingerprint) => {
			const entry = entries.get(fingerprint);
			if (!isJsonObject(entry) || underWay.has(entry)) return undefined;
			hold(fingerprint, entry);
			return entry;
		},
		isEdited: () => false,
		keep: (_item, fingerprint, entry) => {
			const kept = { fingerprint, ...entry };
			entries.set(fingerprint, kept);
			hold(fingerprint, kept);
		},
		forget: (_item, fingerprint) => {
			if (entries.get(fingerprint) === own.get(fingerprint)) entries.remove(fingerprint);
		},
		release: () => {
			for (const entry of own.values()) underWay.delete(entry);
		},
	};
}

/** The entries at a path in n8n's node context, which is stored with the execution. */
export function openEntries(nodeContext: Record<string, unknown>, { node, run, part }: MemoryScope) {
	const path = [node, String(run), part];
	const find = (): JsonObject => {
		let found: unknown = nodeContext;
		for (const step of path) found = isJsonObject(found) ? found[step] : undefined;
		return isJsonObject(found) ? found : {};
	};
	return {
		get: (key: string): unknown => {
			const entries = find();
			return Object.hasOwn(entries, key) ? entries[key] : undefined;
		},
		/** @param value must be JSON */
		set: (key: string, value: unknown): void => {
			// Created only now, so that runs without entries leave no trace in the execution's data.
			let parent = nodeContext;
			for (const step of path) {
				const known = parent[step];
				const child = isJsonObject(known) ? known : {};
				parent[step] = child;
				parent = child;
			}
			parent[key] = value;
		},
		remove: (key: string): boolean => Reflect.deleteProperty(find(), key),
		clear: (): void => {
			const entries = find();
			for (const key of Object.keys(entries)) Reflect.deleteProperty(entries, key);
		},
	};
}

export function runIndexOf(context: Pick<IExecuteFunctions, 'getWorkflowDataProxy'>): number {
	const runIndex: unknown = context.getWorkflowDataProxy(0).$runIndex;
	return typeof runIndex === 'number' ? runIndex : 0;
}

/**
 * Fingerprints of the input items and of the parameters and options that are part of the request: a retry with a longer
 * timeout, for example, does not send the request again, but one with another body does.
 * @param notPart the names of the other parameters and options
 */
export function requestFingerprints(
	context: Pick<IExecuteFunctions, 'getNode' | 'getInputData'>,
	notPart: readonly string[],
): (itemIndex: number) => string {
	const { options, limits, ...fields } = context.getNode().parameters;
	const includedIn = (group: unknown): Array<[string, unknown]> =>
		Object.entries(isJsonObject(group) ? group : {}).filter(([name]) => !notPart.includes(name));
	const entered = [options, limits].flatMap(includedIn);
	const fingerprintOf = fingerprinter([Object.fromEntries(includedIn(fields)), entered]);
	const items = context.getInputData();
	return (itemIndex) => fingerprintOf(items[itemIndex]?.json);
}

/**
 * Makes fingerprints of items from what is the same for two tries: the node's parameters as entered, and the item's
 * json. Resolved values are not the same: `{{ $now }}` differs at each try. Never throws.
 */
export function fingerprinter(rawParameters: unknown): (itemJson: unknown) => string {
	const ofNode = shortSha256(fingerprintedText(rawParameters));
	return (itemJson) => shortSha256(ofNode + fingerprintedText(itemJson));
}

/** Values that JSON cannot express, because they are too deep or contain themselves, have the same text. */
function fingerprintedText(value: unknown): string {
	return jsonText([value]) ?? '';
}
