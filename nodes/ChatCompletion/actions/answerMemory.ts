import type { IExecuteFunctions } from 'n8n-workflow';

import { isJsonObject, type JsonObject } from '../../shared/text/json';
import { openRetryMemory, requestFingerprints } from '../../shared/run/retryMemory';
import { CHAT_OPTIONS } from './options';

/** Answers of earlier tries of this node run, which a retry does not ask and pay for again. */
export type AnswerMemory = ReturnType<typeof openAnswerMemory>;

export function openAnswerMemory(context: IExecuteFunctions) {
	const memory = openRetryMemory(context, 'flowChatRuns', 'answers');
	const fingerprintOf = requestFingerprints(context, CHAT_OPTIONS);
	return {
		recall: (itemIndex: number): JsonObject | undefined => {
			const { answer } = memory.recall(itemIndex, fingerprintOf(itemIndex)) ?? {};
			return isJsonObject(answer) ? answer : undefined;
		},
		keep: (itemIndex: number, answer: JsonObject): void =>
			memory.keep(itemIndex, fingerprintOf(itemIndex), { answer }),
		clear: (): void => memory.clear(),
	};
}
