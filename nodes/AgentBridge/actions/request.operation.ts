import { randomUUID } from 'crypto';

import type { IDataObject, IExecuteFunctions, INodeProperties } from 'n8n-workflow';

import { isStartedByChat } from '../../shared/run/startedBy';
import { failInput, ok, type Result } from '../../shared/errors/failure';
import { excerpt, jsonText, type Json } from '../../shared/text/json';
import { textOrNumber } from '../../shared/text/textOf';
import { checkEntered, defineOptions, optionsCollection } from '../../shared/form/options';
import { lostDigits } from '../../shared/form/pastedJson';
import { readItem } from '../../shared/errors/expressionError';
import { isTool } from '../../shared/errors/nodeError';
import { valueAt } from '../../shared/form/expression';
import { createEventFilter, nameAt, readPath, withValueAt, type Frame, type Path } from '../frames';
import {
	CONNECTION_OPTIONS,
	DEFAULT_EVENT_PATH,
	EVENT_OPTIONS,
	FRAME_FIELD,
	MAX_SECONDS,
} from './fields.bridge';
import type { Operation } from '../../shared/run/operation';
import { inSession, readFrame, type OutgoingFrame } from './run';

/** When the wait for a reply ends. */
const REPLY_ENDS = defineOptions({
	replyComplete: {
		displayName: 'Reply Is Complete',
		name: 'replyComplete',
		type: 'options',
		options: [
			{ name: 'After the First Message', value: 'first' },
			{
				name: 'After Silence',
				value: 'silence',
				description: 'For platforms whose reply may have several messages',
			},
		],
		default: 'first',
		description: 'When to stop collecting messages of the reply. What comes later is dropped.',
	},
	silenceMs: {
		displayName: 'Silence (Milliseconds)',
		name: 'silenceMs',
		type: 'number',
		default: 1_000,
		typeOptions: { minValue: 0, maxValue: MAX_SECONDS },
		description:
			"How long no frame may come until the reply counts as complete. Without 'ID in Reply', the next item also waits for this silence, so that a second message is not taken for its reply. With 0, it does not wait.",
	},
	timeoutSeconds: {
		displayName: 'Timeout (Seconds)',
		name: 'timeoutSeconds',
		type: 'number',
		default: 60,
		typeOptions: { minValue: 0, maxValue: MAX_SECONDS },
		description: 'How long to wait for the complete reply to each frame',
	},
});

/** How the reply is recognized. The field names of a frame are not documented (§6.2), so the operator enters them. */
const REPLY_FIELDS: readonly INodeProperties[] = [
	{
		displayName: 'Reply Events',
		name: 'eventFilter',
		type: 'string',
		default: 'message',
		placeholder: 'e.g. message, interrupt',
		hint: 'With "message", the wait ends when {"type": "message", …} arrives; empty means any event',
		description:
			'The events that end the wait, separated by commas. Frames that belong to the request but name another event, such as tool events, are collected.',
	},
	{
		displayName: 'ID to Repeat',
		name: 'correlationPath',
		type: 'string',
		default: '',
		placeholder: 'e.g. message_id',
		hint: 'For {"message_id": "m-1", …}, enter message_id; a frame without an ID gets a new one',
		description:
			"Where the sent frame holds the value that its reply repeats. Leave it and 'ID in Reply' empty if your platform repeats none: each item then has a connection of its own.",
	},
	{
		displayName: 'ID in Reply',
		name: 'replyPath',
		type: 'string',
		default: '',
		placeholder: 'e.g. correlation_id',
		hint: 'For the reply {"correlation_id": "m-1", …}, enter correlation_id',
		description: 'Where the reply repeats that value',
	},
];

const REQUEST_OPTIONS = defineOptions({
	answerPath: {
		displayName: 'Answer Path',
		name: 'answerPath',
		type: 'string',
		default: '',
		placeholder: 'e.g. text',
		description:
			'Where the reply holds its text, which is then output as "answer", and also as "output" in executions that a chat started',
	},
	...CONNECTION_OPTIONS,
	...EVENT_OPTIONS,
	...REPLY_ENDS,
});

export const request: Operation = {
	value: 'request',
	name: 'Request Reply',
	description: 'Send a message, wait for the reply and collect the frames before it',
	action: 'Send message and wait for reply',
	fields: [FRAME_FIELD, ...REPLY_FIELDS, optionsCollection(REQUEST_OPTIONS)],
	execute: async (context) => {
		const asTool = isTool(context.getNode());
		const fromChat = isStartedByChat(context);
		return await inSession(context, async (session, itemIndex) => {
			const read = readItem(() => readRequest(context, itemIndex));
			if (!read.ok) return read;
			const { text, rule, correlation, timeoutMs, answerPath } = read.value;
			const exchange = await session.request(text, rule, timeoutMs);
			if (!exchange.ok) return exchange;
			const { replies, collected, notCollected, elapsedMs } = exchange.value;
			const reply = replies.at(-1) ?? {};
			const answer = answerOf(replies, answerPath);
			const event = rule.filter.eventOf(reply);
			const json: IDataObject = {
				reply,
				...(!rule.isOneMessage && { replies }),
				...(event !== undefined && { event }),
				...(answer !== undefined && { answer }),
				// The chat shows this field of the last node's output.
				...(fromChat && answer !== undefined && { output: answer }),
			};
			if (asTool) return ok(json);
			return ok({
				...json,
				...(correlation !== undefined && { correlation }),
				collected,
				...(notCollected > 0 && { notCollected }),
				elapsedMs,
			});
		});
	},
};

/** The value at the path; of several messages, all their texts. */
function answerOf(replies: readonly Frame[], path: Path | undefined): Json | undefined {
	const values = replies.map((one) => valueAt(path?.at, one)).filter((value) => value !== undefined);
	const texts = values.map(textOrNumber).filter(Boolean);
	return values.length > 1 && texts.length > 0 ? texts.join('\n\n') : values[0];
}

function readRequest(context: IExecuteFunctions, itemIndex: number) {
	const entered = (name: string): unknown => context.getNodeParameter(name, itemIndex, '');
	const option = (name: string, absent = ''): unknown =>
		context.getNodeParameter(`options.${name}`, itemIndex, absent);
	const given = readFrame(entered('frame'));
	if (!given.ok) return given;
	const events = entered('eventFilter');
	// An expression may return a list of events as an array.
	const list = Array.isArray(events) ? events.map(textOrNumber).join(',') : textOrNumber(events);
	const filter = createEventFilter(option('eventPath', DEFAULT_EVENT_PATH), list);
	if (!filter.ok) return filter;
	const toRepeat = readPath('ID to Repeat', entered('correlationPath'));
	if (!toRepeat.ok) return toRepeat;
	const inReply = readPath('ID in Reply', entered('replyPath'));
	if (!inReply.ok) return inReply;
	const answerPath = readPath('Answer Path', option('answerPath'));
	if (!answerPath.ok) return answerPath;
	const form = Object.fromEntries(Object.keys(REPLY_ENDS).map((name) => [name, option(name)]));
	const ends = checkEntered(form, REPLY_ENDS);
	if (!ends.ok) return ends;
	if (!inReply.value && filter.value.isOpen) {
		return failInput(
			'The node cannot tell which frame is the reply',
			"Fill in 'ID to Repeat' and 'ID in Reply', or fill in 'Reply Events'.",
		);
	}
	if (inReply.value && !toRepeat.value) {
		return failInput(
			"'ID in Reply' is filled in, but 'ID to Repeat' is not",
			"Enter in 'ID to Repeat' where the sent frame holds the value that the reply repeats, e.g. id.",
		);
	}
	const sent = withId(given.value, toRepeat.value);
	if (!sent.ok) return sent;
	const correlation = nameAt(toRepeat.value, sent.value);
	const { number } = ends.value;
	return ok({
		text: sent.value === given.value.frame ? given.value.text : (jsonText(sent.value) ?? ''),
		rule: {
			id: inReply.value && { at: inReply.value, value: correlation ?? '' },
			filter: filter.value,
			isOneMessage: form.replyComplete !== 'silence',
			silenceMs: number('silenceMs'),
		},
		correlation,
		timeoutMs: number('timeoutSeconds') * 1000,
		answerPath: answerPath.value,
	});
}

/** Adds a new ID to a frame that has no value where the reply finds the one to repeat. */
function withId({ frame, text }: OutgoingFrame, path: Path | undefined): Result<Frame> {
	if (!path || nameAt(path, frame) !== undefined) return ok(frame);
	const held = valueAt(path.at, frame);
	const shown = excerpt(path.text, 60);
	if (typeof held === 'object' && held !== null) {
		return failInput(
			`The frame contains an object or an array at "${shown}", which no reply can repeat`,
			"Point 'ID to Repeat' to a field with text or a number, or to one that is empty, which gets a new ID.",
		);
	}
	const lost = lostDigits(text);
	if (lost === undefined) return withValueAt(frame, path.text, randomUUID());
	return failInput(
		`The frame contains the number ${excerpt(lost, 40)}, which would lose digits when an ID is added`,
		`Add an ID at "${shown}" yourself: a frame that has one is sent unchanged.`,
	);
}
