import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { StreamEnd } from '../agents/directives';
import type { AgentEnvelope } from '../agents/envelope';
import type { Fault } from '../faults/faultBoard';
import { pause } from '../time';
import { spoilData } from './answerFaults';
import { onceWhole, resetConnection } from './delivery';

/** Cuts the answer into `count` pieces without splitting a character. */
export function piecesOf(answer: string, count: number): string[] {
	const characters = [...answer];
	const size = Math.max(1, Math.ceil(characters.length / count));
	const pieces: string[] = [];
	for (let start = 0; start < characters.length; start += size) {
		pieces.push(characters.slice(start, start + size).join(''));
	}
	return pieces;
}

export interface StreamPlan {
	readonly pieces: readonly string[];
	readonly pauseMs: number;
	readonly end: StreamEnd | undefined;
	readonly faults: readonly Fault[];
	/** Called after each piece, with the number of pieces sent so far. */
	readonly between: (sent: number) => Promise<void>;
	readonly piece: (delta: string) => AgentEnvelope;
	readonly last: AgentEnvelope;
	/** Called before the last event is sent, because a client that has read it may use the session. */
	readonly settled: () => void;
	readonly whenWhole: () => void;
}

function event(envelope: AgentEnvelope, faults: readonly Fault[]): string {
	return `data: ${JSON.stringify(spoilData(envelope, faults))}\n\n`;
}

/** Ends the stream in another way than by its last event. */
function breakOff(response: ServerResponse, how: StreamEnd['how']): void {
	if (how === 'end') response.end();
	// Everything written before must arrive first.
	else if (how === 'cut') setImmediate(() => response.socket?.destroy());
}

function lastEvent({ last, faults }: StreamPlan): { text: string; how?: StreamEnd['how'] } {
	const text = `event: ${last.success_response ? 'done' : 'error'}\n${event(last, faults)}`;
	const fault = faults.find(({ kind }) => kind === 'truncatedJson');
	if (fault === undefined) return { text };
	const half = text.slice(0, Math.floor(text.length * 0.6));
	return { text: half, how: fault.rule.cut === 'length' ? 'end' : 'cut' };
}

/** Sends a turn as server-sent events. */
export async function deliverStream(reply: FastifyReply, plan: StreamPlan): Promise<FastifyReply> {
	const { pieces, end, faults } = plan;
	reply.hijack();
	const response = reply.raw;
	if (faults.some(({ kind }) => kind === 'resetAfter')) {
		resetConnection(response);
		return reply;
	}
	if (faults.some(({ kind, phase }) => kind === 'hang' && phase === 'delivery')) return reply;
	const slow = faults.find(({ kind }) => kind === 'slowBody');
	const pauseMs = slow === undefined ? plan.pauseMs : (slow.rule.ms ?? 500) / (pieces.length + 1);
	response.writeHead(200, {
		'content-type': 'text/event-stream; charset=utf-8',
		'cache-control': 'no-cache',
	});
	response.write(': the stream is open\n\n');
	for (const [index, delta] of pieces.entries()) {
		if (end !== undefined && index >= end.after) break;
		if (pauseMs > 0 && (index > 0 || slow !== undefined)) await pause(pauseMs);
		if (!response.destroyed) response.write(event(plan.piece(delta), faults));
		await plan.between(index + 1);
	}
	plan.settled();
	if (end !== undefined) {
		breakOff(response, end.how);
		return reply;
	}
	const { text, how } = lastEvent(plan);
	if (how === undefined) onceWhole(response, plan.whenWhole);
	response.write(text);
	breakOff(response, how ?? 'end');
	return reply;
}
