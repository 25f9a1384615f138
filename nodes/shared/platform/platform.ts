import type { IExecuteFunctions } from 'n8n-workflow';

import { mapAccounts, readAccounts, type Accounts } from './accounts';
import { ok, type Result } from '../errors/failure';
import { readPlatformAccount, type PlatformAccount } from './account';
import { redactor, type Redact } from '../text/redact';
import { shortSha256 } from '../text/sha256';
import type { SendHttp } from '../http/exchange';
import { authenticated, type OpenHttp } from '../http/request';

export interface Platform {
	readonly account: PlatformAccount;
	/** Identifies the account without revealing the key. */
	readonly accountId: string;
	readonly send: SendHttp;
	readonly open: OpenHttp;
}

export interface Platforms extends Accounts<Platform> {
	readonly redact: Redact;
}

const CREDENTIAL = 'flowPlatformApi';

export async function openPlatforms(context: IExecuteFunctions): Promise<Result<Platforms>> {
	const read = await readAccounts(context, CREDENTIAL, readPlatformAccount);
	if (!read.ok) return read;
	const platforms = mapAccounts(read.value, ({ account, fields }): Platform => ({
		account,
		accountId: shortSha256(JSON.stringify([account.baseUrl, account.apiKey])),
		...authenticated(context, CREDENTIAL, fields),
	}));
	return ok({ ...platforms, redact: redactor(platforms.all.map(({ account }) => account.apiKey)) });
}
