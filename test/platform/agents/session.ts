import { randomBytes } from 'node:crypto';
import type { SeenFile } from './agentBooks';
import type { PlannedInterrupt, Script } from './directives';
import { AgentRefusal } from './envelope';
import type { InterruptAnswer, InvokeCall } from './invokeCall';

export interface PendingInterrupt {
	readonly id: string;
	readonly plan: PlannedInterrupt;
}

/** The remaining orders of a message that an interrupt has halted. */
export interface HaltedWork {
	readonly script: Script;
	readonly further: readonly PlannedInterrupt[];
	readonly files: readonly SeenFile[];
}

/** One API conversation with an instance. */
export class Session {
	readonly id = `ses_${randomBytes(9).toString('base64url')}`;
	readonly messages: string[] = [];
	turns = 0;
	busy = false;
	gone = false;
	pending: PendingInterrupt | undefined;
	halted: HaltedWork | undefined;

	constructor(readonly agentId: string) {}

	/** Throws AgentRefusal if the session cannot accept this call now. */
	check(call: InvokeCall): void {
		if (this.busy)
			throw new AgentRefusal('session_busy', `The session ${this.id} is busy with another call.`);
		const answer = call.interruptAnswer;
		if (answer === undefined && this.pending !== undefined) {
			throw new AgentRefusal(
				'interrupt_pending',
				`The interrupt ${this.pending.id} waits for its interrupt_result.`,
			);
		}
		if (answer !== undefined && answer.id !== this.pending?.id) throw noInterrupt(answer);
	}
}

export function noInterrupt({ id }: InterruptAnswer): AgentRefusal {
	return new AgentRefusal('interrupt_not_found', `No interrupt ${id} is pending in this session.`);
}
