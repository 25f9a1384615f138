import type { Result } from '../failure';
import type { Json } from '../json';
import { createAttempts, type AttemptParts, type CallFailure, type Errand } from './attempts';
import type { SendHttp } from './exchange';
import { explain } from './explain';
import { judge } from './verdict';

export type { CallFailure } from './attempts';

/** A call of the workflow service's HTTP interface. */
export interface ApiCall extends Errand {
	/** Path below the base URL. */
	readonly path: string;
	readonly json?: object;
	readonly form?: FormData;
	readonly timeoutMs: number;
}

/** Calls the service and unwraps its envelope; never throws. */
export type CallApi = (call: ApiCall) => Promise<Result<Json | undefined, CallFailure>>;

export interface ClientParts extends Omit<AttemptParts, 'explain'> {
	readonly send: SendHttp;
}

/** The one request path to the workflow service: window, envelope (§7.1), retry policy, sentences. */
export function createClient(parts: ClientParts): CallApi {
	const { baseUrl, send } = parts;
	const attempt = createAttempts({ ...parts, explain });
	return async (call) =>
		await attempt(call, async () => {
			const { path, json, form, timeoutMs } = call;
			return judge(
				await send({
					method: 'POST',
					url: `${baseUrl}${path}`,
					...(json && { json }),
					...(form && { form }),
					timeoutMs,
				}),
			);
		});
}
