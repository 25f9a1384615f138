import type { IExecuteFunctions } from 'n8n-workflow';

import type { Result } from '../../shared/errors/failure';
import { readItem } from '../../shared/errors/expressionError';
import { KeyedQueue, type Slot } from '../../shared/run/keyedQueue';
import type { SessionChoice } from '../turns/turnSession';

/** The queue slots of a run's items. An item that has a session to itself has none. */
export interface ItemSlots {
	of(itemIndex: number): Slot | undefined;
	/** Leaves all remaining slots. */
	leaveAll(): void;
}

/** Shared by this n8n process: messages of a key are sent in the order in which their executions began. */
const QUEUE = new KeyedQueue();

/**
 * Queues up for the sessions of all items before anything is awaited. Agents are not known yet, so the queue is per
 * credential and key.
 */
export function enterQueue(
	context: IExecuteFunctions,
	credentialType: string,
	sessionOf: (itemIndex: number) => Result<SessionChoice>,
): ItemSlots {
	const owner = Symbol('run');
	const credentialId = context.getNode().credentials?.[credentialType]?.id ?? '';
	const slots = context.getInputData().map((_, itemIndex) => {
		const session = readItem(() => sessionOf(itemIndex));
		if (!session.ok || session.value.kind === 'new') return undefined;
		const { kind } = session.value;
		const name = session.value.kind === 'mapped' ? session.value.key : session.value.id;
		return QUEUE.enter(JSON.stringify([credentialId, kind, name]), owner);
	});
	return {
		of: (itemIndex) => slots[itemIndex],
		leaveAll: () => {
			for (const slot of slots) slot?.leave();
		},
	};
}
