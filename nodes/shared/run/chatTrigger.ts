import type { IExecuteFunctions } from 'n8n-workflow';

import { member } from '../text/json';

const CHAT_TRIGGER = /(^|\.)chatTrigger$/;

/** Whether a Chat Trigger started the execution: the chat then shows the `output` field of the last node. */
export function isStartedByChat(
	context: Pick<IExecuteFunctions, 'getNode' | 'getParentNodes' | 'getWorkflowDataProxy'>,
): boolean {
	const triggers = context
		.getParentNodes(context.getNode().name)
		.filter(({ type, disabled }) => !disabled && CHAT_TRIGGER.test(type));
	if (triggers.length === 0) return false;
	const select: unknown = context.getWorkflowDataProxy(0).$;
	return triggers.some(({ name }) => hasRun(select, name));
}

/** What `$('name').isExecuted` says in an expression. */
function hasRun(select: unknown, nodeName: string): boolean {
	try {
		if (typeof select !== 'function') return false;
		return member(Reflect.apply(select, undefined, [nodeName]), 'isExecuted') === true;
	} catch {
		return false;
	}
}
