import * as n8n from 'n8n-workflow';

import { tokenParts } from './budgetMessages';

/**
 * Tells n8n the tokens of an answer that was paid for, which it sums up for the node's run; versions before 2.40 have no
 * place for them. Not for a replay: its tokens were told when it was answered.
 */
export function reportTokens(context: n8n.IExecuteFunctions, usage: unknown): void {
	const tokens = tokenParts(usage);
	if (tokens && 'accumulateTokenUsage' in n8n) {
		n8n.accumulateTokenUsage(context, tokens.input, tokens.output);
	}
}
