import { isJsonObject, jsonText, parseJson, type Json, type JsonObject } from '../shared/text/json';
import { createBracketCount, type BracketCount } from './brackets';

/** A tool call that the model asks for; the arguments as an object where they are one. */
export interface ToolCall {
	readonly id: string;
	readonly name: string;
	readonly arguments: Json;
}

interface OpenCall {
	index: number | undefined;
	id: string;
	name: string;
	text: string;
	/** Of its text so far, which would cost too much to read anew for each piece. */
	readonly brackets: BracketCount;
	/** How many objects or lists its text holds. */
	closed: number;
}

/** What of a delta counts. */
type Piece = Pick<OpenCall, 'index' | 'id' | 'name' | 'text'>;

/** Joins tool calls that come in pieces. */
export interface ToolCallJoiner {
	add(deltas: Json | undefined): void;
	calls(): ToolCall[];
	/** As the interface writes them, arguments as text. */
	raw(): JsonObject[];
	readonly count: number;
	/** Characters of identifiers, names and arguments. */
	readonly size: number;
}

/**
 * Servers differ in how they say to which call a piece belongs: by `index`, which may begin at any number; by
 * `id`, which may come once, always or be empty; or not at all.
 */
export function createToolCallJoiner(): ToolCallJoiner {
	const open: OpenCall[] = [];
	let size = 0;

	const callOf = (piece: Piece): OpenCall => {
		const { index, id, name } = piece;
		const last = open.at(-1);
		const same =
			index !== undefined
				? open.findLast((call) => call.index === index)
				: id
					? open.find((call) => call.id === id)
					: last;
		if (same && !beginsAnother(same, piece)) return same;
		const call: OpenCall = { index, id: '', name: '', text: '', brackets: createBracketCount(), closed: 0 };
		// A piece that belongs to nothing known goes with what came last.
		if (!same && last && !id && !name) return last;
		open.push(call);
		return call;
	};

	const addOne = (delta: Json): void => {
		if (!isJsonObject(delta)) return;
		const inner = isJsonObject(delta.function) ? delta.function : delta;
		const index = typeof delta.index === 'number' ? delta.index : undefined;
		const id = typeof delta.id === 'string' ? delta.id : '';
		const name = typeof inner.name === 'string' ? inner.name : '';
		const piece = argumentText(inner.arguments);
		if (!id && !name && !piece) return;
		const call = callOf({ index, id, name, text: piece });
		size += id.length + name.length + piece.length;
		call.id ||= id;
		if (name && name !== call.name) call.name += name;
		// Some servers open a call with empty arguments and send the real ones afterwards.
		if (isEmptyObject(call.text) && piece.trimStart().startsWith('{')) {
			call.text = '';
			call.closed = 0;
		}
		call.text += piece;
		for (const char of piece) if (call.brackets.take(char) === 'closes') call.closed++;
	};

	return {
		add: (deltas) => {
			if (Array.isArray(deltas)) deltas.forEach(addOne);
			else if (deltas !== undefined) addOne(deltas);
		},
		calls: () => open.map(({ id, name, text }) => ({ id, name, arguments: argumentsOf(text) })),
		get count() {
			return open.length;
		},
		get size() {
			return size;
		},
		raw: () =>
			open.map(({ id, name, text }) => ({ id, type: 'function', function: { name, arguments: text } })),
	};
}

/** Whether a piece that seems to belong to `call` begins a new one in truth. */
function beginsAnother(call: OpenCall, { index, id, name, text }: Piece): boolean {
	if (id && call.id && id !== call.id) return true;
	if (!name || !call.name || (id && id === call.id)) return false;
	// Without an id a name tells, unless the server repeats it with every piece or sends it in pieces.
	const isComplete = call.closed === 1 && call.brackets.depth === 0;
	if (index === undefined && !id) return name !== call.name || isComplete;
	return isComplete && (name !== call.name || text.trim() !== '') && !isEmptyObject(call.text);
}

/** A long text is none, and is not walked through. */
function isEmptyObject(text: string): boolean {
	return text.length < 100 && text.trim() === '{}';
}

/** Arguments as data; the text where they are none that n8n could write down. */
function argumentsOf(text: string): Json {
	if (!text) return {};
	const parsed = parseJson(text);
	return parsed === undefined ? text : parsed;
}

function argumentText(value: Json | undefined): string {
	if (typeof value === 'string') return value;
	return value === undefined || value === null ? '' : (jsonText(value) ?? '');
}
