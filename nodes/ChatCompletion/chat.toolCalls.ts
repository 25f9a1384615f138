import { isJsonObject, isTooDeep, jsonText, parseJson, type Json, type JsonObject } from '../shared/json';

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
}

/** Joins tool calls that come in pieces. */
export interface ToolCallJoiner {
	add(deltas: Json | undefined): void;
	calls(): ToolCall[];
	/** As the interface writes them, arguments as text. */
	raw(): JsonObject[];
}

/**
 * Servers differ in how they say to which call a piece belongs: by `index`, which may begin at any number; by
 * `id`, which may come once, always or be empty; or not at all.
 */
export function createToolCallJoiner(): ToolCallJoiner {
	const open: OpenCall[] = [];

	const callOf = ({ index, id, name, text }: OpenCall): OpenCall => {
		const last = open.at(-1);
		const same =
			index !== undefined
				? open.findLast((call) => call.index === index)
				: id
					? open.find((call) => call.id === id)
					: last;
		if (same && !beginsAnother(same, { index, id, name, text })) return same;
		const call: OpenCall = { index, id: '', name: '', text: '' };
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
		call.id ||= id;
		if (name && name !== call.name) call.name += name;
		// Some servers open a call with empty arguments and send the real ones afterwards.
		call.text = call.text.trim() === '{}' && piece.trimStart().startsWith('{') ? piece : call.text + piece;
	};

	return {
		add: (deltas) => {
			if (Array.isArray(deltas)) deltas.forEach(addOne);
			else if (deltas !== undefined) addOne(deltas);
		},
		calls: () => open.map(({ id, name, text }) => ({ id, name, arguments: argumentsOf(text) })),
		raw: () =>
			open.map(({ id, name, text }) => ({ id, type: 'function', function: { name, arguments: text } })),
	};
}

/** Whether a piece that seems to belong to `call` begins a new one in truth. */
function beginsAnother(call: OpenCall, { index, id, name, text }: OpenCall): boolean {
	if (id && call.id && id !== call.id) return true;
	if (!name || !call.name || (id && id === call.id)) return false;
	// Without an id a name tells, unless the server repeats it with every piece or sends it in pieces.
	const isComplete = parseJson(call.text) !== undefined;
	if (index === undefined && !id) return name !== call.name || isComplete;
	return isComplete && (name !== call.name || text.trim() !== '') && call.text.trim() !== '{}';
}

/** Arguments as data; the text where they are none that n8n could write down. */
function argumentsOf(text: string): Json {
	if (!text) return {};
	const parsed = parseJson(text);
	return parsed === undefined || isTooDeep(parsed) ? text : parsed;
}

function argumentText(value: Json | undefined): string {
	if (typeof value === 'string') return value;
	return value === undefined || value === null ? '' : (jsonText(value) ?? '');
}
