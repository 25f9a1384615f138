import type { IExecuteFunctions } from 'n8n-workflow';

import { readCredential } from './credential';
import { ok, type Result } from './failure';
import { readPlatformAccount, type PlatformAccount } from './platformAccount';
import { redactor, type Redact } from './redact';
import type { SendHttp } from './transport/exchange';
import { authenticatedOpen, authenticatedSend, credentialOf, type OpenHttp } from './transport/request';

/** The platform as one run of a node reaches it. */
export interface Platform {
	readonly account: PlatformAccount;
	readonly send: SendHttp;
	readonly open: OpenHttp;
	/** Hides the key in whatever comes from outside. */
	readonly redact: Redact;
}

const CREDENTIAL = 'flowPlatformApi';

/** Reads and checks the credential, once for the run. */
export async function openPlatform(context: IExecuteFunctions): Promise<Result<Platform>> {
	const fields = await readCredential(context, CREDENTIAL);
	if (!fields.ok) return fields;
	const account = readPlatformAccount(fields.value);
	if (!account.ok) return account;
	const credential = credentialOf(context, CREDENTIAL, fields.value);
	return ok({
		account: account.value,
		send: authenticatedSend(context, CREDENTIAL, credential),
		open: authenticatedOpen(context, CREDENTIAL, credential),
		redact: redactor(account.value.secrets),
	});
}
