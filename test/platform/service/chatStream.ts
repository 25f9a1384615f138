import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Holds } from '../chat/holds';
import type { ChatRecord } from '../chat/ledger';
import type { Exit, Step } from '../chat/script';
import type { Fault } from '../faults/faultBoard';
import { pause } from '../time';
import { spoilData } from './answerFaults';
import { onceWhole, resetConnection } from './delivery';

const COMMENT = ': keep-alive\n\n';
/** How long to wait before a reset, which discards what the other side has not read yet. */
const ARRIVAL_MS = 20;

export interface ChatLine {
	readonly response: ServerResponse;
	readonly record: ChatRecord;
	readonly holds: Holds;
	readonly faults: readonly Fault[];
	/** Aborted once the client has left. */
	readonly gone: AbortSignal;
}

async function writeOut({ response, gone }: ChatLine, bytes: string | Buffer): Promise<void> {
	if (gone.aborted || response.write(bytes)) return;
	await once(response, 'drain', { signal: gone }).catch(() => undefined);
}

/** Writes one event; on a slow connection in two parts, cut anywhere, even within a character. */
async function writeEvent(line: ChatLine, text: string, slowMs: number): Promise<void> {
	if (slowMs === 0) return writeOut(line, text);
	const bytes = Buffer.from(text);
	const middle = Math.ceil(bytes.length / 2);
	for (const part of [bytes.subarray(0, middle), bytes.subarray(middle)]) {
		await pause(slowMs / 2, line.gone);
		await writeOut(line, part);
	}
}

async function leave(line: ChatLine, exit: Exit, end: () => void): Promise<void> {
	const { response, gone } = line;
	switch (exit) {
		case 'end':
			onceWhole(response, end);
			response.end();
			return;
		case 'reset':
			await pause(ARRIVAL_MS, gone);
			if (!gone.aborted) end();
			resetConnection(response);
			return;
		case 'close':
			await pause(ARRIVAL_MS, gone);
			if (!gone.aborted) end();
			response.socket?.destroy();
			return;
		case 'silence':
			end();
	}
}

async function take(line: ChatLine, step: Step, slowMs: number): Promise<void> {
	const event = (data: unknown): string => `data: ${JSON.stringify(spoilData(data, line.faults))}\n\n`;
	switch (step.kind) {
		case 'comment':
			return writeOut(line, COMMENT);
		case 'chunk':
			await writeEvent(line, event(step.data), slowMs);
			if (!line.gone.aborted) line.record.chunkSent();
			return;
		case 'event':
			return writeEvent(line, event(step.data), slowMs);
		case 'half': {
			const bytes = Buffer.from(event(step.data));
			return writeOut(line, bytes.subarray(0, Math.floor(bytes.length / 2)));
		}
		case 'done':
			return writeEvent(line, 'data: [DONE]\n\n', slowMs);
		case 'pause':
			return pause(step.ms, line.gone);
		case 'hold':
			return line.holds.pass(line.gone);
		case 'exit':
			return leave(line, step.exit, () => line.record.ended(step.ended));
	}
}

/** Sends a stream according to its script, each event at once. */
export async function playScript(line: ChatLine, steps: readonly Step[]): Promise<void> {
	const { response, faults, gone } = line;
	const slow = faults.find(({ kind }) => kind === 'slowBody');
	const events = steps.filter(({ kind }) => kind === 'chunk' || kind === 'event' || kind === 'done').length;
	const slowMs = slow === undefined ? 0 : (slow.rule.ms ?? 500) / Math.max(1, events);
	response.writeHead(200, {
		'content-type': 'text/event-stream; charset=utf-8',
		'cache-control': 'no-cache',
	});
	response.flushHeaders();
	for (const step of steps) {
		if (gone.aborted) return;
		await take(line, step, slowMs);
	}
}
