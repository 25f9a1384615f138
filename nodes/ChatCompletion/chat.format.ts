import { Validator, type Schema } from 'jsonschema';

import { badInput, fail, ok, type Result } from '../shared/failure';
import { excerpt, isJsonObject, isTooDeep, parseJson, type Json, type JsonObject } from '../shared/json';

/** What the answer has to be. */
export type AnswerFormat =
	| { readonly kind: 'text' }
	| { readonly kind: 'jsonObject' }
	| {
			readonly kind: 'jsonSchema';
			readonly name: string;
			readonly schema: JsonObject;
			/** Left out where the model is held to the schema: strict schemas are a narrower kind (§4.5). */
			readonly strict?: false;
	  };

/** An answer's text as JSON, or a sentence that says why it is none. */
export type ParsedAnswer =
	{ readonly ok: true; readonly value: Json } | { readonly ok: false; readonly problem: string };

/** Schemas of the wild say more mistakes than a person reads. */
const PROBLEMS_SHOWN = 3;

/** Without an address of its own, the library cannot follow a reference such as "#/$defs/title". Nothing is loaded. */
const SCHEMA_BASE = 'https://schema.invalid/answer';

/** The `response_format` of a request; nothing for plain text. */
export function responseFormat(format: AnswerFormat): JsonObject {
	switch (format.kind) {
		case 'text':
			return {};
		case 'jsonObject':
			return { response_format: { type: 'json_object' } };
		case 'jsonSchema': {
			const { name, schema, strict = true } = format;
			return { response_format: { type: 'json_schema', json_schema: { name, schema, strict } } };
		}
	}
}

/** Reads the schema that the operator gave, alone or in the wrapping that the chat interface uses. */
export function readSchema(value: unknown): Result<AnswerFormat> {
	const parsed = typeof value === 'string' ? parseJson(value) : value;
	if (!isJsonObject(parsed) || Object.keys(parsed).length === 0) {
		return fail(
			badInput(
				'"JSON Schema" holds no schema',
				'Enter an object such as { "type": "object", "properties": { "title": { "type": "string" } } }.',
			),
		);
	}
	const wrapping = isJsonObject(parsed.json_schema) ? parsed.json_schema : parsed;
	const schema = isJsonObject(wrapping.schema) ? wrapping.schema : wrapping;
	if (isTooDeep(schema)) {
		return fail(badInput('"JSON Schema" is nested too deeply', 'Enter a schema that is not as deep.'));
	}
	const [missing] = missingReferences(schema, schema);
	if (missing !== undefined) {
		return fail(
			badInput(
				`"JSON Schema" refers to "${excerpt(missing, 80)}", which is not in it`,
				'Correct the "$ref", or add what it refers to, e.g. under "$defs".',
			),
		);
	}
	const given = typeof wrapping.name === 'string' ? wrapping.name : '';
	const name = given.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || 'answer';
	const isLoose = wrapping !== schema && wrapping.strict === false;
	return ok({ kind: 'jsonSchema', name, schema, ...(isLoose && { strict: false }) });
}

/** Reads an answer as the JSON that was asked for: models wrap it in fences, or say a sentence before it. */
export function parseAnswer(text: string, format: AnswerFormat): ParsedAnswer {
	const found = valuesIn(text);
	// A number or a word is JSON too, but hardly what is meant unless a schema says so.
	const values =
		format.kind === 'jsonSchema'
			? found
			: found.filter((value) => typeof value === 'object' && value !== null);
	const [likeliest] = values;
	if (likeliest === undefined) return { ok: false, problem: describeText(text) };
	if (isTooDeep(likeliest)) return { ok: false, problem: 'it is nested too deeply' };
	if (format.kind !== 'jsonSchema') return { ok: true, value: likeliest };
	const fitting = values.find((value) => !isTooDeep(value) && violations(value, format.schema).length === 0);
	if (fitting !== undefined) return { ok: true, value: fitting };
	const problems = violations(likeliest, format.schema);
	const shown = problems.slice(0, PROBLEMS_SHOWN).join('; ');
	const more = problems.length - PROBLEMS_SHOWN;
	return { ok: false, problem: `it does not fit the schema: ${shown}${more > 0 ? ` and ${more} more` : ''}` };
}

/** How many brackets of a text are tried: an answer in prose may hold any number of them. */
const BRACKETS_TRIED = 100;

/** The JSON in a text, the likeliest first: the whole of it, what stands in fences, then the longest in brackets. */
function valuesIn(text: string): Json[] {
	const fenced = [...text.matchAll(/```[a-zA-Z]*[ \t]*\r?\n?([\s\S]*?)(?:```|$)/g)].map(
		([, inner = '']) => inner,
	);
	const parse = (candidate: string): Json[] => {
		const value = parseJson(candidate);
		return value === undefined ? [] : [value];
	};
	const whole = [text, ...fenced].flatMap(parse);
	const bare = bracketed(text)
		.sort((left, right) => right.length - left.length)
		.flatMap(parse);
	const isCompound = (value: Json): boolean => typeof value === 'object' && value !== null;
	return [...[...whole, ...bare].filter(isCompound), ...whole.filter((value) => !isCompound(value))];
}

/** Pieces of a text that are JSON in brackets. */
function bracketed(text: string): string[] {
	const found: string[] = [];
	const openings = /[[{]/g;
	for (let tried = 0; tried < BRACKETS_TRIED; tried++) {
		const start = openings.exec(text)?.index;
		if (start === undefined) break;
		const piece = text.slice(start, endOfBrackets(text, start));
		if (parseJson(piece) === undefined) continue;
		found.push(piece);
		openings.lastIndex = start + piece.length;
	}
	return found;
}

/** Where the brackets that open at `start` close again; the end of the text where they do not. */
function endOfBrackets(text: string, start: number): number {
	const tokens = /"(?:[^"\\]|\\.)*"|[[\]{}]/gs;
	tokens.lastIndex = start;
	let depth = 0;
	for (let token = tokens.exec(text); token; token = tokens.exec(text)) {
		if (token[0] === '[' || token[0] === '{') depth++;
		else if (token[0] === ']' || token[0] === '}') depth--;
		if (depth === 0) return token.index + 1;
	}
	return text.length;
}

/** Keywords whose values are data, in which a "$ref" refers to nothing. */
const DATA_KEYWORDS: ReadonlySet<string> = new Set(['const', 'default', 'enum', 'example', 'examples']);

/** References within the schema that lead nowhere: they would be noticed only when an answer is paid for. */
function missingReferences(value: Json, root: JsonObject): string[] {
	if (Array.isArray(value)) return value.flatMap((one) => missingReferences(one, root));
	if (!isJsonObject(value)) return [];
	const { $ref } = value;
	const own = typeof $ref === 'string' && $ref.startsWith('#/') && !leadsSomewhere($ref, root) ? [$ref] : [];
	const inner = Object.entries(value)
		.filter(([key]) => !DATA_KEYWORDS.has(key))
		.flatMap(([, one]) => missingReferences(one, root));
	return [...own, ...inner];
}

function leadsSomewhere(pointer: string, root: JsonObject): boolean {
	let at: Json | undefined = root;
	for (const step of decoded(pointer).slice(2).split('/')) {
		const key = step.replaceAll('~1', '/').replaceAll('~0', '~');
		if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return false;
		at = Array.isArray(at) ? at[Number(key)] : at[key];
	}
	return true;
}

function decoded(pointer: string): string {
	try {
		return decodeURIComponent(pointer);
	} catch {
		return pointer;
	}
}

function describeText(text: string): string {
	if (!text.trim()) return 'it is empty';
	const opens = /^\s*(?:```\w*\s*)?[{[]/.test(text);
	return opens ? 'it is JSON that breaks off or is malformed' : `it is text: "${excerpt(text, 80)}"`;
}

function violations(value: Json, schema: JsonObject): string[] {
	try {
		const result = new Validator().validate(value, asSchema(schema), {
			nestedErrors: true,
			base: SCHEMA_BASE,
		});
		return result.errors.map(({ property, message }) =>
			excerpt(`${property.replace(/^instance\.?/, '') || 'the answer'} ${message}`, 160),
		);
	} catch (error) {
		// A schema with a reference that leads nowhere is the operator's, and no fault of the answer.
		const said = error instanceof Error ? error.message : 'it cannot be read';
		return [`the schema itself has a mistake: ${excerpt(said, 160)}`];
	}
}

/** A schema is any JSON object; what it says is read by the library. */
function asSchema(schema: JsonObject): Schema {
	return { ...schema };
}
