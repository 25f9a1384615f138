import { readAgentAccount, type AgentAccount } from '../../../../nodes/AgentInvoke/wire/account';
import { AgentApi, type InvokeCall } from '../../../../nodes/AgentInvoke/api/api';
import { TurnCalls } from '../../../../nodes/AgentInvoke/api/callLimit';
import { ok } from '../../../../nodes/shared/errors/failure';
import { redactor } from '../../../../nodes/shared/text/redact';
import { AdaptiveRate } from '../../../../nodes/shared/retry/adaptiveRate';
import { Retry } from '../../../../nodes/shared/retry/retry';
import type { Opening } from '../../../../nodes/shared/http/request';
import type { Exchange, HttpRequest } from '../../../../nodes/shared/http/exchange';
import { TestClock } from '../../testClock';
import { valueOf } from '../../results';

export const TOKEN = 'agt_SECRETPART0';

export interface Served {
	readonly pieces: readonly Uint8Array[];
	readonly status?: number;
	readonly headers?: Readonly<Record<string, string>>;
	/** The error that ends the body instead of its proper end. */
	readonly brokenBy?: Error;
}

const accounts = new Map<string, AgentAccount>();

/** The account with these fields, read once: tests call with the same one thousands of times. */
function accountOf(fields: Record<string, unknown>): AgentAccount {
	const name = JSON.stringify(fields);
	const known = accounts.get(name);
	if (known) return known;
	const account = valueOf(readAgentAccount({ agentToken: TOKEN, baseUrl: 'https://p.example', ...fields }));
	accounts.set(name, account);
	return account;
}

interface Around {
	readonly beforeMs?: number;
	readonly stopAfterMs?: number;
	readonly rate?: AdaptiveRate;
	/** The answers to calls that open a session. */
	readonly opened?: Exchange[];
}

/**
 * Makes one call that is answered with these pieces, after another request has occupied the only permit for `beforeMs`.
 * @returns the result and everything passed on before it
 */
export async function invoke(
	served: Served | Opening,
	over: Partial<InvokeCall> = {},
	fields: Record<string, unknown> = {},
	{ beforeMs = 0, stopAfterMs = Infinity, rate = new AdaptiveRate(), opened }: Around = {},
) {
	const account = accountOf(fields);
	const clock = new TestClock();
	const redact = redactor([TOKEN]);
	const stop = new AbortController();
	const { signal } = stop;
	const retry = new Retry({ requestsPerSecond: 0, concurrency: 1 }, { clock, signal }, () => 0, rate);
	const heard: string[] = [];
	const sessions: string[] = [];
	const requests: HttpRequest[] = [];
	const api = new AgentApi({
		...{ account, clock, redact, signal },
		open: async (request) => {
			requests.push(request);
			return 'kind' in served ? served : openingOf(served);
		},
		send: async (request) => {
			requests.push(request);
			return opened?.shift() ?? { kind: 'cancelled' };
		},
		retry,
	});
	const before = { repeatability: 'read', lane: 'work', tries: 1, endByMs: Infinity } as const;
	const occupy = async (): Promise<unknown> =>
		await retry.run(before, async () => {
			await clock.sleep(beforeMs);
			return { kind: 'cancelled' };
		});
	if (beforeMs > 0) void occupy();
	void clock.sleep(stopAfterMs).then(() => stop.abort());
	const result = await clock.run(
		api.invoke({
			...{
				request: (sessionId: string) => ok({ path: '', headers: {}, body: { message: 'hi' }, sessionId }),
				sessionId: '',
				timeoutMs: 5_000,
				tries: 1,
				maySend: () => true,
				sendAgain: false,
			},
			calls: new TurnCalls({ most: 0, taken: 1 }, clock),
			onDelta: async (text) => void heard.push(text),
			onSession: (id) => void sessions.push(id),
			...over,
		}),
	);
	return { result, heard: heard.join(''), sessions, requests, asked: requests.length };
}

function openingOf({ pieces, status = 200, headers = {}, brokenBy }: Served): Opening {
	async function* read(): AsyncGenerator<Uint8Array> {
		yield* pieces;
		if (brokenBy) throw brokenBy;
	}
	const body = Object.assign(read(), { destroy: () => undefined });
	return { kind: 'open', status, headers, body };
}

export const bytes = (text: string): Uint8Array => Buffer.from(text);
