import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate } from 'node:timers/promises';

import type { JsonObject } from '../../../nodes/shared/text/json';
import type { Ending } from './streamForms';

/** A chat platform whose answers a test scripts byte by byte. */
export interface ScriptedServer {
	readonly baseUrl: string;
	/** Bodies of the requests so far. */
	readonly requests: JsonObject[];
	readonly headers: IncomingHttpHeaders[];
	answer: (body: JsonObject, response: ServerResponse) => unknown;
	close(): Promise<void>;
}

export async function openScriptedServer(): Promise<ScriptedServer> {
	const server = createServer((request, response) => {
		response.on('error', () => undefined);
		const chunks: Buffer[] = [];
		request
			.on('data', (data: Buffer) => chunks.push(data))
			.on('end', () => {
				const body = JSON.parse(Buffer.concat(chunks).toString()) as JsonObject;
				scripted.requests.push(body);
				scripted.headers.push(request.headers);
				void scripted.answer(body, response);
			});
	});
	await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
	const scripted: ScriptedServer = {
		baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		requests: [],
		headers: [],
		answer: (_body, response) => response.end(),
		close: async () => {
			server.closeAllConnections();
			await new Promise((resolve) => server.close(resolve));
		},
	};
	return scripted;
}

/** Writes a body in pieces, sending each before it writes the next. */
export async function writePieces(
	response: ServerResponse,
	pieces: readonly Buffer[],
	ending: Ending,
	contentType: string,
): Promise<void> {
	response.socket?.setNoDelay(true);
	response.writeHead(200, { 'content-type': contentType });
	response.flushHeaders();
	for (const piece of pieces) {
		if (response.destroyed) return;
		response.write(piece);
		await setImmediate();
	}
	if (ending === 'end') response.end();
	if (ending === 'reset') {
		// The written bytes must be sent before the connection is reset.
		await new Promise((resolve) => setTimeout(resolve, 20));
		response.socket?.resetAndDestroy();
	}
}
