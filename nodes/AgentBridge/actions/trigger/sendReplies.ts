import type { IRun } from 'n8n-workflow';

import { wordsOfError } from '../../../shared/errors/expressionError';
import type { Redact } from '../../../shared/text/redact';
import { lastItems } from '../../reply/pairedItems';
import type { Outbox } from '../../connection/outbox';
import { composeReply, type ReplySettings } from '../../reply/replyTemplate';
import { readHandedOver } from '../triggerConnection';
import { listNames, nameOf, type IncomingFrame, type Log } from './incomingFrame';

/** Sends replies over the trigger's connection: the output of executions, and the frames their nodes hand over. */
export class ReplySender {
	private hasWarnedOfQueue = false;

	/** @param settings undefined if the trigger does not reply by itself */
	constructor(
		private readonly nodeName: string,
		private readonly settings: ReplySettings | undefined,
		private readonly outbox: Pick<Outbox, 'send'>,
		private readonly redact: Redact,
		private readonly log: Log,
	) {}

	/**
	 * Replies to the frames of an execution that has ended. Must not throw.
	 * @param run undefined if n8n skipped the execution because it had already processed the frame
	 */
	ended(batch: readonly IncomingFrame[], run: IRun | undefined): void {
		if (!this.settings || !run) return;
		const why = whyNoReply(run);
		try {
			if (why !== undefined) this.refuse(batch, why);
			else this.reply(batch, run, this.settings);
		} catch (error) {
			// The execution has run: an error here must not look as if the execution had not started.
			this.refuse(batch, `the reply could not be built: ${wordsOfError(error)}`);
		}
	}

	/** Sends a frame that a node handed over as a response; ignores n8n's own responses. Must not throw. */
	responded(response: unknown): void {
		const text = readHandedOver(response);
		if (text !== undefined) this.outbox.send(text, '');
	}

	private reply(batch: readonly IncomingFrame[], run: IRun, settings: ReplySettings): void {
		const { runData, lastNodeExecuted } = run.data.resultData;
		if (Object.keys(runData).length === 0 || lastNodeExecuted === undefined) {
			this.refuse(batch, NO_OUTPUT, this.hasWarnedOfQueue ? 'debug' : 'warn');
			this.hasWarnedOfQueue = true;
			return;
		}
		if (lastNodeExecuted === this.nodeName) {
			this.refuse(batch, 'no node follows the trigger', 'debug');
			return;
		}
		const failed = new Map<string, Set<IncomingFrame>>();
		const unanswered = new Set(batch);
		let unpaired = 0;
		for (const { json, origin } of lastItems(runData, lastNodeExecuted, this.nodeName)) {
			// The position proves nothing: after an aggregation, items may be in another order than the frames.
			const received = batch[batch.length === 1 ? 0 : (origin ?? -1)];
			if (!received) {
				unpaired++;
				continue;
			}
			unanswered.delete(received);
			const text = composeReply(settings, json, received, this.redact);
			if (text.ok) this.outbox.send(text.value, nameOf(received));
			else failed.set(text.failure, (failed.get(text.failure) ?? new Set()).add(received));
		}
		for (const [why, those] of failed) this.refuse([...those], why);
		if (unpaired > 0) {
			this.log('warn', `${unpaired} item(s) of "${lastNodeExecuted}" were not sent: ${NOT_PAIRED}`);
		} else if (unanswered.size > 0) {
			this.refuse([...unanswered], `"${lastNodeExecuted}" ran last and ${NO_ITEM}`, 'info');
		}
	}

	private refuse(
		batch: readonly IncomingFrame[],
		why: string,
		level: 'debug' | 'info' | 'warn' = 'warn',
	): void {
		const text = `no reply to ${batch.length} frame(s): ${why}${listNames(batch.map(nameOf))}`;
		this.log(level, this.redact(text));
	}
}

const NO_OUTPUT =
	"n8n did not hand over the output of the workflow, as is usual in queue mode. Send the reply with an 'Agent Bridge' node and its option \"Use the Trigger's Connection\"";
const NOT_PAIRED =
	"n8n cannot tell which frames the items answer. Keep the items paired in the workflow, or set 'Max Frames per Execution' to 1";
const NO_ITEM =
	'has no item for them. If other branches of the workflow should also answer, have all of them end in one node';

/** Why an execution has no reply, as a clause. */
function whyNoReply({ status, waitTill, data }: IRun): string | undefined {
	if (waitTill || status === 'waiting') {
		return 'the execution is waiting, and n8n does not tell the trigger how it continues';
	}
	if (data.resultData.error || status !== 'success') return 'the execution failed';
	return undefined;
}
