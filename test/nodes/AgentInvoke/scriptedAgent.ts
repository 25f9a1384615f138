import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import { NODE_NAME, type HarnessRun, type ItemInput } from '../harness';
import { sayings } from '../harness/stage';
import { CONTINUE, openAgentStage, type AgentStage } from './agent.fixture';

type NodeParameters = NonNullable<Parameters<AgentStage['run']>[1]>;
type Settings = NonNullable<Parameters<AgentStage['run']>[2]>;

/** An agent whose answers a test scripts byte by byte. */
export interface ScriptedAgent {
	readonly stage: AgentStage;
	/** Bodies of the calls so far, without uploads. */
	readonly calls: ReadonlyArray<Readonly<Record<string, unknown>>>;
	/** Scripts the answers to calls; `call` counts from 1. */
	answer(how: (response: ServerResponse, call: number) => void): void;
	/** Answers each call with this text. */
	says(text: string, httpStatus?: number): void;
	/** Answers each upload with this text. */
	saysToUploads(text: string): void;
	ask(parameters?: NodeParameters, settings?: Settings, items?: ItemInput[]): Promise<HarnessRun>;
	/** Clears the recorded calls and the tables. */
	reset(): void;
	close(): Promise<void>;
}

export const OPTIONS = { requestsPerSecond: 0, timeoutSeconds: 20 };

export function envelope(data: unknown, status: number = 200, success: unknown = status === 200): string {
	return JSON.stringify({ success_response: success, http_status_code: status, request_id: 'req_1', data });
}

export const item = (run: HarnessRun) => run.output(NODE_NAME)[0]!.json;

export async function openScriptedAgent(): Promise<ScriptedAgent> {
	const stage = await openAgentStage();
	const calls: Array<Record<string, unknown>> = [];
	let answer: (response: ServerResponse, call: number) => void;
	let upload = '';
	const server = createServer((request, response) => {
		const chunks: Buffer[] = [];
		request
			.on('data', (data: Buffer) => chunks.push(data))
			.on('end', () => {
				if (request.url === '/media') {
					response.end(upload);
					return;
				}
				calls.push(JSON.parse(Buffer.concat(chunks).toString()) as (typeof calls)[0]);
				answer(response, calls.length);
			});
	});
	await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
	const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
	return {
		stage,
		calls,
		answer: (how) => {
			answer = how;
		},
		says: (text, httpStatus = 200) => {
			answer = (response) => response.writeHead(httpStatus).end(text);
		},
		saysToUploads: (text) => {
			upload = text;
		},
		ask: async (parameters = {}, { account, ...settings }: Settings = CONTINUE, items = sayings('hi')) =>
			await stage.run(
				items,
				{ options: OPTIONS, ...parameters },
				{ account: { baseUrl, mediaUploadPath: '/media', ...account }, ...settings },
			),
		reset: () => {
			stage.reset();
			calls.length = 0;
		},
		close: async () => {
			await stage.close();
			server.closeAllConnections();
			await new Promise((resolve) => server.close(resolve));
		},
	};
}
