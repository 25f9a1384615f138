import { randomBytes } from 'node:crypto';
import type { InvocationEntry, SeenFile } from './agentBooks';
import { readScript } from './directives';
import type { PlannedInterrupt, Script } from './directives';
import { REASONS } from './envelope';
import { describeFiles } from './fileReader';
import type { InterruptAnswer, InvokeCall } from './invokeCall';
import type { PendingInterrupt, Session } from './session';
import { pause } from '../time';
import type { JsonRecord } from '../wireJson';

/** The result of a turn. */
export interface TurnResult {
	readonly outcome: 'completed' | 'interrupted' | 'failed';
	readonly answer: string;
	readonly interrupt: PendingInterrupt | undefined;
	/** Why the turn failed. */
	readonly detail: string;
}

/** The orders of this call: those in its message, or in a text that answers an interrupt. */
export function scriptOf({ message, interruptAnswer }: InvokeCall): Script {
	const result = interruptAnswer?.result;
	return readScript([message ?? '', typeof result === 'string' ? result : ''].join(' '));
}

function interruptWith(session: Session, plan: PlannedInterrupt): TurnResult {
	session.pending = { id: `int_${randomBytes(6).toString('hex')}`, plan };
	return { outcome: 'interrupted', answer: '', interrupt: session.pending, detail: '' };
}

function resultText({ result }: InterruptAnswer): string {
	return typeof result === 'string' ? result : JSON.stringify(result);
}

function answerTo(
	session: Session,
	entry: InvocationEntry,
	script: Script,
	files: readonly SeenFile[],
): string {
	const { message, interruptAnswered } = entry;
	const parts: string[] = [];
	if (script.recall) {
		const earlier = session.messages.slice(0, message === null ? undefined : -1);
		parts.push(earlier.length === 0 ? 'There is nothing to recall.' : earlier.join(' | '));
	}
	if (script.describeFiles) parts.push(describeFiles(files));
	if (script.answer !== undefined) parts.push(script.answer);
	if (interruptAnswered !== null) {
		const result = resultText(interruptAnswered);
		parts.push(parts.length > 0 ? `(${result})` : `Turn ${entry.turn}: the result was ${result}`);
	}
	return parts.length > 0 ? parts.join(' ') : `Turn ${entry.turn}: you said "${message ?? ''}"`;
}

/** Ends a turn that has nothing left to ask, with the failure or the answer that the message ordered. */
function finish(
	session: Session,
	entry: InvocationEntry,
	script: Script,
	files: readonly SeenFile[],
): TurnResult {
	const answer = answerTo(session, entry, script, files);
	const { fail } = script;
	return {
		outcome: fail === undefined ? 'completed' : 'failed',
		answer,
		interrupt: undefined,
		detail: fail ?? '',
	};
}

function decide(session: Session, entry: InvocationEntry, own: Script): TurnResult {
	const { halted } = session;
	session.pending = undefined;
	session.halted = undefined;
	const ordered = halted === undefined ? own : { ...halted.script, fail: own.fail ?? halted.script.fail };
	const files = [...(halted?.files ?? []), ...entry.files];
	const [next, ...further] = [...(halted?.further ?? []), ...own.interrupts];
	const breaksOff = halted !== undefined && own.fail !== undefined;
	if (next === undefined || breaksOff) return finish(session, entry, ordered, files);
	session.halted = { script: ordered, further, files };
	return interruptWith(session, next);
}

/** Carries out a turn that is already in the books. */
export async function performTurn(
	session: Session,
	entry: InvocationEntry,
	script: Script,
	untilReleased: () => Promise<void>,
): Promise<TurnResult> {
	if (entry.message !== null) session.messages.push(entry.message);
	entry.effects.push(...script.effects);
	if (script.takesMs > 0) await pause(script.takesMs);
	if (script.hold) await untilReleased();
	const result = decide(session, entry, script);
	entry.answer = result.answer;
	return result;
}

function interruptOnWire({ id, plan }: PendingInterrupt): JsonRecord {
	return plan.kind === 'question'
		? { id, kind: 'question', question: plan.question }
		: { id, kind: 'tool', tool_name: plan.toolName, arguments: plan.arguments };
}

/** Counts one token per four characters, so that a client has a number to add up. */
function tokensIn(...texts: readonly string[]): number {
	return Math.ceil(texts.join('').length / 4);
}

/** The `data` of the envelope that ends a turn. */
export function turnData(session: Session, entry: InvocationEntry, result: TurnResult): JsonRecord {
	const usage = { invocations: 1, total_tokens: tokensIn(entry.message ?? '', result.answer) };
	const { outcome, answer, interrupt, detail } = result;
	const where = { session_id: session.id, usage };
	if (outcome === 'failed') return { reason: 'agent_failed', detail, ...where };
	return {
		reason: outcome,
		...where,
		answer,
		interrupt: interrupt === undefined ? null : interruptOnWire(interrupt),
	};
}

export const FAILED_STATUS = REASONS.agent_failed;
