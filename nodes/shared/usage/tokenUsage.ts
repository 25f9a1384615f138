import * as n8n from 'n8n-workflow';

import { tokenParts } from './budgetMessages';

/**
 * Reports an answer's token usage to n8n, which adds it up for the node's run; versions before 2.40 do not accept
 * it. Must not be called for a remembered answer, because its tokens were reported when it came.
 */
export function reportTokens(context: n8n.IExecuteFunctions, usage: unknown): void {
	const tokens = tokenParts(usage);
	if (tokens && 'accumulateTokenUsage' in n8n) {
		n8n.accumulateTokenUsage(context, tokens.input, tokens.output);
	}
}
