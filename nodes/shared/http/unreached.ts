import { certificateWasRejected } from './exchange';

/** Why no connection came to be; neither text ends in a full stop. */
export interface Unreached {
	readonly message: string;
	readonly advice: string;
}

/** What the names of network errors mean: alone they tell an operator nothing. */
const REASONS: Readonly<Record<string, string>> = {
	ECONNREFUSED: 'nothing answers there',
	ENOTFOUND: 'there is no host of this name',
	EAI_AGAIN: 'its name could not be resolved',
	EHOSTUNREACH: 'no way leads there from this n8n',
	ENETUNREACH: 'no way leads there from this n8n',
	ETIMEDOUT: 'it did not answer in time',
	ECONNABORTED: 'it did not answer in time',
	ECONNRESET: 'it closed the connection at once',
};

/**
 * @param code Node's name of a network error
 * @param host what is said of the address
 * @param scheme of an address without TLS
 */
export function explainUnreached(code: string, host: string, scheme: 'http' | 'ws'): Unreached {
	const because = (reason: string): string => `${host} could not be reached: ${reason} (${code})`;
	if (code === 'EPROTO') {
		return {
			message: because('it does not speak TLS'),
			advice: `If this is the platform, enter its base URL in the credential with ${scheme}:// instead of ${scheme}s://`,
		};
	}
	if (certificateWasRejected(code)) {
		return {
			message: because('its certificate was not accepted'),
			advice: "Check the base URL in the credential, or have the platform's certificate replaced",
		};
	}
	const reason = REASONS[code];
	return {
		message: reason === undefined ? `${host} could not be reached (${code})` : because(reason),
		advice: 'Check the base URL in the credential, and that this n8n may reach it',
	};
}
