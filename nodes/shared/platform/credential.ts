import type { ICredentialDataDecryptedObject, IExecuteFunctions } from 'n8n-workflow';

import { whyAddressDoesNotFit, type AddressField } from '../../../credentials/baseUrl';
import { cleanToken, whyTokenDoesNotFit, type TokenCredential } from '../../../credentials/tokenKinds';
import { wordsOfError } from '../errors/expressionError';
import { fail, failInput, ok, type Result } from '../errors/failure';

export const CREDENTIAL_NAMES = {
	flowPlatformApi: 'FlowPlatform API',
	flowAgentApi: 'FlowAgent API',
	flowBridgeApi: 'FlowBridge API',
} as const satisfies Record<string, TokenCredential>;

export type CredentialType = keyof typeof CREDENTIAL_NAMES;

/**
 * Reads a node's credential, with its expressions evaluated for `itemIndex`. If no credential is selected, or it was
 * deleted or is not shared, n8n throws, which would otherwise look like a faulty expression in the node.
 */
export async function readCredential(
	context: Pick<IExecuteFunctions, 'getCredentials'>,
	type: CredentialType,
	itemIndex?: number,
): Promise<Result<ICredentialDataDecryptedObject>> {
	try {
		return ok(await context.getCredentials(type, itemIndex));
	} catch (error) {
		return fail({
			kind: 'credential',
			message: `n8n could not read the node's ${CREDENTIAL_NAMES[type]} credential: ${wordsOfError(error)}`,
			advice: `Select a ${CREDENTIAL_NAMES[type]} credential in this node. Nothing was sent.`,
		});
	}
}

export function readToken(pasted: unknown, type: CredentialType, isOfAnyKind = false): Result<string> {
	const token = cleanToken(pasted);
	const misfit = whyTokenDoesNotFit(token, CREDENTIAL_NAMES[type], isOfAnyKind);
	if (misfit === undefined) return ok(token);
	const advice = `${openCredential(type)} and enter the right secret.`;
	return fail({ kind: 'credential', message: misfit.replace(/\.$/, ''), advice });
}

export function readAddress(entered: unknown, field: AddressField, type: CredentialType): Result<URL> {
	const misfit = whyAddressDoesNotFit(entered, field);
	if (misfit) return failInput(misfit.message, `${misfit.advice}. ${openCredential(type)}.`);
	return ok(new URL(String(entered)));
}

/** Without a full stop, so that the caller can continue the sentence. */
export function openCredential(type: CredentialType): string {
	return `Open the ${CREDENTIAL_NAMES[type]} credential`;
}

/** Makes a path start with one slash; an empty path stays empty. */
export function pathOf(text: string): string {
	return text && `/${text.replace(/^\/+/, '')}`;
}
