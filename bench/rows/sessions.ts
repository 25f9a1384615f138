// A hundred executions at once, each with a session key of its own; then many messages of one key.
import { setTimeout as sleep } from 'node:timers/promises';
import { askAgent } from '../../test/e2e/agentWorkflows';
import type { RunningN8n, SavedCredential } from '../../test/e2e/runner';
import { atMost, median, none, type Figure } from '../figures';
import type { BenchPlatform } from '../platform';
import type { Row } from '../stage';

const CALLERS = 100;
const ROUND_DEADLINE_MS = 290_000;
const SERVICE = 'bench-sessions';
/** n8n writes its log a moment after the answer. */
const LOG_BEHIND_MS = 2_000;

/** With these settings, n8n logs each SQL statement that it sends. */
const SQL_LOGGED: NodeJS.ProcessEnv = {
	DB_LOGGING_ENABLED: 'true',
	DB_LOGGING_OPTIONS: 'query',
	N8N_LOG_LEVEL: 'debug',
};

/** How many messages of one key arrive at once. */
const TURNS_OF_A_KEY = 30;
const MOST_GAP_S = 0.5;
const ORDERS = ['arrival', 'strict'] as const;

interface Statements {
	readonly reads: number;
	readonly writes: number;
	/** Statements that would remove expired rows, although there are none. */
	readonly sweeps: number;
}

/** What a run of the node may cost. A turn takes less than a second, so the same write counts it. */
const KNOWN_SESSION = { reads: 1, writes: 1 };
/** A new session costs one write more to claim it, and one read more to check that no other run has claimed it. */
const NEW_SESSION = { reads: 2, writes: 2 };

interface Round extends Statements {
	readonly lost: number;
}

export const sessions: Row = {
	name: 'sessions',
	async measure(stage) {
		const callers = CALLERS;
		return await stage.withPlatform(
			{},
			async (platform) =>
				await stage.withFreshN8n(async (n8n) => {
					const account = await n8n.client.createCredential('flowAgentApi', 'Agent', {
						agentToken: platform.agentToken,
						baseUrl: platform.apiUrl,
					});
					await n8n.client.activate(await n8n.client.createWorkflow(askAgent(SERVICE, account)));
					// This creates the table.
					await ask(n8n, 'nobody', 'hello');
					const known = new Map<string, string>();
					const opening = await round(n8n, callers, 1, known);
					const going = await round(n8n, callers, 2, known);
					const gaps: Figure[] = [];
					for (const order of ORDERS) gaps.push(await gapOf(n8n, platform, account, order));
					return [
						...gaps,
						...figuresOf('new sessions', callers, opening, NEW_SESSION),
						...figuresOf('known sessions', callers, going, KNOWN_SESSION),
					];
				}, SQL_LOGGED),
		);
	},
};

/** Measures how long the agent waits between two turns of a key, until n8n has sent the next message. */
async function gapOf(
	n8n: RunningN8n,
	platform: BenchPlatform,
	account: SavedCredential,
	turnOrder: (typeof ORDERS)[number],
): Promise<Figure> {
	const path = `${SERVICE}-${turnOrder}`;
	await n8n.client.activate(
		await n8n.client.createWorkflow(askAgent(path, account, { options: { turnOrder } })),
	);
	const key = `one key, ${turnOrder}`;
	const says = Array.from({ length: TURNS_OF_A_KEY }, (_, index) => `${key}: ${index} [takes: 200]`);
	await Promise.all(
		says.map(async (say) => await n8n.client.callWebhook(path, { key, say }, ROUND_DEADLINE_MS)),
	);
	const turns = (await platform.books()).invocations
		.filter(({ message }) => message?.startsWith(key))
		.sort((one, other) => one.startedAtMs - other.startedAtMs);
	const gaps = turns.slice(1).map(({ startedAtMs }, index) => startedAtMs - (turns[index]?.endedAtMs ?? NaN));
	const what = `${TURNS_OF_A_KEY} messages of a key at once, ${turnOrder}: median gap between two turns`;
	return atMost(MOST_GAP_S, median(gaps) / 1_000, { what, kind: 'time', unit: ' s' });
}

interface Answer {
	readonly session?: { readonly key: string; readonly id: string };
}

async function ask(n8n: RunningN8n, key: string, say: string): Promise<Answer> {
	const response = await n8n.client.callWebhook(SERVICE, { key, say }, ROUND_DEADLINE_MS);
	return (await response.json()) as Answer;
}

async function round(
	n8n: RunningN8n,
	callers: number,
	number: number,
	known: Map<string, string>,
): Promise<Round> {
	await sleep(LOG_BEHIND_MS);
	const before = statementsIn(n8n);
	const keys = Array.from({ length: callers }, (_, index) => `customer ${index}`);
	const answers = await Promise.all(
		keys.map(async (key) => await ask(n8n, key, `${key} in round ${number}`)),
	);
	let lost = 0;
	for (const [index, { session }] of answers.entries()) {
		const key = keys[index] ?? '';
		const expected = known.get(key) ?? session?.id;
		if (session?.id === undefined || session.key !== key || session.id !== expected) lost++;
		else known.set(key, session.id);
	}
	if (new Set(known.values()).size !== known.size) lost++;
	await sleep(LOG_BEHIND_MS);
	const after = statementsIn(n8n);
	return {
		lost,
		reads: after.reads - before.reads,
		writes: after.writes - before.writes,
		sweeps: after.sweeps - before.sweeps,
	};
}

/**
 * Counts the statements on rows of Data Tables so far; each has a table of its own in n8n's database. Statements that n8n
 * adds by itself are left out: the row count with each read, and the rows before each change, without a limit.
 */
function statementsIn({ log }: RunningN8n): Statements {
	const ofTables = log.lines
		.map(({ message }) => message)
		.filter((line) => line.includes('data_table_user_'));
	return {
		reads: ofTables.filter((line) => /\bSELECT \* FROM\b.*\bLIMIT\b/.test(line)).length,
		writes: ofTables.filter((line) => /\b(INSERT INTO|UPDATE)\b/.test(line)).length,
		sweeps: ofTables.filter((line) => /\bDELETE FROM\b/.test(line)).length,
	};
}

function figuresOf(
	name: string,
	callers: number,
	{ lost, reads, writes, sweeps }: Round,
	most: Pick<Statements, 'reads' | 'writes'>,
): Figure[] {
	const what = (thing: string): string => `${callers} executions at once, ${name}: ${thing}`;
	return [
		none(lost, what('mappings lost')),
		atMost(most.reads, reads / callers, { what: what('reads per node run'), kind: 'count' }),
		atMost(most.writes, writes / callers, { what: what('writes per node run'), kind: 'count' }),
		none(sweeps, what('removals of expired rows')),
	];
}
