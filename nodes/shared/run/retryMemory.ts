import type { IExecuteFunctions } from 'n8n-workflow';

import { isJsonObject, jsonText, type JsonObject } from '../text/json';
import { shortSha256 } from '../text/sha256';
import { isTool } from '../errors/nodeError';

/** What stands for an item: its index, and for one of several requests of an item more than that. */
export type ItemKey = number | string;

/**
 * What earlier tries of a node run have done for its items, kept in n8n's node context: it survives Retry On Fail and
 * Retry Execution, so that neither does it twice.
 *
 * Entries belong to one run index, because a loop passes the same items through the same node again and
 * wants new results. They stay when the items are delivered: n8n also retries a node that returned normally,
 * if its first item holds an error.
 */
export interface RetryMemory {
	/** What was kept for the item, unless the item or the node was edited since. */
	recall(item: ItemKey, fingerprint: string): JsonObject | undefined;
	/** Whether something was kept for the item before it or the node was edited. */
	isEdited(item: ItemKey, fingerprint: string): boolean;
	/** @param entry JSON: it is stored with the execution */
	keep(item: ItemKey, fingerprint: string, entry: object): void;
	forget(item: ItemKey, fingerprint: string): void;
	/** Forgets all: when nothing failed, nothing is tried again. */
	clear(): void;
}

/** Where entries are in the node context; its form is read by other versions of this package, too. */
export interface MemoryScope {
	/** Keeps this node's entries apart from others'. */
	readonly node: string;
	/** Counts the runs of the node within the execution; a word if entries outlive the run. */
	readonly run: number | string;
	readonly part: string;
}

/** The memory of this run of a node. */
export function openRetryMemory(context: IExecuteFunctions, node: string, part: string): RetryMemory {
	// n8n counts each try of a tool as a run, and simultaneous calls as one: an entry under that index may be another
	// person's answer.
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

/** Entries that a call under way has made. Those of a process that is gone are not among them. */
const underWay = new WeakSet<object>();

/**
 * The memory of an agent's tool. n8n raises the run index with each try of a call there, so entries are told apart
 * only by what the agent asked for. The same words twice at once are two requests.
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

/** What n8n stores with the execution at a place of its node context. */
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
		/** @param value JSON */
		set: (key: string, value: unknown): void => {
			// Created when there is something to keep, so that runs without entries leave no trace in the execution's data.
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

/** Counts the runs of the node within the execution. */
export function runIndexOf(context: Pick<IExecuteFunctions, 'getWorkflowDataProxy'>): number {
	const runIndex: unknown = context.getWorkflowDataProxy(0).$runIndex;
	return typeof runIndex === 'number' ? runIndex : 0;
}

type RequestFlags = Readonly<Record<string, { readonly isPartOfRequest: boolean }>>;

/** The entered options that make another request when they are changed. */
export function requestOptions(entered: unknown, options: RequestFlags): Array<[string, unknown]> {
	if (!isJsonObject(entered)) return [];
	return Object.entries(entered).filter(([name]) => options[name]?.isPartOfRequest !== false);
}

/**
 * Fingerprints of the input items and of the parameters that decide what is requested: a retry with, say, a longer
 * timeout does not request again, one with another body does.
 * @param notPart fields that are no part of the request
 */
export function requestFingerprints(
	context: Pick<IExecuteFunctions, 'getNode' | 'getInputData'>,
	optionFields: RequestFlags,
	notPart: readonly string[] = [],
): (itemIndex: number) => string {
	const { options, limits, ...fields } = context.getNode().parameters;
	const asked = Object.entries(fields).filter(([name]) => !notPart.includes(name));
	const entered = [options, limits].flatMap((group) => requestOptions(group, optionFields));
	const fingerprintOf = fingerprinter([Object.fromEntries(asked), entered]);
	const items = context.getInputData();
	return (itemIndex) => fingerprintOf(items[itemIndex]?.json);
}

/**
 * Makes fingerprints of items from what does not move between two tries: the node's parameters as they were
 * entered and the item's json. Resolved values would not do: `{{ $now }}` differs at each try. Never throws.
 */
export function fingerprinter(rawParameters: unknown): (itemJson: unknown) => string {
	const ofNode = shortSha256(fingerprintedText(rawParameters));
	return (itemJson) => shortSha256(ofNode + fingerprintedText(itemJson));
}

function fingerprintedText(value: unknown): string {
	return jsonText([value]) ?? piecesOf(value);
}

/** Far more than is needed to tell two items apart; an object that contains itself has no end. */
const MOST_PIECES = 100_000;

/** What is nested too deeply for JSON, or holds what JSON cannot: piece by piece, in an order of its own. */
function piecesOf(value: unknown): string {
	const pieces: string[] = [];
	const open: unknown[] = [value];
	while (open.length > 0 && pieces.length < MOST_PIECES) {
		const one = open.pop();
		if (typeof one === 'object' && one !== null) {
			const entries = Object.entries(one);
			pieces.push(JSON.stringify(entries.map(([key]) => key)));
			open.push(...entries.map(([, inner]: [string, unknown]) => inner));
		} else pieces.push(`${typeof one} ${JSON.stringify(String(one))}`);
	}
	return pieces.join();
}
