import { closingBracket } from '../closingBracket';
import { isRecord, parseWireJson } from '../wireJson';

export type PlannedInterrupt =
	| { readonly kind: 'question'; readonly question: string }
	| { readonly kind: 'tool'; readonly toolName: string; readonly arguments: unknown };

/** What a stream does instead of its last event, and after how many pieces. */
export interface StreamEnd {
	readonly how: 'cut' | 'silent' | 'end';
	readonly after: number;
}

/** The orders of a message to the agent. */
export interface Script {
	answer?: string;
	recall: boolean;
	describeFiles: boolean;
	takesMs: number;
	hold: boolean;
	effects: string[];
	interrupts: PlannedInterrupt[];
	fail?: string;
	refuse?: string;
	/** The number of pieces of a streamed answer. */
	chunks: number;
	pauseMs: number;
	deltas: boolean;
	/** After how many pieces a stream halts until it is released. */
	holdAfter?: number;
	streamEnd?: StreamEnd;
}

const DEFAULT_CHUNKS = 3;

function numberIn(text: string, otherwise: number): number {
	const number = Number.parseFloat(text);
	return Number.isFinite(number) && number >= 0 ? number : otherwise;
}

/** Reads `name {json}`; arguments that are not a JSON object are passed on unchanged. */
function toolCall(text: string): PlannedInterrupt {
	const [, toolName = '', rest = ''] = /^(\S*)\s*([\s\S]*)$/.exec(text) ?? [];
	return { kind: 'tool', toolName: toolName || 'act', arguments: rest === '' ? {} : readArguments(rest) };
}

function readArguments(text: string): unknown {
	try {
		const value = parseWireJson(text);
		return isRecord(value) ? value : { value };
	} catch {
		return { text };
	}
}

type Order = (script: Script, detail: string) => void;

function ask(script: Script, detail: string): void {
	script.interrupts.push({ kind: 'question', question: detail || 'Shall I go on?' });
}

function callTool(script: Script, detail: string): void {
	script.interrupts.push(toolCall(detail));
}

function endStream(how: StreamEnd['how']): Order {
	return (script, detail) => {
		script.streamEnd = { how, after: numberIn(detail, 1) };
	};
}

const ORDERS: Readonly<Record<string, Order>> = {
	answer: (script, detail) => {
		script.answer = detail;
	},
	recall: (script) => {
		script.recall = true;
	},
	'describe files': (script) => {
		script.describeFiles = true;
	},
	takes: (script, detail) => {
		script.takesMs = numberIn(detail, 0);
	},
	hold: (script) => {
		script.hold = true;
	},
	'side effect': (script, detail) => {
		script.effects.push(detail);
	},
	question: ask,
	tool: callTool,
	fail: (script, detail) => {
		script.fail = detail || 'The agent could not finish';
	},
	refuse: (script, detail) => {
		script.refuse = detail || 'The agent is overloaded';
	},
	chunks: (script, detail) => {
		script.chunks = Math.max(1, Math.floor(numberIn(detail, DEFAULT_CHUNKS)));
	},
	pause: (script, detail) => {
		script.pauseMs = numberIn(detail, 0);
	},
	'hold after': (script, detail) => {
		script.holdAfter = numberIn(detail, 1);
	},
	'no deltas': (script) => {
		script.deltas = false;
	},
	'cut after': endStream('cut'),
	'silent after': endStream('silent'),
	'end after': endStream('end'),
};

const OPENING = new RegExp(`\\[(${Object.keys(ORDERS).join('|')})\\s*(?=[:\\]])`, 'gi');

/** Reads the orders in a message, which are `[word: detail]` texts, one after the other. */
export function readScript(message: string): Script {
	const script: Script = {
		recall: false,
		describeFiles: false,
		takesMs: 0,
		hold: false,
		effects: [],
		interrupts: [],
		chunks: DEFAULT_CHUNKS,
		pauseMs: 0,
		deltas: true,
	};
	for (const match of message.matchAll(OPENING)) {
		const start = match.index + match[0].length;
		const detail = message.slice(start, closingBracket(message, start)).replace(/^:/, '').trim();
		ORDERS[match[1]?.toLowerCase() ?? '']?.(script, detail);
	}
	return script;
}
