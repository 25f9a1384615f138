import type {
	ICredentialsDecrypted,
	ICredentialTestFunctions,
	INodeCredentialTestResult,
} from 'n8n-workflow';

import { adviceOnPath } from '../../../credentials/baseUrl';
import { sentence } from '../text/json';
import { readPlatformAccount, type PlatformAccount } from './account';
import { quote, redactor, type Redact } from '../text/redact';
import { sendTest, testFailed, type TestHelpers } from '../http/testRequest';
import type { FailedOutcome } from '../http/outcome';
import { whyListIsWrong } from '../workflow/savedWorkflows';
import { classify } from './envelope';

const PATH = '/api/maas/flow_task_api/get_task_info';
const KEY_ACCEPTED = 'The platform accepted the key';
const KEY_REFUSED =
	'The platform refused this API key. It may be mistyped or revoked, or belong to another account: copy it again from the console.';
const NOT_THE_PLATFORM =
	"Something answered at this base URL, but not the image workflow service: the URL may be the console's.";

/** Tests the key of a FlowPlatform credential, and its list of saved workflows. */
export async function testPlatformKey(
	this: ICredentialTestFunctions,
	{ data = {} }: ICredentialsDecrypted,
): Promise<INodeCredentialTestResult> {
	const account = readPlatformAccount(data);
	if (!account.ok) return testFailed(`${account.failure.message}. ${account.failure.advice}`);
	const { apiKey, savedWorkflows } = account.value;
	const redact = redactor([apiKey]);
	const ofKey = await whyKeyFails(this.helpers, account.value, redact);
	const ofList = whyListIsWrong(savedWorkflows);
	if (ofKey === undefined && ofList === undefined) return { status: 'OK', message: KEY_ACCEPTED };
	// Both are reported, because the list can be corrected even while the platform cannot be reached.
	return testFailed([ofKey ?? `${KEY_ACCEPTED}.`, redact(ofList ?? '')].join(' ').trim());
}

/** Asks for the state of no tasks: the only request of §4 that needs the key, costs nothing and works for any account. */
async function whyKeyFails(
	helpers: TestHelpers,
	{ baseUrl, apiKey, busyTerms }: PlatformAccount,
	redact: Redact,
): Promise<string | undefined> {
	const request = { url: `${baseUrl}${PATH}`, token: apiKey, json: { flow_task_ids: [] } };
	const asked = await sendTest(helpers, request, redact);
	if (!asked.ok) return asked.failure;
	const outcome = classify(asked.value, busyTerms);
	// Which `data` answers an empty list is not specified, so any is accepted.
	if (outcome.kind === 'answered') return undefined;
	return whyNot(outcome, asked.value.status, baseUrl, redact);
}

function whyNot(outcome: FailedOutcome, status: number, baseUrl: string, redact: Redact): string {
	const code = outcome.kind === 'refused' ? outcome.code : null;
	if ([status, code].some((one) => one === 401 || one === 403)) return KEY_REFUSED;
	const said = sentence(quote(redact, 'text' in outcome ? outcome.text : '', 300));
	if (status === 429 || outcome.kind === 'busy') {
		return `The platform is not accepting more requests at the moment, so the key could not be tested. Try again later. It said: ${said}`;
	}
	if (status >= 500) {
		return `The platform could not answer (HTTP ${status}), so the key could not be tested. Try again later, or check the base URL. It said: ${said}`;
	}
	if (code === null || status === 404)
		return `${NOT_THE_PLATFORM} ${adviceOnPath(baseUrl)} The answer was HTTP ${status}: ${said}`;
	return `The platform did not accept this test (code ${code}), so it may not accept the key either. It said: ${said}`;
}
