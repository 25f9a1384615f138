import type {
	ICredentialsDecrypted,
	ICredentialTestFunctions,
	INodeCredentialTestResult,
} from 'n8n-workflow';

import { systemClock } from '../../shared/run/clock';
import { redactor } from '../../shared/text/redact';
import { getByTestHelper, testFailed } from '../../shared/http/testRequest';
import { readBridgeAccount } from '../account';
import { openBridge, type BridgeEnd } from '../connection';
import { explainEnd } from '../failures';
import { probeHandshake, type Probe } from '../probe';

/** A server that accepts everyone and then closes has done so by now. */
const SECOND_THOUGHTS_MS = 700;
const IN_A_FRAME =
	'If your platform authenticates only in a frame, this test always fails: test the account with the trigger instead.';

/** The credential test of both nodes: opens a connection with sub-protocol authentication (§5.4), then closes it. */
export async function testBridgeConnection(
	this: ICredentialTestFunctions,
	{ data = {} }: ICredentialsDecrypted,
): Promise<INodeCredentialTestResult> {
	const account = readBridgeAccount(data);
	if (!account.ok) {
		const { message, advice } = account.failure;
		return testFailed(`${message}. ${advice}`);
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
	const target = { url, protocols: [protocol, bearer] };
	const probe =
		end.cause === 'handshake'
			? await probeHandshake(
					target,
					async (request) => await getByTestHelper(this.helpers, request),
					systemClock,
				)
			: undefined;
	const { message, advice } = explainEnd(end, { host, protocol, redact: redactor(secrets) }, probe);
	return testFailed(`${message}. ${advice}${mayBeInFrame(end, probe) ? ` ${IN_A_FRAME}` : ''}`);
}

/** A bridge that authenticates only in a frame refuses this handshake, whatever the token. */
function mayBeInFrame({ cause }: BridgeEnd, probe: Probe | undefined): boolean {
	return cause === 'protocol' || (cause === 'handshake' && probe?.kind !== 'unreachable');
}
