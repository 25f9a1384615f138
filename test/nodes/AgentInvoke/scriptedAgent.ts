import type { ServerResponse } from 'node:http';

import type { HarnessRun, ItemInput } from '../harness';
import { bodyOf, openServer } from '../harness/server';
import { sayings } from '../harness/stage';
import { CONTINUE, openAgentStage, type AgentStage } from './agent.fixture';

type Parameters1 = NonNullable<Parameters<AgentStage['run']>[1]>;
type Settings = NonNullable<Parameters<AgentStage['run']>[2]>;
type Answer = (response: ServerResponse, call: number, body: string) => void;

/** An agent whose answers a test scripts byte by byte. */
export interface ScriptedAgent extends AgentStage {
	readonly url: string;
	/** Bodies of the calls so far, without uploads. */
	readonly calls: ReadonlyArray<Readonly<Record<string, unknown>>>;
	/** The same as text. */
	readonly bodies: readonly string[];
	/** Scripts the answers to calls; `call` counts from 1, and `body` is that of the request. */
	answer(how: Answer): void;
	/** Answers each call with this text. */
	says(text: string, httpStatus?: number): void;
	answerUploads(how: Answer): void;
	/** Answers each upload with this text. */
	saysToUploads(text: string, httpStatus?: number): void;
	ask(parameters?: Parameters1, settings?: Settings, items?: ItemInput[]): Promise<HarnessRun>;
}

export const OPTIONS = { requestsPerSecond: 0, timeoutSeconds: 20 };

export function envelope(data: unknown, status: number = 200, success: unknown = status === 200): string {
	return JSON.stringify({ success_response: success, http_status_code: status, request_id: 'req_1', data });
}

export const item = (run: HarnessRun) => run.jsons()[0]!;

export async function openScriptedAgent(): Promise<ScriptedAgent> {
	const stage = await openAgentStage();
	const { reset, close } = stage;
	const calls: Array<Record<string, unknown>> = [];
	const bodies: string[] = [];
	let answer: Answer;
	let answerUpload: Answer;
	const server = await openServer((request, response) => {
		void bodyOf(request).then((body) => {
			if (request.url === '/media') {
				answerUpload(response, 0, body);
				return;
			}
			bodies.push(body);
			calls.push(JSON.parse(body) as (typeof calls)[0]);
			answer(response, calls.length, body);
		});
	});
	const answerWith =
		(text: string, httpStatus = 200): Answer =>
		(response) =>
			response.writeHead(httpStatus).end(text);
	const account = { baseUrl: server.url, mediaUploadPath: '/media' };
	return Object.assign(stage, {
		url: server.url,
		calls,
		bodies,
		answer: (how: Answer) => {
			answer = how;
		},
		says: (...of: Parameters<typeof answerWith>) => {
			answer = answerWith(...of);
		},
		answerUploads: (how: Answer) => {
			answerUpload = how;
		},
		saysToUploads: (...of: Parameters<typeof answerWith>) => {
			answerUpload = answerWith(...of);
		},
		ask: async (parameters?: Parameters1, settings: Settings = CONTINUE, items = sayings('hi')) =>
			await stage.run(
				items,
				{ options: OPTIONS, ...parameters },
				{ ...settings, account: { ...account, ...settings.account } },
			),
		reset: () => {
			reset();
			calls.length = 0;
			bodies.length = 0;
			answer = answerWith(envelope({ answer: 'hello', session_id: 's' }));
			answerUpload = answerWith(envelope({ url: 'https://files.example/a' }));
		},
		close: async () => {
			await close();
			await server.close();
		},
	});
}
