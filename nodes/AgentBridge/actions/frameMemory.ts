import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { fail, ok, type Failure, type Result } from '../../shared/errors/failure';
import { isJsonObject } from '../../shared/text/json';
import { createRunMemory, fingerprinter, runIndexOf } from '../../shared/run/retryMemory';
import { isTool } from '../../shared/errors/nodeError';
import { SENT_BUT } from '../session';

/** What became of the frames of earlier tries of this node run: a retry sends the others only. */
export interface FrameMemory {
	/** @returns `undefined` where the frame was not sent */
	recall(itemIndex: number): Result<IDataObject> | undefined;
	/** How the items of this try ended, those that were recalled too. */
	keep(outcomes: ReadonlyArray<Result<IDataObject>>): void;
}

/** What says how long is waited, and not what is sent or read. */
const OF_THE_RUN: ReadonlySet<string> = new Set(['heartbeatFrame', 'heartbeatSeconds']);
const PART = 'frames';

export function openFrameMemory(context: IExecuteFunctions): FrameMemory {
	// An agent calls its tool again for another frame, in the same run and with the same item.
	if (isTool(context.getNode())) return { recall: () => undefined, keep: () => undefined };
	const memory = createRunMemory(context.getContext('node'), 'flowBridgeRuns', runIndexOf(context));
	const fingerprintOf = fingerprinter(sentParameters(context));
	const items = context.getInputData();
	const fingerprint = (itemIndex: number): string => fingerprintOf(items[itemIndex]?.json);
	return {
		recall: (itemIndex) => {
			const entry = memory.get(PART, itemIndex);
			// An item that was edited since is another one, and is sent.
			if (!isJsonObject(entry) || entry.fingerprint !== fingerprint(itemIndex)) return undefined;
			if (isJsonObject(entry.json)) return ok(entry.json);
			if (typeof entry.unclear !== 'string') return undefined;
			const { unclear: message, details } = entry;
			return fail({ kind: 'unclear', message, advice: SENT_BUT, ...(isJsonObject(details) && { details }) });
		},
		keep: (outcomes) => {
			const isOver = outcomes.every(({ ok: isOk }) => isOk);
			for (const [itemIndex, outcome] of outcomes.entries()) {
				const entry = entryOf(outcome);
				if (isOver || !entry) memory.remove(PART, itemIndex);
				else memory.set(PART, itemIndex, { fingerprint: fingerprint(itemIndex), ...entry });
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
	// Stopped while the reply was waited for: what had come until then is told only of frames that were sent.
	return kind === 'cancelled' && details?.collected !== undefined;
}

function sentParameters(context: IExecuteFunctions): unknown {
	const { options, timeoutSeconds: _ofTheRun, ...sent } = context.getNode().parameters;
	const kept = isJsonObject(options) ? Object.entries(options).filter(([name]) => !OF_THE_RUN.has(name)) : [];
	return [sent, kept];
}
