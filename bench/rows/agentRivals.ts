// Agent sessions, kept in n8n's workflow static data and by Agent Invoke.
import { setTimeout as sleep } from 'node:timers/promises';
import { askAgent, splitSessions, type Ask } from '../../test/e2e/agentWorkflows';
import { fillTemplate, type RunningN8n } from '../../test/e2e/runner';
import { median, none, told, type Figure } from '../figures';
import { readRival } from '../flow';
import type { BenchPlatform } from '../platform';
import type { Row } from '../stage';

const CUSTOMERS = 20;
/** How many messages each customer sends, one after another; all customers talk in parallel. */
const TURNS = 2;
const RUNS = 5;
const CALL_DEADLINE_MS = 120_000;
/** n8n writes static data a moment after the answer. */
const SETTLE_MS = 1_000;

interface Way {
	readonly name: string;
	readonly path: string;
	/** For each run, the sessions beyond one per customer. */
	readonly strays: number[];
	readonly roundMs: number[];
	split: number;
}

export const agentRivals: Row = {
	name: 'agentRivals',
	async measure(stage) {
		return await stage.withPlatform({}, async (platform) => {
			const n8n = await stage.n8n();
			const ways = [await publishRival(n8n, platform), await publishOwn(n8n, platform)] as const;
			for (let run = 1; run <= stage.times(RUNS); run++) {
				for (const way of ways) await talk(n8n, platform, way, run);
			}
			return figuresOf(...ways);
		});
	},
};

const wayOf = (name: string, path: string): Way => ({ name, path, strays: [], roundMs: [], split: 0 });

async function publishRival({ client }: RunningN8n, platform: BenchPlatform): Promise<Way> {
	const account = await client.createCredential('httpBearerAuth', 'Agent token', {
		token: platform.agentToken,
	});
	const flow = fillTemplate(readRival('agent-static-data.json'), {
		values: { PASTE_BASE_URL: platform.apiUrl },
		credentials: { httpBearerAuth: account },
	});
	await client.activate(await client.createWorkflow(flow));
	return wayOf('HTTP Request and static data', 'bench-agent-static-data');
}

async function publishOwn({ client }: RunningN8n, platform: BenchPlatform): Promise<Way> {
	const account = await client.createCredential('flowAgentApi', 'Agent of rivals', {
		agentToken: platform.agentToken,
		baseUrl: platform.apiUrl,
	});
	const way = wayOf('AgentInvoke', 'bench-agent-own');
	await client.activate(await client.createWorkflow(askAgent(way.path, account)));
	return way;
}

/** Lets all customers talk in parallel; the platform's books record what each said, and in which session. */
async function talk(n8n: RunningN8n, platform: BenchPlatform, way: Way, run: number): Promise<void> {
	await platform.resetBooks();
	const calls: Ask[] = [];
	for (let turn = 1; turn <= TURNS; turn++) {
		const round = Array.from({ length: CUSTOMERS }, (_, index): Ask => {
			const key = `run ${run} customer ${index}`;
			return { key, say: `${key} says ${turn}` };
		});
		const sinceMs = performance.now();
		await Promise.all(round.map(async (ask) => await hear(n8n, way, ask)));
		way.roundMs.push(performance.now() - sinceMs);
		calls.push(...round);
		await sleep(SETTLE_MS);
	}
	const { sessions } = await platform.books();
	way.strays.push(sessions.length - CUSTOMERS);
	way.split += splitSessions(calls, sessions).length;
}

async function hear(n8n: RunningN8n, { path }: Way, ask: Ask): Promise<void> {
	const response = await n8n.client.callWebhook(path, ask, CALL_DEADLINE_MS);
	const text = await response.text();
	if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text.slice(0, 500)}`);
}

function figuresOf(rival: Way, own: Way): Figure[] {
	const what = `${CUSTOMERS} customers at once, ${TURNS} turns each`;
	const described = ({ name, strays, roundMs, split }: Way): Figure[] => [
		told(median(strays), `${name}, ${what}: sessions too many`, '', strays),
		told(split, `${name}: customers whose session was lost, of ${strays.length * CUSTOMERS}`),
		told(median(roundMs), `${name}: a turn of all customers`, ' ms', roundMs),
	];
	return [
		...described(rival),
		...described(own),
		none(own.split, 'AgentInvoke: customers whose turns are not those of one session'),
	];
}
