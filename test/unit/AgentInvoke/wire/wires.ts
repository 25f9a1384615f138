import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';

import { concludeAnswer, type WireEnded } from '../../../../nodes/AgentInvoke/wire/conclusion';
import { readWire, type Wire } from '../../../../nodes/AgentInvoke/wire/description';
import { WireReader } from '../../../../nodes/AgentInvoke/wire/reader';
import { readStream, type StreamEvent } from '../../../../nodes/shared/http/sse';
import { redactor } from '../../../../nodes/shared/text/redact';
import { valueOf } from '../../results';

export const TOKEN = 'agt_wire_test_0123456789';

export function wireAsShipped(name: string): string {
	return readFileSync(join(__dirname, '../../../../docs/wires', `${name}.json`), 'utf8');
}

/** The description with the operator's own values filled in. */
export function wireText(name: string): string {
	return wireAsShipped(name).replace(/YOUR-[A-Z-]+/g, 'mine-1');
}

export const wireOf = (text: string): Wire => valueOf(readWire(text));

export function body(json: unknown): StreamEvent {
	return { data: JSON.stringify(json), isWholeBody: true };
}

export function event(json: unknown, name?: string): StreamEvent {
	return { name, data: typeof json === 'string' ? json : JSON.stringify(json), isWholeBody: false };
}

export function read(wire: Wire, events: readonly StreamEvent[], ended: Partial<WireEnded> = {}) {
	const reader = new WireReader(wire, redactor([TOKEN]).known);
	for (const one of events) reader.read(one);
	return concludeAnswer(reader, { status: 200, headers: {}, broken: '', sessionId: '', ...ended });
}

/** The events that the transport reads from a body that ends after these bytes. */
export async function eventsIn(bytes: Buffer, hasLines = false): Promise<StreamEvent[]> {
	const stream = Readable.from(bytes.length > 0 ? [bytes] : []);
	const events: StreamEvent[] = [];
	for await (const some of readStream(stream, hasLines)) events.push(...some);
	return events;
}
