import type { IRun } from 'n8n-workflow';

import { wordsOfError } from '../../../shared/errors/expressionError';
import type { Redact } from '../../../shared/text/redact';
import { assignFrames, lastItems, type LastItem } from '../../reply/pairedItems';
import { readHandedOver } from '../../reply/handOver';
import type { Outbox } from '../../connection/outbox';
import { composeReply, type ReplySettings } from '../../reply/replyTemplate';
import type { ExecutionListener, Log } from './startExecutions';
import { listNames, nameOf, type IncomingFrame } from './incomingFrame';

interface ReplySenderParts {
	readonly outbox: Pick<Outbox, 'send'>;
	readonly redact: Redact;
	readonly log: Log;
}

/**
 * Sends what executions put out, and what their nodes hand over, on the trigger's connection.
 * @param nodeName the trigger's
 * @param settings absent: the trigger does not reply by itself
 */
export function createReplySender(
	nodeName: string,
	settings: ReplySettings | undefined,
	{ outbox, redact, log }: ReplySenderParts,
): ExecutionListener {
	let hasWarnedOfQueue = false;

	const refuse = (batch: readonly IncomingFrame[], why: string, level: 'debug' | 'warn' = 'warn'): void => {
		const text = `no reply to ${batch.length} frame(s): ${why}${listNames(batch.map(nameOf))}`;
		log(level, redact(text));
	};

	const reply = (batch: readonly IncomingFrame[], run: IRun, how: ReplySettings): void => {
		const { runData, lastNodeExecuted } = run.data.resultData;
		if (Object.keys(runData).length === 0 || lastNodeExecuted === undefined) {
			refuse(batch, NO_OUTPUT, hasWarnedOfQueue ? 'debug' : 'warn');
			hasWarnedOfQueue = true;
			return;
		}
		if (lastNodeExecuted === nodeName) {
			refuse(batch, 'no node follows the trigger', 'debug');
			return;
		}
		const paired = pairWithFrames(lastItems(runData, lastNodeExecuted, nodeName), batch);
		const failed = new Map<string, Set<IncomingFrame>>();
		for (const { json, received } of paired) {
			if (!received) continue;
			const { frame, correlation } = received;
			const text = composeReply(how, { item: json, frame, correlation }, redact);
			if (text.ok) outbox.send(text.value, nameOf(received));
			else failed.set(text.failure, (failed.get(text.failure) ?? new Set()).add(received));
		}
		for (const [why, those] of failed) refuse([...those], why);
		const lost = paired.filter(({ received }) => !received).length;
		if (lost > 0) log('warn', `${lost} item(s) of "${lastNodeExecuted}" are not sent: ${NOT_PAIRED}`);
	};

	return {
		ended: (batch, run) => {
			if (!settings || !run) return;
			const why = whyNoReply(run);
			try {
				if (why !== undefined) refuse(batch, why);
				else reply(batch, run, settings);
			} catch (error) {
				// The execution has run: an error here must not look like one that did not start.
				refuse(batch, `it could not be built: ${wordsOfError(error)}`);
			}
		},
		responded: (response) => {
			for (const text of readHandedOver(response)) outbox.send(text, '');
		},
	};
}

/** Items with the frames that they reply to; without one where it cannot be told. */
function pairWithFrames(items: readonly LastItem[], batch: readonly IncomingFrame[]) {
	const origins = items.map(({ origin }) => origin);
	const frames = assignFrames(origins, batch.length);
	return items.map(({ json }, index) => ({ json, received: batch[frames[index] ?? -1] }));
}

const NO_OUTPUT =
	'n8n did not hand over the output of the workflow, as is usual in queue mode. Send the reply with an "Agent Bridge" node and its option "Use the Trigger\'s Connection"';
const NOT_PAIRED =
	'n8n cannot tell to which frames they belong. Keep the pairs of items in the workflow, or set "Max Frames per Execution" to 1';

/** Why an execution has no reply at all, as a clause. */
function whyNoReply({ status, waitTill, data }: IRun): string | undefined {
	if (waitTill || status === 'waiting') {
		return 'the execution waits, and n8n does not tell the trigger how it continues';
	}
	if (data.resultData.error || status !== 'success') return 'the execution failed';
	return undefined;
}
