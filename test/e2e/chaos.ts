// npm run chaos: runs tasks, agent turns and chats on a real n8n while a tenth of all requests fails, and reads the
// result from the local platform's books. The exit code is 0 only if nothing was done twice or lost, and no secret leaked.
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { startPlatform, type LocalPlatform } from '../platform';
import textToImage from '../platform/workflows/text-to-image.json';
import { batchService } from './batchService';
import { killEveryN8n, packTarball, startN8n } from './runner';
import type { RunningN8n, SavedCredential, WorkflowDocument } from './runner';

type Node = WorkflowDocument['nodes'][number];
type Item = Record<string, unknown>;
type LocalInvocation = ReturnType<LocalPlatform['books']>['invocations'][number];

const FAULT_RATE = 0.1;
const SEED = Number(process.argv.find((word) => word.startsWith('--seed='))?.slice(7) ?? 1);
const LOT = 100;
const LOTS_AT_ONCE = 2;
const LOT_DEADLINE_MS = 600_000;
/** The number of sessions that executions share. Every other turn belongs to one of them; the others begin their own. */
const SHARED_SESSIONS = 10;

const packageRoot = join(__dirname, '..', '..');

interface Campaign {
	readonly name: string;
	readonly items: number;
	readonly step: Node;
	/** What an item belongs to; its name ends with "of" and this text. */
	readonly ownerOf?: (item: number) => string;
}

interface Figure {
	readonly what: string;
	readonly figure: number | string;
	readonly target: string;
	readonly isGood: boolean;
}

function step(type: string, account: SavedCredential, parameters: Node['parameters']): Node {
	return {
		id: type,
		name: 'Step',
		type: `n8n-nodes-flowtask.${type}`,
		typeVersion: 1,
		position: [400, 0],
		parameters,
		credentials: { [account.type]: { id: account.id, name: account.name } },
		onError: 'continueRegularOutput',
	} as Node;
}

async function campaigns(n8n: RunningN8n, platform: LocalPlatform): Promise<Campaign[]> {
	const key = await n8n.client.createCredential('flowPlatformApi', 'Platform', {
		apiKey: platform.apiKey,
		baseUrl: platform.apiUrl,
		wsBaseUrl: platform.wsUrl,
	});
	const token = await n8n.client.createCredential('flowAgentApi', 'Agent', {
		agentToken: platform.agentToken,
		baseUrl: platform.apiUrl,
	});
	const { workflowId } = await platform.hostWorkflow(textToImage);
	const override = [{ nodeId: '6', parameter: 'text', value: '={{ $json.key }}', valueType: 'string' }];
	return [
		{
			name: 'tasks',
			items: 1_000,
			step: step('flowTask', key, {
				...{ resource: 'task', operation: 'run', workflowId },
				options: { output: 'urls', expert: { overrideFields: { override } } },
			}),
		},
		{
			name: 'turns',
			items: 300,
			step: step('agentInvoke', token, {
				...{ operation: 'invoke', message: '={{ $json.key }}', stream: true },
				...{ sessionMode: 'mapped', sessionKey: "={{ $json.key.split(' of ')[1] }}" },
			}),
			ownerOf: (item) => (item % 2 === 0 ? `shared ${(item / 2) % SHARED_SESSIONS}` : `own ${item}`),
		},
		{
			name: 'chats',
			items: 300,
			step: step('chatCompletion', key, {
				model: { __rl: true, mode: 'id', value: 'family_c-4.6' },
				messages: { message: [{ role: 'user', content: '={{ $json.key }}' }] },
			}),
		},
	];
}

/** Sends a campaign's items in lots, some at a time. @returns the output of each item, in order */
async function play(n8n: RunningN8n, { name, items, step: node, ownerOf }: Campaign): Promise<Item[]> {
	const path = `chaos-${name}`;
	const service = batchService({ path, answers: 'lastNode', steps: [node] });
	await n8n.client.activate(await n8n.client.createWorkflow(service));
	const lots = Array.from({ length: items / LOT }, (_, lot) =>
		Array.from({ length: LOT }, (__, index) => {
			const item = lot * LOT + index;
			return ownerOf ? `${name} ${item} of ${ownerOf(item)}` : `${name} ${item}`;
		}),
	);
	const outputs: Item[][] = [];
	const next = async (): Promise<void> => {
		for (let lot = lots.findIndex((_, index) => !(index in outputs)); lot >= 0;) {
			outputs[lot] = [];
			const response = await n8n.client.callWebhook(path, { keys: lots[lot] }, LOT_DEADLINE_MS);
			const answer: unknown = JSON.parse(await response.text());
			outputs[lot] = Array.isArray(answer) ? (answer as Item[]) : [];
			lot = lots.findIndex((_, index) => !(index in outputs));
		}
	};
	await Promise.all(Array.from({ length: LOTS_AT_ONCE }, next));
	return outputs.flat();
}

const isError = (item: Item): boolean => typeof item.error === 'string';
const count = (items: readonly Item[], said: RegExp): number =>
	items.filter((item) => isError(item) && said.test(String(item.error))).length;

/** Counts the turns with an answer that are outside the one session of their key; there must be none. */
function outsideTheirSession(ran: ReadonlyArray<LocalInvocation>, answered: ReadonlySet<string>): number {
	const sessions = new Map<string, Map<string, number>>();
	// If the first answer is lost, its session remains unknown, and the key's next turn rightly begins another one.
	for (const { message, sessionId } of ran.filter((turn) => answered.has(turn.answer))) {
		const key = message?.split(' of ')[1] ?? '';
		const turns = sessions.get(key) ?? new Map<string, number>();
		sessions.set(key, turns.set(sessionId, (turns.get(sessionId) ?? 0) + 1));
	}
	const counts = [...sessions.values()].map((turns) => [...turns.values()]);
	return counts.reduce((sum, turns) => sum + turns.reduce((a, b) => a + b, 0) - Math.max(...turns), 0);
}

/** Counts the sessions that more than one key used. */
function sharedByKeys(ran: ReadonlyArray<LocalInvocation>): number {
	const keys = new Map<string, Set<string>>();
	for (const { message, sessionId } of ran) {
		keys.set(sessionId, (keys.get(sessionId) ?? new Set()).add(message?.split(' of ')[1] ?? ''));
	}
	return [...keys.values()].filter(({ size }) => size > 1).length;
}

/** Matches raw errors, which do not come from this package. */
const RAW = /TypeError|undefined is not|Cannot read|is not a function|\[object/;

function judge(platform: LocalPlatform, results: Record<string, Item[]>): Figure[] {
	const books = platform.books();
	const { tasks = [], turns = [], chats = [] } = results;
	const said = JSON.stringify(tasks);
	const lost = books.tasks.filter(
		({ answer, taskId }) => answer === 'whole' && !said.includes(taskId),
	).length;
	const unclear = count(tasks, /^A task may have been created/);
	const ran = books.invocations.filter(({ message }) => message?.startsWith('turns '));
	const ranTwice = ran.length - new Set(ran.map(({ message }) => message)).size;
	const answered = new Set(turns.filter((item) => !isError(item)).map(({ answer }) => String(answer)));
	const toldUnclear = turns.filter(
		({ details }) => Reflect.get(Object(details), 'mayHaveRun') === true,
	).length;
	const untold = ran.filter(({ answer }) => !answered.has(answer)).length - toldUnclear;
	const all = [...tasks, ...turns, ...chats];
	const zero = (what: string, figure: number): Figure => ({
		what,
		figure,
		target: '0',
		isGood: figure === 0,
	});
	const whole = (what: string, figure: number, wanted: number): Figure => ({
		...{ what, figure, target: String(wanted), isGood: figure === wanted },
	});
	const moreThan = (what: string, figure: number, least: number): Figure => ({
		...{ what, figure, target: `> ${least}`, isGood: figure > least },
	});
	const faults = Object.values(books.faults).reduce((sum, injected) => sum + injected, 0);
	return [
		moreThan('faults of requests', faults, 100),
		whole('tasks: items output', tasks.length, 1_000),
		moreThan('tasks: done', tasks.filter((item) => !isError(item)).length, 850),
		zero('tasks: created twice', books.duplicates),
		zero('tasks: IDs lost', lost),
		whole('tasks: reported as "may have been created"', unclear, books.unclearSubmits),
		whole('turns: items output', turns.length, 300),
		moreThan('turns: answered', turns.filter((item) => !isError(item)).length, 240),
		zero('turns: run twice', ranTwice),
		zero('turns: run, but neither answered nor reported', Math.max(0, untold)),
		zero('turns: answered outside the session of their key', outsideTheirSession(ran, answered)),
		zero('turns: more than one key in a session', sharedByKeys(ran)),
		moreThan('turns: most in one session', Math.max(...books.sessions.map(({ turns: many }) => many)), 10),
		whole('chats: items output', chats.length, 300),
		moreThan('chats: answered', chats.filter((item) => !isError(item)).length, 260),
		zero('errors in raw form', all.filter((item) => isError(item) && RAW.test(String(item.error))).length),
		zero('secrets sent to other hosts', books.leaks.length),
	];
}

async function main(): Promise<boolean> {
	const home = join(packageRoot, '.e2e');
	await mkdir(home, { recursive: true });
	const scratch = await mkdtemp(join(home, 'chaos-'));
	const platform = await startPlatform({ runners: 64, taskMs: 300, images: 'prepared', seed: SEED });
	try {
		console.log(`Seed ${SEED}. This takes some minutes.`);
		const tarball = await packTarball(scratch);
		const userFolder = join(scratch, 'n8n');
		const n8n = await startN8n({ userFolder, tarball });
		const plans = await campaigns(n8n, platform);
		platform.resetBooks();
		platform.faults.campaign({ rate: FAULT_RATE, seed: SEED });
		const results: Record<string, Item[]> = {};
		for (const plan of plans) {
			const startedMs = Date.now();
			results[plan.name] = await play(n8n, plan);
			console.log(`${plan.items} ${plan.name}: ${((Date.now() - startedMs) / 1000).toFixed(0)} s`);
		}
		platform.faults.clear();
		// This fails if a secret is found in n8n's folder.
		await n8n.stop();
		const figures = judge(platform, results);
		console.table(
			figures.map(({ what, figure, target, isGood }) => ({
				what,
				figure,
				target,
				'': isGood ? 'ok' : 'MISSED',
			})),
		);
		return figures.every(({ isGood }) => isGood);
	} finally {
		await killEveryN8n();
		await platform.close();
		await rm(scratch, { recursive: true, force: true, maxRetries: 3 });
	}
}

main().then(
	(isGood) => {
		process.exitCode = isGood ? 0 : 1;
	},
	(error: unknown) => {
		console.error(error);
		process.exitCode = 1;
	},
);
