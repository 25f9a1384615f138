import type { IExecuteFunctions } from 'n8n-workflow';

import { failInput, ok, type Result } from '../../shared/errors/failure';
import { optionGroups, readChoice } from '../../shared/form/options';
import { simplifyField } from '../../shared/form/simplifyField';
import type { Operation } from '../../shared/form/operation';
import type { SessionChoice } from '../turns/turn';
import { filesField, messageField, sessionFields, streamField } from './fields';
import { readFileRows } from './files';
import { readFilled, readOrChat, type Said } from './inputs';
import { INVOKE_OPTIONS, TURN_OPTIONS } from './options';
import { runItems } from './runItems';

/** Sends a message to the agent and returns its answer, or its interrupt (§4.6). */
export const invoke: Operation = {
	value: 'invoke',
	name: 'Invoke',
	description: 'Send a message to the agent and get its answer',
	action: 'Invoke agent',
	fields: [
		messageField,
		...sessionFields,
		filesField,
		streamField,
		simplifyField,
		...optionGroups({ ...TURN_OPTIONS, ...INVOKE_OPTIONS }),
	],
	async execute(context) {
		return await runItems(context, readSession, readMessage);
	},
};

/** Which session an item's message belongs to. Without a key, the message starts a new one. */
function readSession(context: IExecuteFunctions, itemIndex: number): Result<SessionChoice> {
	const mode = readChoice(
		'"Session"',
		['mapped', 'explicit', 'new'],
		context.getNodeParameter('sessionMode', itemIndex),
	);
	if (!mode.ok) return mode;
	if (mode.value === 'new') return ok({ kind: 'new' });
	if (mode.value === 'explicit') {
		const id = readFilled(
			context,
			itemIndex,
			'sessionId',
			'Session ID',
			'Enter the session.id of an earlier output, or set "Session" to "New Each Time" for items that begin a session.',
		);
		return id.ok ? ok({ kind: 'explicit', id: id.value.trim() }) : id;
	}
	const key = readOrChat(context, itemIndex, 'sessionKey', 'Session Key', 'sessionId');
	if (!key.ok) return key;
	return ok(key.value.trim() ? { kind: 'mapped', key: key.value } : { kind: 'new' });
}

function readMessage(context: IExecuteFunctions, itemIndex: number): Result<Said> {
	const message = readOrChat(context, itemIndex, 'message', 'Message', 'chatInput');
	if (!message.ok) return message;
	const files = readFileRows(context, itemIndex);
	if (!files.ok) return files;
	if (!message.value.trim() && files.value.length === 0) {
		return failInput(
			'"Message" is empty for this item',
			'Enter a message for the agent. In a chat, leave "Message" empty if the node is connected directly to the trigger; otherwise enter {{ $(\'Chat Trigger\').item.json.chatInput }} with the name of your trigger.',
		);
	}
	return ok({ kind: 'message', message: message.value, files: files.value });
}
