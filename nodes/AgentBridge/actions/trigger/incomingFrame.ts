import type { IDataObject, INodeExecutionData, ITriggerFunctions } from 'n8n-workflow';

import { failInput, ok, type Result } from '../../../shared/errors/failure';
import { checkEntered } from '../../../shared/form/options';
import { textOf } from '../../../shared/text/textOf';
import { excerpt, isJsonObject } from '../../../shared/text/json';
import {
	createEventFilter,
	nameAt,
	readIncoming,
	readPath,
	type EventFilter,
	type Frame,
	type Path,
} from '../../frames';
import {
	readCorrelation,
	readReplySettings,
	type Correlation,
	type ReplySettings,
} from '../../reply/replyTemplate';
import type { Bridge } from '../../connection/failures';
import { DEFAULT_EVENT_PATH } from '../fields.bridge';
import { LISTEN_OPTIONS } from './fields.listen';

export type Log = (level: 'debug' | 'info' | 'warn' | 'error', text: string) => void;

export interface IncomingFrame {
	readonly frame: Frame;
	readonly event: string | undefined;
	readonly id: string | undefined;
	readonly receivedAt: string;
	/** The value that a reply repeats; undefined if there is none, or the trigger does not reply. */
	readonly correlation: Correlation | undefined;
}

export interface ListenSettings {
	readonly filter: EventFilter;
	/** Where a frame has its own ID. */
	readonly idPath: Path | undefined;
	readonly maxBatch: number;
	readonly maxQueued: number;
	readonly testTimeoutMs: number;
	/** How the trigger replies; undefined if it does not. */
	readonly reply: ReplySettings | undefined;
}

export function readListenSettings(context: ITriggerFunctions, options: IDataObject): Result<ListenSettings> {
	const filter = createEventFilter(
		options.eventPath ?? DEFAULT_EVENT_PATH,
		textOf(context.getNodeParameter('eventFilter', '')),
	);
	if (!filter.ok) return filter;
	// `openBridge` checks the interval, which matters only with a heartbeat.
	const numbers = checkEntered({ ...options, heartbeatSeconds: undefined }, LISTEN_OPTIONS);
	if (!numbers.ok) return numbers;
	const { number } = numbers.value;
	const idPath = readPath('ID Path', context.getNodeParameter('idPath', ''));
	if (!idPath.ok) return idPath;
	const reply = readReply(options.reply, idPath.value);
	if (!reply.ok) return reply;
	return ok({
		filter: filter.value,
		idPath: idPath.value,
		maxBatch: Math.floor(number('maxBatch')),
		maxQueued: Math.floor(number('maxQueued')),
		testTimeoutMs: number('testTimeoutSeconds') * 1000,
		reply: reply.value,
	});
}

/** @returns undefined if the option is not added */
function readReply(given: unknown, idPath: Path | undefined): Result<ReplySettings | undefined> {
	if (given === undefined || given === null) return ok(undefined);
	const asked = isJsonObject(given) ? given.frame : undefined;
	if (isJsonObject(asked)) return readReplySettings(asked, idPath);
	return failInput(
		"'Reply' has no frame, so nothing would be sent",
		'Click "Add frame" in the option \'Reply\', or remove the option.',
	);
}

/**
 * Reads an incoming frame with its event and ID.
 * @returns the frame, or words that complete the phrase "a frame that is"
 */
export function receive(
	text: string,
	{ peer }: Bridge,
	{ filter, idPath, reply }: ListenSettings,
): Result<IncomingFrame, string> {
	const incoming = readIncoming(text, peer.redact);
	if (!incoming.ok) return incoming;
	const frame = incoming.value;
	return ok({
		frame,
		event: filter.eventOf(frame),
		id: nameAt(idPath, frame),
		receivedAt: new Date().toISOString(),
		correlation: reply?.repeats && readCorrelation(text, frame, reply.repeats),
	});
}

export function toItem({ frame, event, id, receivedAt }: IncomingFrame): INodeExecutionData {
	return {
		json: {
			frame,
			...(event !== undefined && { event }),
			...(id !== undefined && { frameId: id }),
			receivedAt,
		},
	};
}

/** How the log names a frame; empty if it has neither an ID nor a value to repeat. */
export function nameOf({ id, correlation }: Pick<IncomingFrame, 'id' | 'correlation'>): string {
	return id ?? String(correlation?.value ?? '');
}

const NAMES_SHOWN_CHARS = 1_000;

/** A suffix for a log message that names the frames, so that they can be found on the platform. */
export function listNames(names: readonly string[]): string {
	const known = names.filter(Boolean);
	return known.length > 0 ? ` (IDs: ${excerpt(known.join(', '), NAMES_SHOWN_CHARS)})` : '';
}
