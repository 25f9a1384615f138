import type { INodeProperties } from 'n8n-workflow';

import { fail, failInput, ok, NOT_SENT, type Result } from '../../shared/errors/failure';
import type { Operation } from '../../shared/run/operation';
import { optionGroups, readChoice } from '../../shared/form/options';
import { simplifyField } from '../../shared/form/sharedFields';
import { refuseLossyJson, refuseRounded } from '../../shared/form/pastedJson';
import { jsonText, parseJson, type Json } from '../../shared/text/json';
import { isBlank, textOf } from '../../shared/text/textOf';
import type { SessionChoice } from '../turns/turn';
import { streamField, type ItemForm } from './inputs';
import { readTurns, type ReadTurn, type Said } from './readTurn';
import { RESUME_OPTIONS, TURN_OPTIONS } from './options';
import { inAgentRun } from './run';
import { takeTurns } from './runItems';

const fields: readonly INodeProperties[] = [
	{
		displayName: 'Session ID',
		name: 'resumeSessionId',
		type: 'string',
		required: true,
		default: '={{ $json.session.id }}',
		hint: `After other nodes: ${inAsked('session.id')}`,
		description:
			'The session ID from the \'Interrupt\' output. If there are other nodes in between, put a "No Operation" node first and refer to it by its name.',
	},
	{
		displayName: 'Interrupt ID',
		name: 'interruptId',
		type: 'string',
		default: '={{ $json.interrupt.id }}',
		hint: `After other nodes: ${inAsked('interrupt.id')}`,
		description: "ID of the interrupt, from the 'Interrupt' output",
	},
	{
		displayName: 'Tool',
		name: 'interruptTool',
		type: 'string',
		default: '={{ $json.interrupt.tool }}',
		hint: `After other nodes: ${inAsked('interrupt.tool')}`,
		description:
			'The tool that the interrupt asked for. It is sent only if the description in the credential asks for it.',
	},
	{
		displayName: 'Decision',
		name: 'decision',
		type: 'options',
		default: 'answer',
		options: [
			{
				name: 'Answer',
				value: 'answer',
				description: 'Send the answer to the question, or the result of the tool',
			},
			{
				name: 'Decline',
				value: 'decline',
				description: 'Tell the agent that its request was declined, so that it continues without a result',
			},
		],
		description: 'What to tell the agent',
	},
	{
		displayName: 'Result',
		name: 'result',
		type: 'string',
		typeOptions: { rows: 3 },
		default: '',
		displayOptions: { show: { decision: ['answer'] } },
		placeholder: 'e.g. {{ $json.answer }}',
		description: 'What the person answered or the tool returned. Text that is valid JSON is sent as JSON.',
	},
	{
		displayName: 'Reason',
		name: 'declineReason',
		type: 'string',
		default: '',
		displayOptions: { show: { decision: ['decline'] } },
		placeholder: 'e.g. not approved',
		description: 'Why the request was declined',
	},
];

/** Answers an interrupt in its session, and returns what the agent says next. */
export const resume: Operation = {
	value: 'resume',
	name: 'Resume Agent',
	description: 'Answer an interrupt so that the agent continues',
	action: 'Resume agent',
	fields: [...fields, streamField, simplifyField, ...optionGroups({ ...TURN_OPTIONS, ...RESUME_OPTIONS })],
	async execute(context) {
		return await inAgentRun(
			context,
			async (run) => await takeTurns(context, run, onceEach(readTurns(context, run, readAnswer))),
			readResumed,
		);
	},
};

/**
 * Refuses items that answer the interrupt of an earlier item: the agent could act twice. With an idempotency key, that
 * says which answers are one.
 */
function onceEach(read: ReadonlyArray<Result<ReadTurn>>): Array<Result<ReadTurn>> {
	const firstRows = new Map<string, number>();
	return read.map((item, row) => {
		if (!item.ok || item.value.said.kind !== 'results' || item.value.idempotencyKey !== undefined)
			return item;
		const { session, said } = item.value;
		const asked = said.results.map(({ interruptId, tool }) => [interruptId, tool]);
		const name = JSON.stringify([session, asked]);
		const firstRow = firstRows.get(name) ?? row;
		firstRows.set(name, firstRow);
		if (firstRow === row) return item;
		return failInput(
			`This item answers the same interrupt as row ${firstRow + 1} of the input`,
			`The agent could act twice on it. Pass each interrupt on once, e.g. with a 'Remove Duplicates' node. ${NOT_SENT}`,
		);
	});
}

function readResumed(form: ItemForm): Result<SessionChoice> {
	const id = form.filled('resumeSessionId', 'Session ID', useEarlier('session.id'));
	return id.ok ? ok({ kind: 'explicit', id: id.value.trim() }) : id;
}

/**
 * Reads the interrupt's ID, which may be empty, because some agents give none. A missing value, unlike an empty one,
 * means that a node in between dropped the ID.
 */
function readInterruptId(form: ItemForm): Result<string> {
	const given = form.value('interruptId', '');
	if (given === undefined || given === null) {
		return failInput(
			"'Interrupt ID' is empty for this item",
			`${useEarlier('interrupt.id')} If your agent gives its interrupts no IDs, empty the field.`,
		);
	}
	const text = form.text('interruptId', 'Interrupt ID');
	return text.ok ? ok(text.value.trim()) : text;
}

function useEarlier(path: string): string {
	return `An interrupt is answered with the IDs of the 'Interrupt' output. If there are other nodes in between, such as Wait, put a "No Operation" node first, after the 'Interrupt' outputs of both Agent Invoke nodes, and refer to it: ${inAsked(path)}. ${NOT_SENT}`;
}

/** Agent Invoke itself would give the first interrupt each time, so a node that every interrupt passes is referred to. */
function inAsked(path: string): string {
	return `{{ $('No Operation, do nothing').item.json.${path} }}`;
}

function readAnswer(form: ItemForm): Result<Said> {
	const interrupt = readInterruptId(form);
	if (!interrupt.ok) return interrupt;
	const reason = form.text('declineReason', 'Reason');
	if (!reason.ok) return reason;
	const given = form.value('decision');
	// A missing decision must not count as an answer, because the agent may act on an answer that no one gave.
	if (isBlank(given)) {
		return failInput(
			"'Decision' is empty for this item",
			`Check that its expression returns "answer" or "decline" for each item. ${NOT_SENT}`,
		);
	}
	const decision = readChoice("'Decision'", ['answer', 'decline'], given);
	if (!decision.ok) return decision;
	const result: Result<Json> =
		decision.value === 'decline' ? ok({ declined: true, reason: reason.value }) : readResult(form);
	if (!result.ok) return result;
	return ok({
		kind: 'results',
		results: [
			{
				interruptId: interrupt.value,
				tool: textOf(form.value('interruptTool', '')).trim(),
				result: result.value,
			},
		],
	});
}

/** Reads the result as JSON if it parses, otherwise as text. */
function readResult(form: ItemForm): Result<Json> {
	const value = form.value('result', '');
	// An interrupt is answered only once, so a field that is missing, or was not filled in, must not be the answer.
	if (value === undefined || Number.isNaN(value) || form.entered('result') === '') {
		return failInput(
			"'Result' is empty for this item",
			`Enter what the person answered or the tool returned. If it is an expression, check that it returns a value for each item. If the tool returned nothing, enter null. ${NOT_SENT}`,
		);
	}
	if (typeof value === 'string') {
		const parsed = parseJson(value);
		if (parsed === undefined) return ok(value);
		const loss = refuseLossyJson('Result', value);
		return loss ? fail(loss) : ok(parsed);
	}
	const rounded = refuseRounded('Result', value);
	if (rounded) return fail(rounded);
	const result = parseJson(jsonText(value) ?? '');
	if (result !== undefined) return ok(result);
	return failInput("'Result' is nested too deeply", 'Pass on only what the agent needs.');
}
