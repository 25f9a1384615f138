// A hundred executions at once that ask an agent which answers at once: the cost of n8n itself, and of this package.
import { askAgent } from '../../test/e2e/agentWorkflows';
import type { RunningN8n, SavedCredential, WorkflowDocument } from '../../test/e2e/runner';
import { atMost, median, none, told, type Figure } from '../figures';
import type { BenchPlatform } from '../platform';
import { cpuSecondsOf } from '../processMeter';
import type { Row } from '../stage';

const CALLERS = 100;
const RUNS = 5;
const ROUND_DEADLINE_MS = 290_000;
/** The CPU time of an execution above one with an HTTP Request node; half of what it was. */
const NEW_LIMIT_MS = 60;
const KNOWN_LIMIT_MS = 40;
/** Its wall time ÷ that of one with an HTTP Request node. */
const NEW_TIMES = 1.25;
const KNOWN_TIMES = 1.1;

type Kind = 'set' | 'http' | 'none' | 'new' | 'known';

const NAMES: Readonly<Record<Kind, string>> = {
	set: 'Edit Fields',
	http: 'HTTP Request to the agent',
	none: 'AgentInvoke, no session kept',
	new: 'AgentInvoke, new session keys',
	known: 'AgentInvoke, known session keys',
};

interface Round {
	readonly wallMs: number;
	/** The CPU time of one execution. */
	readonly cpuMs: number;
}

export const agents: Row = {
	name: 'agents',
	async measure(stage) {
		return await stage.withPlatform(
			{},
			async (platform) =>
				await stage.withFreshN8n(async (n8n) => {
					await openServices(n8n, platform);
					const rounds = new Map<Kind, Round[]>();
					let lost = 0;
					const kinds = Object.keys(NAMES) as Kind[];
					// The first run of each kind loads and compiles code, and creates the table.
					for (let run = 0; run <= stage.times(RUNS); run++) {
						for (const kind of kinds) {
							const { round, failed } = await askAll(n8n, kind, run);
							lost += failed;
							if (run > 0) rounds.set(kind, [...(rounds.get(kind) ?? []), round]);
						}
					}
					return figuresOf(kinds, rounds, lost);
				}),
		);
	},
};

async function openServices(n8n: RunningN8n, platform: BenchPlatform): Promise<void> {
	const { agentToken, apiUrl } = platform;
	const account = await n8n.client.createCredential('flowAgentApi', 'Agent', { agentToken, baseUrl: apiUrl });
	const bearer = await n8n.client.createCredential('httpBearerAuth', 'Agent', { token: agentToken });
	const service = (kind: Kind): WorkflowDocument =>
		askAgent(pathOf(kind), account, kind === 'none' ? { sessionMode: 'new' } : {});
	const flows = [
		service('none'),
		service('new'),
		service('known'),
		insteadOfAgent(service('set'), {
			type: 'n8n-nodes-base.set',
			typeVersion: 3.4,
			parameters: { mode: 'raw', jsonOutput: '={{ { "answer": $json.body.say } }}', options: {} },
		}),
		insteadOfAgent(service('http'), httpRequest(apiUrl, bearer)),
	];
	for (const flow of flows) await n8n.client.activate(await n8n.client.createWorkflow(flow));
}

const pathOf = (kind: Kind): string => `bench-agents-${kind}`;

type Node = WorkflowDocument['nodes'][number];

function insteadOfAgent(flow: WorkflowDocument, step: Partial<Node>): WorkflowDocument {
	const nodes = flow.nodes.map((node) =>
		node.id === 'agent' ? { ...node, credentials: undefined, ...step } : node,
	);
	return { ...flow, nodes };
}

function httpRequest(apiUrl: string, { id, name }: SavedCredential): Partial<Node> {
	return {
		type: 'n8n-nodes-base.httpRequest',
		typeVersion: 4.2,
		parameters: {
			...{ method: 'POST', url: `${apiUrl}/api/agents/Invoke` },
			...{ authentication: 'genericCredentialType', genericAuthType: 'httpBearerAuth' },
			...{ sendBody: true, specifyBody: 'json', jsonBody: '={{ { "message": $json.body.say } }}' },
			options: {},
		},
		credentials: { httpBearerAuth: { id, name } },
	};
}

async function askAll(
	n8n: RunningN8n,
	kind: Kind,
	run: number,
): Promise<{ readonly round: Round; readonly failed: number }> {
	const startMs = performance.now();
	const cpuBefore = cpuSecondsOf(n8n.pid);
	const answers = await Promise.all(
		Array.from({ length: CALLERS }, async (_, index) => {
			const key = kind === 'known' ? `known ${index}` : `${kind} ${run} ${index}`;
			const ask = { key, say: `${key} in round ${run}` };
			const response = await n8n.client.callWebhook(pathOf(kind), ask, ROUND_DEADLINE_MS);
			return response.ok && (await response.text()).includes('answer');
		}),
	);
	const cpuMs = ((cpuSecondsOf(n8n.pid) - cpuBefore) * 1000) / CALLERS;
	const round = { wallMs: performance.now() - startMs, cpuMs };
	return { round, failed: answers.filter((isGood) => !isGood).length };
}

function figuresOf(
	kinds: readonly Kind[],
	rounds: ReadonlyMap<Kind, readonly Round[]>,
	lost: number,
): Figure[] {
	const of = (kind: Kind, what: keyof Round): number[] =>
		(rounds.get(kind) ?? []).map((round) => round[what]);
	const floorMs = median(of('http', 'cpuMs'));
	const ours = (kind: Kind, limit: number): Figure => {
		const runs = of(kind, 'cpuMs').map((cpuMs) => cpuMs - floorMs);
		const what = `${CALLERS} at once, ${NAMES[kind]}: CPU of an execution above HTTP Request`;
		return atMost(limit, median(runs), { what, kind: 'time', unit: ' ms', runs });
	};
	const besideHttp = (kind: Kind, limit: number): Figure => {
		const http = of('http', 'wallMs');
		const runs = of(kind, 'wallMs').map((wallMs, run) => wallMs / (http[run] ?? Number.NaN));
		const what = `${CALLERS} at once, ${NAMES[kind]} ÷ HTTP Request: wall time`;
		return atMost(limit, median(runs), { what, kind: 'time', unit: ' ×', runs });
	};
	return [
		...kinds.flatMap((kind) => {
			const seconds = of(kind, 'wallMs').map((wallMs) => wallMs / 1000);
			return [
				told(median(seconds), `${CALLERS} at once, ${NAMES[kind]}: wall time`, ' s', seconds),
				told(median(of(kind, 'cpuMs')), `${CALLERS} at once, ${NAMES[kind]}: CPU of an execution`, ' ms'),
			];
		}),
		ours('new', NEW_LIMIT_MS),
		ours('known', KNOWN_LIMIT_MS),
		besideHttp('new', NEW_TIMES),
		besideHttp('known', KNOWN_TIMES),
		none(lost, `${CALLERS} at once: answers lost`),
	];
}
