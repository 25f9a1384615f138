import type { INodeProperties } from 'n8n-workflow';

import { failInput, ok, type Result } from '../../shared/errors/failure';
import { optionGroups, readChoice } from '../../shared/form/options';
import { simplifyField } from '../../shared/form/sharedFields';
import type { Operation } from '../../shared/run/operation';
import type { SessionChoice } from '../turns/turn';
import { filesField, readFileRows } from './files';
import { streamField, type ItemForm } from './inputs';
import { readTurns, type Said } from './readTurn';
import { INVOKE_OPTIONS, TURN_OPTIONS } from './options';
import { inAgentRun } from './run';
import { takeTurns } from './runItems';

const messageField: INodeProperties = {
	displayName: 'Message',
	name: 'message',
	type: 'string',
	typeOptions: { rows: 3 },
	// The default is not an expression for the chat's message, because a field dragged here would be appended to it.
	default: '',
	placeholder: 'e.g. Where is my order?',
	hint: "In a chat, leave it empty to send the person's message",
	description:
		"What you say to the agent. If it is empty, the chat's message is sent, from the item's field chatInput.",
};

const sessionFields: readonly INodeProperties[] = [
	{
		displayName: 'Session',
		name: 'sessionMode',
		type: 'options',
		default: 'mapped',
		options: [
			{ name: 'By ID', value: 'explicit', description: "The platform's session ID, from an earlier output" },
			{
				name: 'By Key',
				value: 'mapped',
				description: 'A key of your own; n8n keeps its session in a Data Table',
			},
			{ name: 'New Each Time', value: 'new', description: 'Each item starts a new conversation' },
		],
		description: 'Which conversation the message belongs to',
	},
	{
		displayName: 'Session Key',
		name: 'sessionKey',
		type: 'string',
		// Empty by default for the same reason as "Message".
		default: '',
		placeholder: 'e.g. a customer number',
		hint: "In a chat, leave it empty to use the chat's own session",
		displayOptions: { show: { sessionMode: ['mapped'] } },
		description:
			'Identifies the conversation, e.g. by a customer number. It is evaluated for each item, so each person can have a session of their own. If it is empty, the sessionId of a chat is used; an item without either gets a new session.',
	},
	{
		displayName:
			"Take the key from $json: in a tool, $('Node').item is always the first item, whose session all would share.",
		name: 'toolKeyNotice',
		type: 'notice',
		default: '',
		displayOptions: { show: { '@tool': [true], sessionMode: ['mapped'] } },
	},
	{
		displayName: 'Session ID',
		name: 'sessionId',
		type: 'string',
		default: '={{ $json.session.id }}',
		displayOptions: { show: { sessionMode: ['explicit'] } },
		description: 'The ID under "session" in an earlier output of this agent',
	},
];

/** Sends a message to the agent and returns its answer, or its interrupt (§4.6). */
export const invoke: Operation = {
	value: 'invoke',
	name: 'Invoke Agent',
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
		return await inAgentRun(
			context,
			async (run) => await takeTurns(context, run, readTurns(context, run, readMessage)),
			readSession,
		);
	},
};

/** Which session an item's message belongs to. Without a key, the message starts a new one. */
function readSession(form: ItemForm): Result<SessionChoice> {
	const mode = readChoice("'Session'", ['mapped', 'explicit', 'new'], form.value('sessionMode'));
	if (!mode.ok) return mode;
	if (mode.value === 'new') return ok({ kind: 'new' });
	if (mode.value === 'explicit') {
		const id = form.filled(
			'sessionId',
			'Session ID',
			"Enter the session.id of an earlier output, or set 'Session' to 'New Each Time' for items that begin a session.",
		);
		return id.ok ? ok({ kind: 'explicit', id: id.value.trim() }) : id;
	}
	const key = form.textOrChat('sessionKey', 'Session Key', 'sessionId');
	if (!key.ok) return key;
	return ok(key.value.trim() ? { kind: 'mapped', key: key.value } : { kind: 'new' });
}

function readMessage(form: ItemForm): Result<Said> {
	const message = form.textOrChat('message', 'Message', 'chatInput');
	if (!message.ok) return message;
	const files = readFileRows(form);
	if (!files.ok) return files;
	if (!message.value.trim() && files.value.length === 0) {
		return failInput(
			"'Message' is empty for this item",
			"Enter a message for the agent. In a chat, leave 'Message' empty if the node is connected directly to the trigger; otherwise enter {{ $('Chat Trigger').item.json.chatInput }} with the name of your trigger.",
		);
	}
	return ok({ kind: 'message', message: message.value, files: files.value });
}
