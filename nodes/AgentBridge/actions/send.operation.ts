import type { IExecuteFunctions } from 'n8n-workflow';

import { ok, type Result } from '../../shared/errors/failure';
import { readItem } from '../../shared/errors/expressionError';
import { isJsonObject } from '../../shared/text/json';
import { booleanOf } from '../../shared/text/textOf';
import type { Operation } from '../../shared/form/operation';
import { optionsCollection } from '../../shared/form/options';
import { FRAME_FIELD, SEND_OPTIONS } from './fields.message';
import { inSession, readFrame } from './run';
import { canReachTrigger, handOver } from './triggerConnection';

const MAY_HAVE_ARRIVED =
	'The connection ended before the platform confirmed the frame, so it may or may not have arrived. Send it again only if a duplicate does no harm.';

/** Sends a frame for each item without waiting for replies. */
export const send: Operation = {
	value: 'send',
	name: 'Send',
	description: 'Send a frame without waiting for a reply',
	action: 'Send frame',
	fields: [FRAME_FIELD, optionsCollection(SEND_OPTIONS)],
	execute: async (context) => {
		const connectionOf = new Map<number, number>();
		return await inSession(
			context,
			async (session, itemIndex) => {
				const read = readItem(() => readFrame(context.getNodeParameter('frame', itemIndex)));
				if (!read.ok) return read;
				const { frame, text } = read.value;
				const byTrigger = readItem(() => isForTrigger(context, itemIndex));
				if (!byTrigger.ok) return byTrigger;
				if (byTrigger.value) {
					const handed = await handOver(context, text);
					return handed.ok ? ok({ handedOver: true, frame }) : handed;
				}
				const sent = await session.send(text);
				if (!sent.ok) return sent;
				connectionOf.set(itemIndex, sent.value);
				return ok({ sent: true, frame });
			},
			// The other side confirms a close only after it has received everything sent before, so a frame has arrived
			// unless its connection was lost.
			(itemIndex, lost) => {
				const failure = lost.get(connectionOf.get(itemIndex) ?? 0);
				if (!failure || failure.kind === 'credential') return failure;
				return { ...failure, kind: 'unclear', advice: `${MAY_HAVE_ARRIVED} ${failure.advice}` };
			},
		);
	},
};

/** Whether the trigger's connection is asked for, and the trigger can be reached. */
function isForTrigger(context: IExecuteFunctions, itemIndex: number): Result<boolean> {
	const options: unknown = context.getNodeParameter('options', itemIndex, {});
	const isWanted = isJsonObject(options) && booleanOf(options.useTriggerConnection) === true;
	return isWanted ? canReachTrigger(context) : ok(false);
}
