import type { INodeParameters } from 'n8n-workflow';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';

import type { JsonObject } from '../../../nodes/shared/text/json';
import type { HarnessRun, ItemInput } from '../harness';
import { bodyOf, openServer } from '../harness/server';
import type { NodeSettings } from '../harness/stage';
import { model, openChatStage, type ChatStage } from './chat.fixture';
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
	const server = await openServer((request, response) => {
		response.on('error', () => undefined);
		void bodyOf(request).then((text) => {
			// A GET has no body.
			const body = JSON.parse(text || '{}') as JsonObject;
			scripted.requests.push(body);
			scripted.headers.push(request.headers);
			return scripted.answer(body, response);
		});
	});
	const scripted: ScriptedServer = {
		baseUrl: server.url,
		requests: [],
		headers: [],
		answer: (_body, response) => response.end(),
		close: server.close,
	};
	return scripted;
}

/** A chat stage whose account is at a scripted server. */
export interface ScriptedChat extends ChatStage {
	readonly server: ScriptedServer;
	/** By default, asks any model one question for one item. */
	ask(parameters?: INodeParameters, settings?: NodeSettings, items?: ItemInput[]): Promise<HarnessRun>;
}

/** Asks without reading the item. */
export const QUESTION = { messagesJson: '[{ "role": "user", "content": "Hello" }]' };

export async function openScriptedChat(): Promise<ScriptedChat> {
	const stage = await openChatStage();
	const { close } = stage;
	const server = await openScriptedServer();
	return Object.assign(stage, {
		server,
		ask: async (
			parameters: INodeParameters = QUESTION,
			settings: NodeSettings = {},
			items: ItemInput[] = [{}],
		) => {
			const account = { apiKey: 'sk-0123456789abcdef', baseUrl: server.baseUrl, ...settings.account };
			return await stage.run(items, { ...model('any-1'), ...parameters }, { ...settings, account });
		},
		close: async () => {
			await close();
			await server.close();
		},
	});
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
