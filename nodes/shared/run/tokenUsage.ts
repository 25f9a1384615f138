import * as n8n from 'n8n-workflow';

import { tokenParts } from './budgetMessages';

/**
 * Reports the tokens of an answer to n8n, which adds them up for the node's run; versions before 2.40 do not accept
 * them. Must not be called for a remembered answer, because its tokens were reported when it came.
 */
export function reportTokens(context: n8n.IExecuteFunctions, usage: unknown): void {
	const tokens = tokenParts(usage);
	if (tokens && 'accumulateTokenUsage' in n8n) {
		n8n.accumulateTokenUsage(context, tokens.input, tokens.output);
	}
}
