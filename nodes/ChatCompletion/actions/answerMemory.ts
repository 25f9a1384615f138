import type { IExecuteFunctions } from 'n8n-workflow';

import { isJsonObject, type JsonObject } from '../../shared/text/json';
import { createRunMemory, fingerprinter, runIndexOf } from '../../shared/run/retryMemory';

/** Answers that earlier tries of this node run have got: a retry asks, and pays, for the others only. */
export interface AnswerMemory {
	recall(itemIndex: number): JsonObject | undefined;
	keep(itemIndex: number, answer: JsonObject): void;
	/** Nothing failed, so nothing will be tried again. */
	clear(): void;
}

/** Options that say how the answers are got, and not what they are to be. */
const OF_THE_RUN: ReadonlySet<string> = new Set([
	'concurrency',
	'idleTimeoutSeconds',
	'maxImageSizeMb',
	'requestsPerSecond',
	'retries',
	'streamReasoning',
	'timeoutSeconds',
]);

const PART = 'answers';

export function openAnswerMemory(context: IExecuteFunctions): AnswerMemory {
	const memory = createRunMemory(context.getContext('node'), 'flowChatRuns', runIndexOf(context));
	const fingerprintOf = fingerprinter(askedParameters(context));
	const items = context.getInputData();
	const fingerprint = (itemIndex: number): string => fingerprintOf(items[itemIndex]?.json);
	return {
		recall: (itemIndex) => {
			const entry = memory.get(PART, itemIndex);
			if (!isJsonObject(entry) || entry.fingerprint !== fingerprint(itemIndex)) return undefined;
			return isJsonObject(entry.answer) ? entry.answer : undefined;
		},
		keep: (itemIndex, answer) => {
			memory.set(PART, itemIndex, { fingerprint: fingerprint(itemIndex), answer });
		},
		clear: () => {
			items.forEach((_, itemIndex) => memory.remove(PART, itemIndex));
		},
	};
}

function askedParameters(context: IExecuteFunctions): unknown {
	const { options, ...asked } = context.getNode().parameters;
	const kept =
		typeof options === 'object' && options !== null
			? Object.entries(options).filter(([name]) => !OF_THE_RUN.has(name))
			: [];
	return [asked, kept];
}
