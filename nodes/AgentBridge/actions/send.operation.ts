import type { IExecuteFunctions } from 'n8n-workflow';

import { fail, ok } from '../../shared/errors/failure';
import { readItem } from '../../shared/errors/expressionError';
import { isJsonObject } from '../../shared/text/json';
import type { Operation } from '../../shared/form/operation';
import { optionsCollection } from '../../shared/form/options';
import { FRAME_FIELD, SEND_OPTIONS } from './fields.message';
import { inSession, readFrame, type ItemOutcome } from './run';
import { reachTrigger } from './triggerConnection';

const MAY_HAVE_ARRIVED =
	'The connection ended before the platform confirmed it, so the frame may or may not have arrived. Your workflow decides whether to send it again.';

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
				const trigger = readItem(() => triggerOf(context, itemIndex));
				if (!trigger.ok) return trigger;
				if (trigger.value) {
					const handed = await trigger.value.handOver(text);
					return handed.ok ? ok({ handedOver: true, frame }) : handed;
				}
				const sent = await session.send(text);
				if (!sent.ok) return sent;
				connectionOf.set(itemIndex, sent.value);
				return ok({ sent: true, frame });
			},
			async (session, outcomes) => {
				// The other side answers our close only after it has received everything before it, so each frame has left by
				// then.
				const lost = await session.close();
				const confirm = (itemIndex: number, outcome: ItemOutcome): ItemOutcome => {
					const failure = lost.get(connectionOf.get(itemIndex) ?? 0);
					if (!outcome.ok || !failure) return outcome;
					if (failure.kind === 'credential') return fail(failure);
					return fail({ ...failure, kind: 'unclear', advice: `${MAY_HAVE_ARRIVED} ${failure.advice}` });
				};
				return new Map([...outcomes].map(([itemIndex, one]) => [itemIndex, confirm(itemIndex, one)]));
			},
		);
	},
};

/** The trigger's connection, if the option asks for it and the trigger is reachable. */
function triggerOf(context: IExecuteFunctions, itemIndex: number): ReturnType<typeof reachTrigger> {
	const options: unknown = context.getNodeParameter('options', itemIndex, {});
	const isWanted = isJsonObject(options) && options.useTriggerConnection === true;
	return isWanted ? reachTrigger(context) : ok(undefined);
}
