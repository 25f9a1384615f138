import { randomUUID } from 'crypto';

import type { IDataObject, IExecuteFunctions, INodeProperties } from 'n8n-workflow';

import { isStartedByChat } from '../../shared/run/startedBy';
import { failInput, ok, type Result } from '../../shared/errors/failure';
import { excerpt, jsonText } from '../../shared/text/json';
import { pathSteps, readPath } from '../../shared/text/jsonPath';
import { textOf, textOrNumber } from '../../shared/text/textOf';
import { checkEntered, defineOptions, optionsCollection } from '../../shared/form/options';
import { lostDigits } from '../../shared/form/pastedJson';
import { readItem } from '../../shared/errors/expressionError';
import { isTool } from '../../shared/errors/nodeError';
import { createEventFilter, readName, withValueAt, type Frame } from '../frames';
import { EVENT_PATH, FRAME_FIELD, HEARTBEAT_OPTIONS, MAX_SECONDS } from './fields.bridge';
import type { Operation } from '../../shared/form/operation';
import { inSession, readFrame, type OutgoingFrame } from './run';

const REPLY_TIMEOUT = defineOptions({
	timeoutSeconds: {
		displayName: 'Timeout (Seconds)',
		name: 'timeoutSeconds',
		type: 'number',
		default: 60,
		typeOptions: { minValue: 0, maxValue: MAX_SECONDS },
		description: 'How long to wait for the reply to each frame',
	},
});

/** How the reply is recognized. The field names of a frame are not documented (§6.2), so the operator enters them. */
const REPLY_FIELDS: readonly INodeProperties[] = [
	{
		displayName: 'ID to Repeat',
		name: 'correlationPath',
		type: 'string',
		default: '',
		placeholder: 'e.g. message_id',
		description:
			'Where the sent frame holds the value that its reply repeats. If the frame has nothing there, a new ID is inserted.',
	},
	{
		displayName: 'ID in Reply',
		name: 'replyPath',
		type: 'string',
		default: '',
		placeholder: 'e.g. correlation_id',
		description:
			'Where the reply repeats that value. If your platform does not correlate frames, leave both paths empty and fill in "Reply Events".',
	},
	EVENT_PATH,
	{
		displayName: 'Reply Events',
		name: 'eventFilter',
		type: 'string',
		default: '',
		placeholder: 'e.g. message, interrupt',
		description:
			'The events that end the wait, separated by commas. Frames that belong to the request but name another event, such as tool events, are collected. Empty means any event.',
	},
	REPLY_TIMEOUT.timeoutSeconds,
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
	...HEARTBEAT_OPTIONS,
});

export const request: Operation = {
	value: 'request',
	name: 'Request',
	description: 'Send a frame, wait for the reply and collect the frames before it',
	action: 'Send frame and wait for reply',
	fields: [FRAME_FIELD, ...REPLY_FIELDS, optionsCollection(REQUEST_OPTIONS)],
	execute: async (context) => {
		const asTool = isTool(context.getNode());
		const fromChat = isStartedByChat(context);
		return await inSession(context, async (session, itemIndex) => {
			const read = readItem(() => readRequest(context, itemIndex));
			if (!read.ok) return read;
			const { text, rule, timeoutMs, answerPath } = read.value;
			const exchange = await session.request(text, rule, timeoutMs);
			if (!exchange.ok) return exchange;
			const { reply, collected, notCollected, elapsedMs } = exchange.value;
			const answer = readPath(reply, answerPath);
			const event = rule.filter.eventOf(reply);
			const json: IDataObject = {
				reply,
				...(event !== undefined && { event }),
				...(answer !== undefined && { answer }),
				// The chat shows this field of the last node's output.
				...(fromChat && answer !== undefined && { output: answer }),
			};
			if (asTool) return ok(json);
			return ok({
				...json,
				...(rule.correlation !== undefined && { correlation: rule.correlation }),
				collected: [...collected],
				...(notCollected > 0 && { notCollected }),
				elapsedMs,
			});
		});
	},
};

function readRequest(context: IExecuteFunctions, itemIndex: number) {
	const text = (name: string): string => {
		const value: unknown = context.getNodeParameter(name, itemIndex, '');
		// An expression may return a list of events as an array.
		return (Array.isArray(value) ? value.map(textOrNumber).join(',') : textOrNumber(value)).trim();
	};
	const given = readFrame(context.getNodeParameter('frame', itemIndex));
	if (!given.ok) return given;
	const { frame } = given.value;
	const filter = createEventFilter(text('eventPath'), text('eventFilter'));
	if (!filter.ok) return filter;
	const correlationPath = text('correlationPath');
	const replyPath = text('replyPath');
	if (pathSteps(replyPath).length === 0 && filter.value.isOpen) {
		return failInput(
			'The node cannot tell which frame is the reply',
			'Fill in "ID to Repeat" and "ID in Reply", or fill in "Reply Events".',
		);
	}
	const correlated = correlate(given.value, correlationPath, replyPath);
	if (!correlated.ok) return correlated;
	const timeoutSeconds: unknown = context.getNodeParameter('timeoutSeconds', itemIndex, 60);
	const seconds = checkEntered({ timeoutSeconds }, {}, REPLY_TIMEOUT);
	if (!seconds.ok) return seconds;
	return ok({
		text: correlated.value === frame ? given.value.text : (jsonText(correlated.value) ?? ''),
		rule: { replyPath, correlation: readName(correlated.value, correlationPath), filter: filter.value },
		timeoutMs: seconds.value.number('timeoutSeconds') * 1000,
		answerPath: textOf(context.getNodeParameter('options.answerPath', itemIndex, '')),
	});
}

/** Adds a new ID to a frame that has no value at the correlation path. */
function correlate(
	{ frame, text }: OutgoingFrame,
	correlationPath: string,
	replyPath: string,
): Result<Frame> {
	const hasPath = pathSteps(correlationPath).length > 0;
	if (!hasPath && pathSteps(replyPath).length > 0) {
		return failInput(
			'"ID in Reply" is filled in, but "ID to Repeat" is not',
			'Enter in "ID to Repeat" where the sent frame holds the value that the reply repeats, e.g. id.',
		);
	}
	if (!hasPath || readName(frame, correlationPath) !== undefined) return ok(frame);
	const held = readPath(frame, correlationPath);
	if (typeof held === 'object' && held !== null) {
		return failInput(
			`The frame contains an object or an array at "${excerpt(correlationPath, 60)}", which no reply can repeat`,
			'Point "ID to Repeat" to a field with text or a number, or to one that is empty, which gets a new ID.',
		);
	}
	const lost = lostDigits(text);
	if (lost === undefined) return withValueAt(frame, correlationPath, randomUUID());
	return failInput(
		`The frame contains the number ${excerpt(lost, 40)}, which would lose digits when an ID is added`,
		`Add an ID at "${excerpt(correlationPath, 60)}" yourself: a frame that has one is sent unchanged.`,
	);
}
