import { Readable } from 'node:stream';

import { wireRequest, type WireTurn } from '../../../../nodes/AgentInvoke/wire/request';
import { concludeAnswer } from '../../../../nodes/AgentInvoke/wire/conclusion';
import type { Wire } from '../../../../nodes/AgentInvoke/wire/description';
import { WireReader } from '../../../../nodes/AgentInvoke/wire/reader';
import { readStream } from '../../../../nodes/shared/http/sse';
import { valueOf } from '../../results';
import { redactor } from '../../../../nodes/shared/text/redact';

export interface Account {
	readonly wire: Wire;
	readonly baseUrl: string;
	readonly invokePath: string;
	readonly token: string;
}

export interface Asking {
	readonly sessionId?: string;
	readonly stream?: boolean;
	/** A path or a body that replaces the description's. */
	readonly path?: string;
	readonly body?: object;
}

export function message(text: string): WireTurn {
	return { kind: 'message', message: text, files: [] };
}

/** Makes one call with the wire's own library over a real connection and reads it until it ends. */
export async function ask(account: Account, turn: WireTurn, asking: Asking = {}) {
	const { wire, baseUrl, invokePath, token } = account;
	const { sessionId = '', stream = false } = asking;
	const request = valueOf(wireRequest(wire, turn, { sessionId, stream, uuid: 'u-1' }));
	const reader = new WireReader(wire, redactor([token]).known);
	let status = 0;
	let headers: Record<string, string> = {};
	let broken = '';
	const deltas: string[] = [];
	try {
		const response = await fetch(`${baseUrl}${asking.path ?? (request.path || invokePath)}`, {
			method: 'POST',
			headers: {
				...request.headers,
				'content-type': 'application/json',
				authorization: `Bearer ${token}`,
			},
			body: JSON.stringify(asking.body ?? request.body),
		});
		({ status } = response);
		headers = Object.fromEntries(response.headers);
		const body = response.body ? Readable.fromWeb(response.body) : Readable.from([]);
		for await (const events of readStream(body, wire.stream.format === 'jsonLines')) {
			for (const event of events) {
				reader.read(event);
				if (reader.delta !== '') deltas.push(reader.delta);
			}
			if (reader.isClosed) break;
		}
	} catch (error) {
		broken = String(error);
	}
	const outcome = concludeAnswer(reader, { status, headers, broken, sessionId });
	return { outcome, deltas, request };
}
