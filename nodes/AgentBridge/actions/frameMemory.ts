import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { fail, ok, type Failure, type Result } from '../../shared/errors/failure';
import { isJsonObject } from '../../shared/text/json';
import { openRetryMemory, requestFingerprints } from '../../shared/run/retryMemory';
import { SENT_BUT } from '../connection/requestSession';
import { REQUEST_OPTIONS } from './fields.message';

/** The outcomes of frames that earlier tries of this node run sent. A retry sends only the other frames. */
export function openFrameMemory(context: IExecuteFunctions) {
	const memory = openRetryMemory(context, 'flowBridgeRuns', 'frames');
	const fingerprintOf = requestFingerprints(context, REQUEST_OPTIONS, ['timeoutSeconds']);
	return {
		/** @returns `undefined` if the item's frame should be sent */
		recall: (itemIndex: number): Result<IDataObject> | undefined => {
			const { json, unclear, details } = memory.recall(itemIndex, fingerprintOf(itemIndex)) ?? {};
			if (isJsonObject(json)) return ok(json);
			if (typeof unclear !== 'string') return undefined;
			const known = isJsonObject(details) && { details };
			return fail({ kind: 'unclear', message: unclear, advice: SENT_BUT, ...known });
		},
		/** @param outcomes of this try, including those that were recalled */
		keep: (outcomes: ReadonlyArray<Result<IDataObject>>): void => {
			memory.clear();
			if (outcomes.every(({ ok: isOk }) => isOk)) return;
			for (const [itemIndex, outcome] of outcomes.entries()) {
				const entry = entryOf(outcome);
				if (entry) memory.keep(itemIndex, fingerprintOf(itemIndex), entry);
			}
		},
	};
}

function entryOf(outcome: Result<IDataObject>): IDataObject | undefined {
	if (outcome.ok) return { json: outcome.value };
	const { message, details } = outcome.failure;
	return mayHaveArrived(outcome.failure) ? { unclear: message, ...(details && { details }) } : undefined;
}

function mayHaveArrived({ kind, details }: Failure): boolean {
	if (kind === 'unclear' || kind === 'timedOut') return true;
	// The run was stopped while waiting for the reply. Frames are listed only if the item's own frame was sent.
	return kind === 'cancelled' && details?.collected !== undefined;
}
