import { fail, failInput, ok, type Result } from '../../shared/errors/failure';
import { jsonText, parseJson, type Json, type JsonObject } from '../../shared/text/json';
import { lossIn, ROUNDED, roundedNumber } from '../../shared/form/pastedJson';
import { convertTo, showValue } from './values';

/** Ends what a refused item is told. */
export const NOT_SUBMITTED = 'Nothing was submitted for this item.';

/** `prompt` of §4.1: node ID -> the inputs changed in this request. */
export type Prompt = Record<string, { inputs: JsonObject }>;

/** Sets inputs, all at once, because a copy of the prompt for each would take quadratic time. */
export function withInputs(prompt: Prompt, inputs: readonly PromptInput[]): Prompt {
	const nodes = new Map(Object.entries(prompt));
	for (const [nodeId, own] of Map.groupBy(inputs, (input) => input.nodeId)) {
		const values = own.map(({ parameter, value }) => [parameter, value] as const);
		nodes.set(nodeId, { inputs: { ...nodes.get(nodeId)?.inputs, ...Object.fromEntries(values) } });
	}
	// Makes any ID an own property, even "__proto__".
	return Object.fromEntries(nodes);
}

export function valueIn(prompt: Prompt, nodeId: string, parameter: string): Json | undefined {
	const inputs = Object.hasOwn(prompt, nodeId) ? prompt[nodeId]?.inputs : undefined;
	return inputs && Object.hasOwn(inputs, parameter) ? inputs[parameter] : undefined;
}

export interface PromptInput {
	readonly nodeId: string;
	readonly parameter: string;
	readonly value: Json;
}

export function inputsIn(prompt: Prompt): PromptInput[] {
	return Object.entries(prompt).flatMap(([nodeId, { inputs }]) =>
		Object.entries(inputs).map(([parameter, value]) => ({ nodeId, parameter, value })),
	);
}

/** The name of an input in messages, without the title of its node. */
export function inputName(nodeId: string, parameter: string): string {
	return `"${parameter}" of node ${nodeId}`;
}

/** One row of "Inputs by Node ID". */
export interface OverrideField {
	readonly nodeId: string;
	readonly parameter: string;
	readonly value: unknown;
	readonly valueType: OverrideType;
}

type OverrideType = 'auto' | 'string' | 'number' | 'boolean' | 'json';

/** Builds `prompt` (§4.1) from rows. One error lists everything that is wrong. */
export function promptFromFields(rows: readonly OverrideField[]): Result<Prompt> {
	const inputs = new Map<string, PromptInput>();
	const complaints: string[] = [];
	for (const [index, row] of rows.entries()) {
		const nodeId = row.nodeId.trim();
		const parameter = row.parameter.trim();
		const read = readRow({ ...row, nodeId, parameter }, inputs);
		if (read.ok) inputs.set(inputName(nodeId, parameter), { nodeId, parameter, value: read.value });
		else complaints.push(`Row ${index + 1} ${read.failure}`);
	}
	if (complaints.length === 0) return ok(withInputs({}, [...inputs.values()]));
	return failInput(
		`'Inputs by Node ID' cannot be sent: ${complaints.join('; ')}`,
		`Correct ${complaints.length === 1 ? 'this row' : 'these rows'} in the node. ${NOT_SUBMITTED}`,
	);
}

/** @param before the inputs of earlier rows, by name */
function readRow(
	{ nodeId, parameter, value, valueType }: OverrideField,
	before: ReadonlyMap<string, PromptInput>,
): Result<Json, string> {
	if (!nodeId) return fail('has no node ID');
	if (!parameter) return fail(`(node ${nodeId}) has no parameter name`);
	const name = inputName(nodeId, parameter);
	if (before.has(name)) return fail(`sets ${name} a second time`);
	const converted = convert(value, valueType);
	return converted.ok ? converted : fail(`(${name}) ${converted.failure}`);
}

function convert(value: unknown, type: OverrideType): Result<Json, string> {
	const json = toJson(value);
	if (json === undefined || json === null) return fail('has no value (an expression returned nothing)');
	const text = typeof json === 'string' ? json : JSON.stringify(json);
	const rounded = roundedNumber(value);
	if (rounded !== undefined) return fail(`contains ${rounded}, which ${ROUNDED}`);
	switch (type) {
		case 'auto':
			// An empty value often comes from an expression that found nothing.
			if (!text.trim()) return fail('has an empty value; to send empty text, choose the type Text');
			return ok(typeof json === 'string' ? fromText(json) : json);
		case 'string':
			return ok(text);
		case 'number':
		case 'boolean': {
			const typed = convertTo(type, json);
			return typed.ok ? typed : fail(`is ${showValue(json)}, but must be ${typed.failure}`);
		}
		case 'json': {
			const parsed = typeof json === 'string' ? parseJson(json) : json;
			if (parsed === undefined) return fail(`is ${showValue(json)}, which is not valid JSON`);
			const loss = typeof json === 'string' ? lossIn(json) : undefined;
			return loss ? fail(loss.clause) : ok(parsed);
		}
	}
}

/** The result of an expression as JSON; `undefined` if it cannot be written as JSON. */
export function toJson(value: unknown): Json | undefined {
	return parseJson(jsonText(value) ?? '');
}

/** Converts text such as `42` or `true`. A number with leading zeros, or too many digits, stays text. */
function fromText(text: string): Json {
	const word = text.trim();
	if (word === 'true' || word === 'false') return word === 'true';
	if (!/^-?(0|[1-9]\d*)(\.\d+)?$/.test(word)) return text;
	const number = Number(word);
	const isExact = Number.isSafeInteger(number) || (word.includes('.') && word.length <= 16);
	return isExact ? number : text;
}
