import type { IExecuteFunctions } from 'n8n-workflow';

import type { Result } from '../../shared/errors/failure';
import { readItem } from '../../shared/errors/expressionError';
import { KeyedQueue, type Slot } from '../../shared/run/keyedQueue';
import type { SessionChoice } from '../turns/turnSession';

/** The slots of a run's items; an item whose session is its own has none. */
export interface ItemSlots {
	of(itemIndex: number): Slot | undefined;
	/** Those that are left. */
	leaveAll(): void;
}

/** Of this n8n process: messages of a key are taken in the order in which their executions began. */
const QUEUE = new KeyedQueue();

/**
 * Queues up for the sessions of all items, before anything is awaited. Agents are not known yet, so that the queue is
 * that of a credential and a key.
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
