import type { IExecuteFunctions } from 'n8n-workflow';

import { ok, type Result } from '../../shared/errors/failure';
import { readItem } from '../../shared/errors/expressionError';
import { booleanOf } from '../../shared/text/textOf';
import type { Operation } from '../../shared/run/operation';
import { defineOptions, optionsCollection } from '../../shared/form/options';
import { CONNECTION_OPTIONS, FRAME_FIELD } from './fields.bridge';
import { inSession, readFrame } from './run';
import { canReachTrigger, handOver } from './triggerConnection';

const SEND_OPTIONS = defineOptions({
	...CONNECTION_OPTIONS,
	useTriggerConnection: {
		displayName: "Use the Trigger's Connection",
		name: 'useTriggerConnection',
		type: 'boolean',
		default: true,
		description:
			'Whether the Agent Bridge Trigger that started the execution sends the frame, over its own connection. Turn this on if an account may have only one connection. It works in queue mode too. Tests in the editor and retries of an execution open a connection of their own.',
	},
});

export const send: Operation = {
	value: 'send',
	name: 'Send Frame',
	description: 'Send a message without waiting for a reply',
	action: 'Send message',
	fields: [FRAME_FIELD, optionsCollection(SEND_OPTIONS)],
	execute: async (context) =>
		await inSession(context, async (session, itemIndex) => {
			const read = readItem(() => readFrame(context.getNodeParameter('frame', itemIndex)));
			if (!read.ok) return read;
			const { frame, text } = read.value;
			const byTrigger = readItem(() => isForTrigger(context, itemIndex));
			if (!byTrigger.ok) return byTrigger;
			const sent = byTrigger.value ? await handOver(context, text) : await session.send(text, itemIndex);
			if (!sent.ok) return sent;
			return ok(byTrigger.value ? { handedOver: true, frame } : { sent: true, frame });
		}),
};

/** Whether the trigger sends the item's frame: the option asks for that, and the trigger accepts frames. */
function isForTrigger(context: IExecuteFunctions, itemIndex: number): Result<boolean> {
	const isWanted = booleanOf(context.getNodeParameter('options.useTriggerConnection', itemIndex, false));
	return isWanted === true ? canReachTrigger(context) : ok(false);
}
