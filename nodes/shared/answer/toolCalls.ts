import { randomUUID } from 'crypto';

import { BracketCount } from '../text/brackets';
import { isJsonObject, jsonText, parseJson, type Json, type JsonObject } from '../text/json';
import { textOf, textOrNumber } from '../text/textOf';

export interface ToolCall {
	readonly id: string;
	readonly name: string;
	/** The arguments, parsed if they are JSON, otherwise as text; of a call that can be carried out, an object. */
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
 * begin at any number; by `id`, which may come once, with every piece, or empty; or not at all. Some send all arguments
 * so far with each piece, or once more at the end.
 */
export class ToolCallJoiner {
	private readonly open: OpenCall[] = [];
	/** The newest call of each index and of each ID. */
	private readonly byIndex = new Map<number, OpenCall>();
	private readonly byId = new Map<string, OpenCall>();
	/** The calls that the list being read has begun. Two entries of one list are two calls, unless they share an index. */
	private begun = new Set<OpenCall>();
	/** The number of characters of all IDs, names and arguments, plus `CALL_CHARS` for each call. */
	size = 0;

	/** @param taken IDs of earlier turns of the conversation */
	constructor(private readonly taken: ReadonlySet<string> = new Set()) {}

	add(deltas: Json | undefined): void {
		this.begun = new Set();
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
	 * Adds what is needed to carry out the calls and some servers leave out or get wrong: arguments, once encoded, and an
	 * ID that no other call of the conversation has, because n8n's agent drops the result of a call whose ID it has seen
	 * before, although the tool ran.
	 * @returns whether anything differs from what the server sent
	 */
	complete(): boolean {
		const taken = new Set(this.taken);
		let differs = false;
		for (const call of this.open) {
			const isNew = call.id !== '' && !taken.has(call.id);
			if (!isNew) call.id = `call_${randomUUID().replaceAll('-', '')}`;
			taken.add(call.id);
			const text = /^\s*(null\s*)?$/.test(call.text) ? '{}' : decodedOnce(call.text);
			differs ||= !isNew || text !== call.text;
			call.text = text;
		}
		return differs;
	}

	private addPiece(piece: CallPiece): void {
		const { id, name, text } = piece;
		const call = this.callOf(piece);
		this.size += id.length + name.length + text.length;
		call.id ||= id;
		if (id) this.byId.set(id, call);
		if (name !== call.name) call.name += name;
		// Some servers open a call with empty arguments and send the real ones afterwards.
		const isOpening = isEmptyObject(call.text) && text.trimStart().startsWith('{');
		if (isOpening || repeats(call, text)) {
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
		const isListed = index === undefined && name !== '' && same !== undefined && this.begun.has(same);
		if (same && !isListed && !beginsAnother(same, piece)) return same;
		// A piece of no known call, without an ID or a name, continues the last call.
		if (!same && last && !id && !name) return last;
		const call: OpenCall = { id: '', name: '', text: '', brackets: new BracketCount() };
		this.open.push(call);
		this.begun.add(call);
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
function beginsAnother(call: OpenCall, piece: CallPiece): boolean {
	const { index, id, name, text } = piece;
	const isSameName = name === call.name;
	// Some servers send another ID with each piece of a call.
	if (id && call.id && id !== call.id) return name !== '' || index === undefined;
	if (!name || !call.name) return false;
	if (isSameName && (id || index !== undefined) && repeats(call, text)) return false;
	const isComplete = call.brackets.closed === 1 && call.brackets.depth === 0 && !isEmptyObject(call.text);
	// Without an ID, a name begins a new call, unless the server repeats it with every piece or sends it in pieces.
	if (index === undefined && !id) return !isSameName || isComplete;
	if (!isSameName && call.text !== '' && id) return true;
	return isComplete && (!isSameName || text.trimStart().startsWith('{'));
}

/** Whether a piece of arguments begins with all that came so far. In one JSON object, no text can follow itself. */
function repeats({ text: known }: OpenCall, text: string): boolean {
	return text.length >= known.length && /^\s*\{/.test(known) && text.startsWith(known);
}

/** Arguments without the second encoding of servers that send an object as JSON within JSON text. */
function decodedOnce(text: string): string {
	if (!/^\s*"/.test(text)) return text;
	const inner = parseJson(text);
	return typeof inner === 'string' && isJsonObject(parseJson(inner)) ? inner : text;
}

/** Long text is not checked, because trimming it for each piece would take too long. */
function isEmptyObject(text: string): boolean {
	return text.length < 100 && text.trim() === '{}';
}
