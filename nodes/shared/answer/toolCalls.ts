import { randomUUID } from 'crypto';

import { BracketCount } from '../text/brackets';
import { isJsonObject, jsonText, parseJson, type Json, type JsonObject } from '../text/json';
import { textOf, textOrNumber } from '../text/textOf';

export interface ToolCall {
	readonly id: string;
	readonly name: string;
	/** The arguments, parsed if they are JSON, otherwise as text. */
	readonly arguments: Json;
}

interface CallPiece {
	readonly index: number | undefined;
	readonly id: string;
	readonly name: string;
	readonly text: string;
}

interface OpenCall {
	id: string;
	name: string;
	text: string;
	/** Updated with each piece, because rereading the whole text would take quadratic time. */
	brackets: BracketCount;
}

/** Each call also counts this many characters, so that millions of empty calls exceed the limit. */
const CALL_CHARS = 1_000;

/**
 * Joins tool calls that come in pieces. Servers differ in how they assign a piece to a call: by `index`, which may
 * begin at any number; by `id`, which may come once, with every piece, or empty; or not at all.
 */
export class ToolCallJoiner {
	private readonly open: OpenCall[] = [];
	/** The newest call of each index, and the first call of each ID. */
	private readonly byIndex = new Map<number, OpenCall>();
	private readonly byId = new Map<string, OpenCall>();
	/** The number of characters of all IDs, names and arguments, plus `CALL_CHARS` for each call. */
	size = 0;

	add(deltas: Json | undefined): void {
		for (const delta of Array.isArray(deltas) ? deltas : [deltas]) {
			const piece = isJsonObject(delta) ? pieceIn(delta) : undefined;
			if (piece && (piece.id || piece.name || piece.text)) this.addPiece(piece);
		}
	}

	calls(): ToolCall[] {
		return this.open.map(({ id, name, text }) => {
			const parsed = text ? parseJson(text) : {};
			return { id, name, arguments: parsed === undefined ? text : parsed };
		});
	}

	/** The calls in the interface's shape, with arguments as a string. */
	raw(): JsonObject[] {
		return this.open.map(({ id, name, text }) => ({
			id,
			type: 'function',
			function: { name, arguments: text },
		}));
	}

	/**
	 * Adds what an agent needs to carry out the calls and some servers leave out: arguments, and an ID. No two answers get
	 * the same ID, because n8n drops the result of a call whose ID it has seen before.
	 */
	complete(): void {
		for (const call of this.open) {
			call.id ||= `call_${randomUUID().replaceAll('-', '')}`;
			if (call.text.trim() === '') call.text = '{}';
		}
	}

	private addPiece(piece: CallPiece): void {
		const { id, name, text } = piece;
		const call = this.callOf(piece);
		this.size += id.length + name.length + text.length;
		call.id ||= id;
		if (id && !this.byId.has(id)) this.byId.set(id, call);
		if (name !== call.name) call.name += name;
		// Some servers open a call with empty arguments and send the real ones afterwards.
		if (isEmptyObject(call.text) && text.trimStart().startsWith('{')) {
			call.text = '';
			call.brackets = new BracketCount();
		}
		call.text += text;
		for (const char of text) call.brackets.take(char);
	}

	private callOf(piece: CallPiece): OpenCall {
		const { index, id, name } = piece;
		const last = this.open.at(-1);
		let same = last;
		if (index !== undefined) same = this.byIndex.get(index);
		else if (id) same = this.byId.get(id);
		if (same && !beginsAnother(same, piece)) return same;
		// A piece of no known call, without an ID or a name, continues the last call.
		if (!same && last && !id && !name) return last;
		const call: OpenCall = { id: '', name: '', text: '', brackets: new BracketCount() };
		this.open.push(call);
		this.size += CALL_CHARS;
		if (index !== undefined) this.byIndex.set(index, call);
		return call;
	}
}

function pieceIn(delta: JsonObject): CallPiece {
	const inner = isJsonObject(delta.function) ? delta.function : delta;
	const given = inner.arguments ?? '';
	const name = textOf(inner.name);
	return {
		index: typeof delta.index === 'number' ? delta.index : undefined,
		// A number is an ID only where a call begins: further on, it may count pieces.
		id: name ? textOrNumber(delta.id) : textOf(delta.id),
		name,
		text: typeof given === 'string' ? given : (jsonText(given) ?? ''),
	};
}

/** Whether a piece that seems to belong to `call` actually begins a new one. */
function beginsAnother(call: OpenCall, { index, id, name, text }: CallPiece): boolean {
	// Some servers send another ID with each piece of a call.
	if (id && call.id && id !== call.id) return name !== '' || index === undefined;
	if (!name || !call.name || (id && id === call.id)) return false;
	// Without an ID, a name begins a new call, unless the server repeats it with every piece or sends it in pieces.
	const isComplete = call.brackets.closed === 1 && call.brackets.depth === 0;
	if (index === undefined && !id) return name !== call.name || isComplete;
	return isComplete && (name !== call.name || text.trim() !== '') && !isEmptyObject(call.text);
}

/** Long text is not checked, because trimming it for each piece would take too long. */
function isEmptyObject(text: string): boolean {
	return text.length < 100 && text.trim() === '{}';
}
