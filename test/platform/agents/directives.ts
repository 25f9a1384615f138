import { isRecord, parseWireJson } from '../wireJson';

export type PlannedInterrupt =
	| { readonly kind: 'question'; readonly question: string }
	| { readonly kind: 'tool'; readonly toolName: string; readonly arguments: unknown };

/** What a stream does in place of its last event, after so many pieces. */
export interface StreamEnd {
	readonly how: 'cut' | 'silent' | 'end';
	readonly after: number;
}

/** What a message orders the agent to do. */
export interface Script {
	answer?: string;
	recall: boolean;
	describeFiles: boolean;
	takesMs: number;
	hold: boolean;
	effects: string[];
	/** Tools that a streamed turn uses by itself before its first piece. */
	steps: string[];
	interrupts: PlannedInterrupt[];
	fail?: string;
	refuse?: string;
	/** Pieces of a streamed answer. */
	chunks: number;
	pauseMs: number;
	deltas: boolean;
	/** A stream halts after so many pieces until it is released. */
	holdAfter?: number;
	streamEnd?: StreamEnd;
}

const DEFAULT_CHUNKS = 3;

function numberIn(text: string, otherwise: number): number {
	const number = Number.parseFloat(text);
	return Number.isFinite(number) && number >= 0 ? number : otherwise;
}

/** `name {json}`: arguments that are no JSON object go along as they are. */
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
	step: (script, detail) => {
		script.steps.push(detail || 'search');
	},
	question: ask,
	'then question': ask,
	tool: callTool,
	'then tool': callTool,
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

/** Where the bracket closes that is open at `start`: the arguments of a tool may hold brackets of their own. */
function closingBracket(text: string, start: number): number {
	let depth = 1;
	for (let index = start; index < text.length; index++) {
		if (text[index] === '[') depth++;
		else if (text[index] === ']' && --depth === 0) return index;
	}
	return text.length;
}

/** Reads what `[word: detail]` texts in a message order, one after the other. */
export function readScript(message: string): Script {
	const script: Script = {
		recall: false,
		describeFiles: false,
		takesMs: 0,
		hold: false,
		effects: [],
		steps: [],
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
