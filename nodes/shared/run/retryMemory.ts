import type { IExecuteFunctions } from 'n8n-workflow';

import { jsonText } from '../text/json';
import { shortSha256 } from '../text/sha256';

/**
 * What a run of a node has done already, kept in n8n's node context: it survives Retry On Fail and Retry
 * Execution, so that neither does it twice.
 *
 * Entries belong to one run index, because a loop passes the same items through the same node again and
 * wants new results. They stay when the items are delivered: n8n also retries a node that returned normally,
 * if its first item holds an error.
 */
export interface RunMemory {
	get(part: string, key: string | number): unknown;
	/** @param value JSON: it is stored with the execution */
	set(part: string, key: string | number, value: unknown): void;
	remove(part: string, key: string | number): void;
}

/**
 * @param nodeContext n8n's own object; what is written into it is stored with the execution
 * @param name keeps this node's entries apart from others'
 * @param runIndex counts the runs of the node within the execution; a word where entries outlive the run
 */
export function createRunMemory(
	nodeContext: Record<string, unknown>,
	name: string,
	runIndex: number | string,
): RunMemory {
	// Made when there is something to keep, so that runs without any leave no trace in the execution's data.
	const make = (part: string): Record<string | number, unknown> =>
		child(child(child(nodeContext, name), String(runIndex)), part);
	const entriesOf = (part: string): Record<string | number, unknown> | undefined => {
		const runs = nodeContext[name];
		const run = isRecord(runs) ? runs[runIndex] : undefined;
		const entries = isRecord(run) ? run[part] : undefined;
		return isRecord(entries) ? entries : undefined;
	};
	return {
		get: (part, key) => {
			const entries = entriesOf(part);
			return entries && Object.hasOwn(entries, key) ? entries[key] : undefined;
		},
		set: (part, key, value) => {
			make(part)[key] = value;
		},
		remove: (part, key) => {
			const entries = entriesOf(part);
			if (entries) Reflect.deleteProperty(entries, key);
		},
	};
}

function child(parent: Record<string, unknown>, key: string): Record<string | number, unknown> {
	const known = parent[key];
	if (isRecord(known)) return known;
	const made = {};
	parent[key] = made;
	return made;
}

function isRecord(value: unknown): value is Record<string | number, unknown> {
	return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Counts the runs of the node within the execution. */
export function runIndexOf(context: Pick<IExecuteFunctions, 'getWorkflowDataProxy'>): number {
	const runIndex: unknown = context.getWorkflowDataProxy(0).$runIndex;
	return typeof runIndex === 'number' ? runIndex : 0;
}

/**
 * Makes fingerprints of items from what does not move between two tries: the node's parameters as they were
 * entered and the item's json. Resolved values are no use: `{{ $now }}` is another one at each try. Never throws.
 */
export function fingerprinter(rawParameters: unknown): (itemJson: unknown) => string {
	const ofNode = shortSha256(textOf(rawParameters));
	return (itemJson) => shortSha256(ofNode + textOf(itemJson));
}

function textOf(value: unknown): string {
	return jsonText([value]) ?? piecesOf(value);
}

/** Far more than tells two items apart; an object that holds itself has no end. */
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
