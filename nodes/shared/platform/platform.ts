import type { IExecuteFunctions } from 'n8n-workflow';

import { readPlatformAccount, type PlatformAccount } from './account';
import { readRunAccount } from './runAccount';
import { ok, type Result } from '../errors/failure';
import type { SendHttp } from '../http/exchange';
import { authenticated, type OpenHttp } from '../http/request';
import { redactor, type Redact } from '../text/redact';
import { shortSha256 } from '../text/sha256';

export interface Platform {
	readonly account: PlatformAccount;
	/** Identifies the account without revealing the key. */
	readonly accountId: string;
	/** Whether another run of the node may use another account. */
	readonly varies: boolean;
	readonly send: SendHttp;
	readonly open: OpenHttp;
	readonly redact: Redact;
}

const CREDENTIAL = 'flowPlatformApi';

export async function openPlatform(context: IExecuteFunctions): Promise<Result<Platform>> {
	const read = await readRunAccount(context, CREDENTIAL, readPlatformAccount);
	if (!read.ok) return read;
	const { account, fields, varies } = read.value;
	return ok({
		account,
		accountId: shortSha256(JSON.stringify([account.baseUrl, account.apiKey])),
		varies,
		...authenticated(context, CREDENTIAL, fields),
		redact: redactor([account.apiKey]),
	});
}
