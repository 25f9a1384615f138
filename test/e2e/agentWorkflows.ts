// Workflows around AgentInvoke.
import { inARow, webhook } from './chatWorkflows';
import type { SavedCredential, WorkflowDocument } from './runner';

type Parameters = Record<string, unknown>;

/** The body of a call of `askAgent`. */
export interface Ask {
	key: string;
	say: string;
}

/** A webhook that passes its message to an agent, in the session of a key, and answers with the agent's item. */
export function askAgent(
	path: string,
	{ id, name }: SavedCredential,
	parameters: Parameters = {},
): WorkflowDocument {
	const agent = {
		...{ id: 'agent', name: 'Agent Invoke', type: 'n8n-nodes-flowtask.agentInvoke' },
		parameters: {
			message: '={{ $json.body.say }}',
			sessionKey: '={{ $json.body.key }}',
			...parameters,
		},
		credentials: { flowAgentApi: { id, name } },
	};
	return inARow(`Ask the agent ${path}`, [{ ...webhook(path, 'lastNode'), id: 'hook' }, agent]);
}

/** The answer of `askAgent`. */
export interface AgentItem {
	readonly answer: string;
	readonly session: { readonly key: string; readonly id: string; readonly source: string };
	readonly replayed?: boolean;
}

/** Makes `calls` different calls that share `keys` keys. */
export function callsOfFewKeys(calls: number, keys: number, name: string): Ask[] {
	return Array.from({ length: calls }, (_, index) => {
		const key = `${name} ${index % keys}`;
		return { key, say: `${key} says ${index} [takes: 200]` };
	});
}

/** Lists the keys whose calls did not each become exactly one turn of a single session, and what happened instead. */
export function splitSessions(
	calls: readonly Ask[],
	sessions: ReadonlyArray<{ readonly sessionId: string; readonly messages: readonly string[] }>,
): string[] {
	return [...Map.groupBy(calls, ({ key }) => key)].flatMap(([key, own]) => {
		const said = own.map(({ say }) => say).toSorted();
		const heard = sessions.filter(({ messages }) => messages.some((message) => said.includes(message)));
		const [session, ...others] = heard;
		if (!session || others.length > 0) return [`${key} has ${heard.length} sessions`];
		const turns = session.messages.toSorted();
		return JSON.stringify(turns) === JSON.stringify(said) ? [] : [`${key} has the turns ${turns.join('; ')}`];
	});
}
