import type { ICredentialDataDecryptedObject, IExecuteFunctions } from 'n8n-workflow';

import { fail, ok, type Result } from '../errors/failure';
import { wordsOfError } from '../errors/expressionError';

/** What the operator knows each credential as. */
const NAMES = {
	flowPlatformApi: 'FlowPlatform API',
	flowAgentApi: 'FlowAgent API',
	flowBridgeApi: 'FlowBridge API',
} as const;

export type CredentialType = keyof typeof NAMES;

/**
 * Reads a node's credential, with its expressions as `itemIndex` sees them. n8n throws where none is selected and where it has been deleted or is not shared: said
 * among the item's fields, that would send the operator to look at expressions.
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
			message: `n8n could not read the node's ${NAMES[type]} credential: ${wordsOfError(error)}`,
			advice: `Select a ${NAMES[type]} credential in this node. Nothing was sent.`,
		});
	}
}
