import { BASE_URL, WS_BASE_URL, type AddressField } from '../../../credentials/baseUrl';
import { DEFAULT_BUSY_CODES, PROGRESS_PATHS } from '../../../credentials/platformDefaults';
import { fail, failInput, ok, type Result } from '../errors/failure';
import { pathOf, readAddress, readToken } from './credential';
import { readFileHosts } from '../files/fileHosts';
import { excerpt } from '../text/json';
import { textOf } from '../text/textOf';

export interface PlatformAccount {
	/** The base URL, without a trailing slash. */
	readonly baseUrl: string;
	/** The base URL of WebSockets, with the scheme ws or wss and no trailing slash. */
	readonly wsBaseUrl: string;
	/** The path of the progress WebSocket (§4.4) to try first. */
	readonly progressPath: string;
	/** Path of the list of chat models, with a leading slash; empty if the deployment has none. */
	readonly modelsPath: string;
	/** Hosts in a private network whose files may be fetched. */
	readonly fileHosts: readonly string[];
	/** The saved workflows, not parsed yet, because only Flow Task and the credential's test need them. */
	readonly savedWorkflows: unknown;
	/** Codes or words, in lower case, by which the platform says that there are too many requests. */
	readonly busyTerms: readonly string[];
	readonly apiKey: string;
}

const EXPERT = " The field is under 'Show Expert Fields'.";

export function readPlatformAccount(credential: Readonly<Record<string, unknown>>): Result<PlatformAccount> {
	const apiKey = readToken(credential.apiKey, 'flowPlatformApi');
	if (!apiKey.ok) return apiKey;
	const baseUrl = readBaseUrl(textOf(credential.baseUrl).trim(), BASE_URL);
	if (!baseUrl.ok) return baseUrl;
	const wsField = textOf(credential.wsBaseUrl).trim();
	const wsBaseUrl = wsField ? readBaseUrl(wsField, WS_BASE_URL) : ok(baseUrl.value.replace(/^http/, 'ws'));
	if (!wsBaseUrl.ok) return fail({ ...wsBaseUrl.failure, advice: wsBaseUrl.failure.advice + EXPERT });
	const files = readFileHosts(textOf(credential.fileHosts));
	if ('wrong' in files) {
		return failInput(
			`'File Hosts' in the credential contains "${excerpt(files.wrong, 60)}", which is not a host`,
			'Enter names or IP addresses, with or without a port, separated by commas, such as 10.0.0.5 or minio.internal:9000.' +
				EXPERT,
		);
	}
	return ok({
		baseUrl: baseUrl.value,
		wsBaseUrl: wsBaseUrl.value,
		progressPath: textOf(credential.progressPath).trim() || PROGRESS_PATHS[0],
		modelsPath: pathOf(textOf(credential.modelsPath).trim()),
		fileHosts: files.hosts,
		savedWorkflows: credential.savedWorkflows,
		busyTerms: readTerms(credential.busyCodes),
		apiKey: apiKey.value,
	});
}

/** A credential that was made without the field, by n8n's API, gets the default; an empty field means no terms. */
function readTerms(field: unknown): string[] {
	const text = field === undefined ? DEFAULT_BUSY_CODES : textOf(field);
	const terms = text.split(/[,，\n]/).map((term) => term.trim().toLowerCase());
	return terms.filter((term) => term !== '' && term !== '0');
}

function readBaseUrl(text: string, field: AddressField): Result<string> {
	const url = readAddress(text, field, 'flowPlatformApi');
	if (!url.ok) return url;
	const { protocol, host, pathname } = url.value;
	return ok(`${protocol}//${host}${pathname}`.replace(/\/+$/, ''));
}
