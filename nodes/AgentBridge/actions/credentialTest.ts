import type {
	ICredentialsDecrypted,
	ICredentialTestFunctions,
	INodeCredentialTestResult,
} from 'n8n-workflow';

import { systemClock } from '../../shared/clock';
import { redactor } from '../../shared/redact';
import { readBridgeAccount } from '../bridge.account';
import { openBridge, type BridgeEnd } from '../bridge.connection';
import { explainEnd, isRefusal } from '../bridge.failures';

/** A server that lets anybody in and then closes has done so by now. */
const SECOND_THOUGHTS_MS = 700;

/**
 * The credential test of both nodes: opens a connection with the sub-protocol way of §5.4, then closes it. A refused
 * handshake does not say why, and a credential test has no HTTP helper to ask with, so the sentence names what it can be.
 */
export async function testBridgeConnection(
	this: ICredentialTestFunctions,
	{ data = {} }: ICredentialsDecrypted,
): Promise<INodeCredentialTestResult> {
	const account = readBridgeAccount(data);
	if (!account.ok) {
		const { message, advice } = account.failure;
		return { status: 'Error', message: `${message}. ${advice}` };
	}
	const { url, host, protocol, bearer, secrets } = account.value;
	const ended = new AbortController();
	const end = await new Promise<BridgeEnd | undefined>((resolve) => {
		const line = openBridge(
			{ url, protocol, bearer, idleMs: 0 },
			{
				onOpen: () => {
					void systemClock.sleep(SECOND_THOUGHTS_MS, ended.signal).then(async () => {
						await line.close();
						resolve(undefined);
					});
				},
				onText: () => undefined,
				onBinary: () => undefined,
				onEnd: resolve,
			},
			systemClock,
		);
	});
	ended.abort();
	if (!end) return { status: 'OK', message: 'The bridge accepted the channel account' };
	if (end.cause === 'handshake') {
		return {
			status: 'Error',
			message: `${host} did not accept the WebSocket connection. Either the channel token is refused, or WebSocket Base URL, Bridge Path or Sub-Protocol are not those of your platform. If your platform authenticates in a frame only, this test cannot succeed: try the trigger instead.`,
		};
	}
	const { message, advice } = explainEnd(end, { host, protocol, redact: redactor(secrets) });
	return { status: 'Error', message: isRefusal(end) ? message : `${message}. ${advice}` };
}
