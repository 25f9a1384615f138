import type { IExecuteFunctions } from 'n8n-workflow';

import { member } from '../text/json';

type TriggerContext = Pick<IExecuteFunctions, 'getNode' | 'getParentNodes' | 'getWorkflowDataProxy'>;

const CHAT_TRIGGER = /(^|\.)chatTrigger$/;

/** Whether a Chat Trigger started the execution, in which case the chat shows the `output` field of the last node. */
export function isStartedByChat(context: TriggerContext): boolean {
	return isStartedBy(context, CHAT_TRIGGER);
}

/** Whether a trigger of this type started the execution, and not another trigger of the workflow. */
export function isStartedBy(context: TriggerContext, triggerType: RegExp): boolean {
	const triggers = context
		.getParentNodes(context.getNode().name)
		.filter(({ type, disabled }) => !disabled && triggerType.test(type));
	if (triggers.length === 0) return false;
	const select: unknown = context.getWorkflowDataProxy(0).$;
	return triggers.some(({ name }) => hasRun(select, name));
}

/** The value of `$('name').isExecuted` in an expression. */
function hasRun(select: unknown, nodeName: string): boolean {
	try {
		const node: unknown = typeof select === 'function' && Reflect.apply(select, undefined, [nodeName]);
		return member(node, 'isExecuted') === true;
	} catch {
		return false;
	}
}
