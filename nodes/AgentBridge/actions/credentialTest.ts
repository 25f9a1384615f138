import type {
	ICredentialsDecrypted,
	ICredentialTestFunctions,
	INodeCredentialTestResult,
} from 'n8n-workflow';

import { systemClock, within } from '../../shared/time/clock';
import { redactor } from '../../shared/text/redact';
import { getByTestHelper, testFailed } from '../../shared/http/testRequest';
import type { SocketEnd } from '../../shared/http/webSocket';
import { readBridgeAccount, type BridgeAccount } from '../account';
import { openConnection, probeHandshake } from '../connection/connection';
import { whyEnded } from '../connection/failures';

/** How long a connection has to stay open: some servers accept every connection, and then close the unwanted ones. */
const STAYS_OPEN_MS = 700;
const ACCEPTED = 'The bridge accepted the channel account';
const TOKEN_UNTESTED =
	'The bridge accepted the connection. The token was not tested: without a sub-protocol, only the nodes send it, in a frame.';
const IN_A_FRAME =
	'If your platform authenticates only in a frame, this test always fails: test the account with the trigger instead.';

/** Opens a connection with sub-protocol authentication (§5.4), then closes it. */
export async function testBridgeConnection(
	this: ICredentialTestFunctions,
	{ data = {} }: ICredentialsDecrypted,
): Promise<INodeCredentialTestResult> {
	const account = readBridgeAccount(data);
	if (!account.ok) {
		const { message, advice } = account.failure;
		return testFailed(`${message}. ${advice}`);
	}
	const end = await tryConnection(account.value);
	const { host, protocols, secrets } = account.value;
	if (!end) return { status: 'OK', message: protocols.length === 0 ? TOKEN_UNTESTED : ACCEPTED };
	const { message, advice, details } = await whyEnded(end, {
		peer: {
			host,
			protocol: protocols[0],
			tokenIn: protocols.length === 0 ? 'frame' : 'handshake',
			redact: redactor(secrets),
		},
		probe: async () =>
			await probeHandshake(
				account.value,
				async (request) => await getByTestHelper(this.helpers, request),
				systemClock,
			),
	});
	// A bridge that authenticates only in a frame refuses this handshake, whatever the token.
	const isHandshake = end.cause === 'handshake' && details?.networkCode === undefined;
	const more = isHandshake || end.cause === 'protocol' ? ` ${IN_A_FRAME}` : '';
	return testFailed(`${message}. ${advice}${more}`);
}

/** @returns why the connection ended; `undefined` if the bridge accepted it and this side closed it */
async function tryConnection({ url, protocols }: BridgeAccount): Promise<SocketEnd | undefined> {
	const opened = Promise.withResolvers<undefined>();
	const connection = openConnection(
		{ url, protocols, idleMs: 0 },
		{ onOpen: () => opened.resolve(undefined), onText: () => undefined },
		systemClock,
	);
	const refused = await Promise.race([opened.promise, connection.ended]);
	const end = refused ?? (await within(systemClock, STAYS_OPEN_MS, connection.ended, undefined));
	await connection.close();
	return end;
}
