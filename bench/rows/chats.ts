// Chats by n8n's own nodes and by ours: streamed answers, and a batch of questions.
import { join } from 'node:path';
import { asks, chatCompletion, chunksOf, inARow, modelById, webhook } from '../../test/e2e/chatWorkflows';
import { fillTemplate, type RunningN8n, type WorkflowDocument } from '../../test/e2e/runner';
import { atLeast, atMost, median, none, sum, told, type Figure } from '../figures';
import { promptFlow, readRival, runWell, withPrompts } from '../flow';
import type { BenchPlatform } from '../platform';
import { cpuSecondsOf } from '../processMeter';
import type { Row } from '../stage';

const RUNS = 5;
const FIRST_CHUNK_RUNS = 15;

const STREAMS = 10;
const TOKENS = 600;
/** The number of pieces after which a stream counts as begun. */
const BEGUN_PIECES = 10;
/** The time between tokens: on a busy machine, faster ones would share a piece and so cost less. */
const TOKEN_MS = 10;
const QUESTION = `[words: ${TOKENS}] [chunks: ${TOKENS}] [pause: ${TOKEN_MS}]`;

const QUESTIONS = 60;

const ABOVE_FLOOR_MICROS = 60;
const LATER_THAN_CORE_MS = 0.3;
const FASTER_THAN_CORE = 3;

/** One way to answer the caller of a webhook with a stream. */
interface Way {
	readonly name: string;
	readonly path: string;
	/** Whether it asks the platform, which then knows how many tokens there were. */
	readonly asks: boolean;
	readonly tokenMicros: number[];
	readonly firstChunkMs: number[];
}

interface Accounts {
	readonly openAi: { readonly id: string; readonly name: string };
	readonly platform: { readonly id: string; readonly name: string; readonly type: string };
}

async function accountsOf({ client }: RunningN8n, platform: BenchPlatform): Promise<Accounts> {
	const { apiKey, apiUrl, wsUrl } = platform;
	return {
		openAi: await client.createCredential('openAiApi', 'Platform as OpenAI', {
			apiKey,
			url: `${apiUrl}/maas/v1`,
		}),
		platform: await client.createCredential('flowPlatformApi', 'Platform for rival chats', {
			...{ apiKey, baseUrl: apiUrl, wsBaseUrl: wsUrl },
		}),
	};
}

export const chats: Row = {
	name: 'chats',
	async measure(stage) {
		return await stage.withPlatform({}, async (platform) => {
			const measureIn = async (n8n: RunningN8n): Promise<Figure[]> => {
				const ways = await publishWays(n8n, platform);
				const { silent, reading, core, model, own } = ways;
				for (let run = 0; run <= stage.times(RUNS); run++) {
					for (const way of [silent, reading, core, model, own]) {
						const micros = await microsPerToken(n8n, platform, way);
						// The first run compiles.
						if (run > 0) way.tokenMicros.push(micros);
					}
				}
				for (let run = 0; run <= stage.times(FIRST_CHUNK_RUNS); run++) {
					for (const way of [core, model, own]) {
						const delayMs = await firstChunkDelayMs(n8n, platform, way.path);
						if (run > 0) way.firstChunkMs.push(delayMs);
					}
				}
				return figuresOf(ways);
			};
			return await stage.withFreshN8n(measureIn, {
				N8N_CUSTOM_EXTENSIONS: join(__dirname, '..', 'floor'),
			});
		});
	},
};

interface Ways {
	/** n8n alone: a node that sends words without asking a model. */
	readonly silent: Way;
	/** n8n and its HTTP client: a node that asks the platform and reads the bytes without parsing them. */
	readonly reading: Way;
	readonly core: Way;
	readonly model: Way;
	readonly own: Way;
}

async function publishWays(n8n: RunningN8n, platform: BenchPlatform): Promise<Ways> {
	const accounts = await accountsOf(n8n, platform);
	const core = fillTemplate(readRival('agent-openai-model.json'), {
		credentials: { openAiApi: accounts.openAi },
	});
	const ownModel = {
		...chatCompletion(accounts.platform, { model: modelById('plain-1'), options: {} }),
		name: 'FlowPlatform Chat Model',
		type: 'n8n-nodes-flowtask.lmChatFlowPlatform',
	};
	const ask = chatCompletion(accounts.platform, {
		model: modelById('plain-1'),
		messages: asks('={{ $json.body.question }}'),
		options: {},
	});
	const talk = inARow('Bench chat', [webhook('bench-chat', 'streaming'), ask]);
	const publish = async (
		name: string,
		path: string,
		flow: WorkflowDocument,
		asksPlatform = true,
	): Promise<Way> => {
		await n8n.client.activate(await n8n.client.createWorkflow(flow));
		return { name, path, asks: asksPlatform, tokenMicros: [], firstChunkMs: [] };
	};
	return {
		silent: await publish("n8n's floor, nothing read", 'bench-silent', floor('bench-silent', {}), false),
		reading: await publish(
			"n8n's floor, bytes read",
			'bench-reading',
			floor('bench-reading', {
				url: `${platform.apiUrl}/maas/v1/chat/completions`,
				apiKey: platform.apiKey,
				body: JSON.stringify({
					model: 'plain-1',
					messages: [{ role: 'user', content: QUESTION }],
					stream: true,
				}),
			}),
		),
		core: await publish("AI Agent, n8n's OpenAI Chat Model", 'bench-agent-openai-model', core),
		model: await publish(
			'AI Agent, FlowPlatform Chat Model',
			'bench-agent-own-model',
			withModel(core, ownModel),
		),
		own: await publish('ChatCompletion', 'bench-chat', talk),
	};
}

/** A workflow with a node of bench/floor, which streams as many words at the same pace. */
function floor(path: string, parameters: Record<string, unknown>): WorkflowDocument {
	const node = {
		name: 'Chat Floor',
		type: 'CUSTOM.chatFloor',
		parameters: { words: TOKENS, pauseMs: TOKEN_MS, ...parameters },
	};
	return inARow(`Bench ${path}`, [webhook(path, 'streaming'), node]);
}

/** The same agent with another model. */
function withModel(
	flow: WorkflowDocument,
	model: Partial<WorkflowDocument['nodes'][number]> & { readonly name: string },
): WorkflowDocument {
	const text = JSON.stringify(flow).replaceAll('bench-agent-openai-model', 'bench-agent-own-model');
	const copy = JSON.parse(text) as WorkflowDocument;
	const { 'OpenAI Chat Model': toAgent, ...connections } = copy.connections;
	return {
		...copy,
		name: 'Bench agent with our model',
		nodes: copy.nodes.map((node) => (node.name === 'OpenAI Chat Model' ? { ...node, ...model } : node)),
		connections: { ...connections, [model.name]: toAgent },
	};
}

/** Reads an answer to its end. */
async function readAnswer(
	n8n: RunningN8n,
	path: string,
	question: string,
	heard: (text: string) => void,
): Promise<void> {
	const response = await n8n.client.callWebhook(path, { question });
	for await (const { type, content = '' } of chunksOf(response)) {
		if (type === 'error') throw new Error(`${path} answered with an error: ${content}`);
		if (type === 'item' && content !== '') heard(content);
	}
}

/** Measures CPU time only while all streams are running, so the start and end of executions do not count. */
async function microsPerToken(
	n8n: RunningN8n,
	platform: BenchPlatform,
	{ path, asks: asksPlatform }: Way,
): Promise<number> {
	await platform.resetBooks();
	let characters = 0;
	let begun = 0;
	const marks: Array<{ readonly seconds: number; readonly characters: number }> = [];
	const mark = (): void => {
		marks.push({ seconds: cpuSecondsOf(n8n.pid), characters });
	};
	const listen = async (): Promise<void> => {
		let pieces = 0;
		await readAnswer(n8n, path, QUESTION, (text) => {
			characters += text.length;
			if (++pieces === BEGUN_PIECES && ++begun === STREAMS) mark();
		});
		// The first stream has ended.
		if (begun === STREAMS && marks.length === 1) mark();
	};
	await Promise.all(Array.from({ length: STREAMS }, listen));
	const [from, to] = marks;
	const { chats: entries } = await platform.books();
	const sent = asksPlatform ? sum(entries.map(({ chunksSent }) => chunksSent)) : STREAMS * TOKENS;
	const asked = asksPlatform ? STREAMS : 0;
	if (!from || !to || entries.length !== asked || entries.some(({ ended }) => ended !== 'done')) {
		throw new Error(`${path}: the streams did not run in parallel to their end`);
	}
	const tokens = ((to.characters - from.characters) / characters) * sent;
	return ((to.seconds - from.seconds) / tokens) * 1e6;
}

async function firstChunkDelayMs(n8n: RunningN8n, platform: BenchPlatform, path: string): Promise<number> {
	await platform.resetBooks();
	let heardAtMs = Number.NaN;
	await readAnswer(n8n, path, '[words: 20] [takes: 100] [pause: 20]', () => {
		if (Number.isNaN(heardAtMs)) heardAtMs = performance.timeOrigin + performance.now();
	});
	const [chat] = (await platform.books()).chats;
	return heardAtMs - (chat?.firstChunkAt ?? Number.NaN);
}

function figuresOf({ silent, reading, core, model, own }: Ways): Figure[] {
	const ratios = (left: readonly number[], right: readonly number[]): number[] =>
		left.map((value, index) => value / (right[index] ?? Number.NaN));
	const cheaper = ratios(core.tokenMicros, own.tokenMicros);
	const modelCheaper = ratios(core.tokenMicros, model.tokenMicros);
	const later = median(own.firstChunkMs) - median(core.firstChunkMs);
	const above = own.tokenMicros.map((micros, index) => micros - (reading.tokenMicros[index] ?? Number.NaN));
	return [
		...[silent, reading].map(({ name, tokenMicros }) =>
			told(median(tokenMicros), `${name}: CPU of n8n per streamed token`, ' µs', tokenMicros),
		),
		...[core, model, own].flatMap(({ name, tokenMicros, firstChunkMs }) => [
			told(median(tokenMicros), `${name}: CPU of n8n per streamed token`, ' µs', tokenMicros),
			told(median(firstChunkMs), `${name}: first chunk`, ' ms', firstChunkMs),
		]),
		told(median(cheaper), 'AI Agent ÷ ChatCompletion: CPU per streamed token', ' ×', cheaper),
		atMost(ABOVE_FLOOR_MICROS, median(above), {
			...{ what: 'ChatCompletion less the floor that reads bytes: CPU per streamed token', kind: 'time' },
			...{ unit: ' µs', runs: above },
		}),
		atMost(LATER_THAN_CORE_MS, later, {
			...{ what: 'ChatCompletion less AI Agent: first chunk', kind: 'time', unit: ' ms' },
		}),
		told(
			median(modelCheaper),
			'OpenAI ÷ FlowPlatform Chat Model: CPU per streamed token',
			' ×',
			modelCheaper,
		),
	];
}

export const questions: Row = {
	name: 'questions',
	async measure(stage) {
		return await stage.withPlatform({}, async (platform) => {
			const n8n = await stage.n8n();
			const accounts = await accountsOf(n8n, platform);
			const rival = fillTemplate(readRival('questions-openai.json'), {
				credentials: { openAiApi: accounts.openAi },
			});
			const own = chatCompletion(accounts.platform, {
				model: modelById('plain-1'),
				messages: asks('={{ $json.prompt }} [takes: 200] [words: 20]'),
				options: {},
			});
			const rivalMs: number[] = [];
			const ownMs: number[] = [];
			const times = stage.times(RUNS);
			for (let run = 1; run <= times; run++) {
				rivalMs.push((await runWell(n8n, withPrompts(rival, QUESTIONS, `core ${run}`))).wallMs);
				const flow = promptFlow(QUESTIONS, `own ${run}`, [
					{ type: '', typeVersion: 1, parameters: {}, ...own },
				]);
				ownMs.push((await runWell(n8n, flow)).wallMs);
			}
			const { chats: entries } = await platform.books();
			const faster = rivalMs.map((wallMs, index) => wallMs / (ownMs[index] ?? Number.NaN));
			const what = `${QUESTIONS} questions of 200 ms`;
			const seconds = (list: readonly number[]): number[] => list.map((wallMs) => wallMs / 1000);
			return [
				told(median(rivalMs) / 1000, `n8n's OpenAI node, ${what}: wall time`, ' s', seconds(rivalMs)),
				told(median(ownMs) / 1000, `ChatCompletion, ${what}: wall time`, ' s', seconds(ownMs)),
				atLeast(FASTER_THAN_CORE, median(faster), {
					...{
						what: "n8n's OpenAI node ÷ ChatCompletion: wall time",
						kind: 'time',
						unit: ' ×',
						runs: faster,
					},
				}),
				none(Math.abs(entries.length - 2 * times * QUESTIONS), 'questions too many or too few, both'),
			];
		});
	},
};
