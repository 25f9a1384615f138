import type { Result } from '../errors/failure';
import type { Json } from '../text/json';
import { createRetry, type RetryParts, type RetriedCall } from './retry';
import type { SendHttp } from './exchange';
import { explain, type CallFailure } from './explain';
import { classify } from './outcome';

export type { CallFailure } from './explain';

/** A call of the workflow service's HTTP interface. */
export interface ApiCall extends RetriedCall {
	/** Path below the base URL. */
	readonly path: string;
	readonly json?: object;
	readonly form?: FormData;
	readonly timeoutMs: number;
}

/** Calls the service and unwraps its envelope; never throws. */
export type CallApi = (call: ApiCall) => Promise<Result<Json | undefined, CallFailure>>;

export interface ClientParts extends Omit<RetryParts, 'explain'> {
	readonly send: SendHttp;
}

/** The one request path to the workflow service: rate limiter, envelope (§7.1), retry policy, sentences. */
export function createClient(parts: ClientParts): CallApi {
	const { baseUrl, send } = parts;
	const attempt = createRetry({ ...parts, explain });
	return async (call) =>
		await attempt(call, async () => {
			const { path, json, form, timeoutMs } = call;
			return classify(
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
