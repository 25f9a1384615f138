import type { Options, Validator } from 'jsonschema';

import { badInput, fail, failInput, ok, type Failure, type Result } from '../../shared/errors/failure';
import { lostDigits } from '../../shared/form/pastedJson';
import {
	excerpt,
	isJsonObject,
	isTooDeep,
	jsonText,
	parseRounded,
	type Json,
	type JsonObject,
} from '../../shared/text/json';
import { BROKEN, jsonInText, type FoundValue } from './jsonInText';
import { CheckTooLong, createValidator } from './validator';

export type AnswerFormat =
	| { readonly kind: 'text' }
	| { readonly kind: 'jsonObject' }
	| {
			readonly kind: 'jsonSchema';
			readonly name: string;
			readonly schema: JsonObject;
			/** Strict if absent: every property must then be required, and no others are allowed. */
			readonly strict?: false;
	  };

/** How many problems a message lists; the rest are counted. */
const PROBLEMS_SHOWN = 3;
const TOO_MUCH = 'it is too large, or too unlike the schema, to be checked';

/** The library needs a base URL to follow a reference such as "#/$defs/title". Nothing is loaded from it. */
const SCHEMA_BASE = 'https://schema.invalid/answer';
const CHECKING: Options = { nestedErrors: true, base: SCHEMA_BASE };

const TYPES: ReadonlySet<string> = new Set([
	...['string', 'number', 'integer', 'boolean', 'array', 'object', 'null'],
]);
/** One value of each type whose keywords the library checks: it does so only when it applies them to a value. */
const SAMPLES: readonly Json[] = [{ sample: '' }, [''], '', 1];
/** Keywords whose value is a schema or an array of schemas, and those whose value is an object of schemas. */
const PARTS: ReadonlySet<string> = new Set([
	...['items', 'prefixItems', 'additionalItems', 'contains', 'additionalProperties', 'propertyNames'],
	...['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else'],
]);
const NAMED_PARTS: ReadonlySet<string> = new Set([
	...['properties', 'patternProperties', '$defs', 'definitions', 'dependencies', 'dependentSchemas'],
]);

/** The `response_format` of a request; nothing for plain text. */
export function responseFormat(format: AnswerFormat): JsonObject {
	if (format.kind === 'text') return {};
	if (format.kind === 'jsonObject') return { response_format: { type: 'json_object' } };
	const { name, schema, strict = true } = format;
	return { response_format: { type: 'json_schema', json_schema: { name, schema, strict } } };
}

/** Reads the operator's schema, bare or wrapped as in the chat interface. */
export function readSchema(value: unknown): Result<AnswerFormat> {
	const parsed = typeof value === 'string' ? parseRounded(value) : value;
	if (!isJsonObject(parsed) || Object.keys(parsed).length === 0) {
		return failInput(
			'"JSON Schema" contains no schema',
			'Enter an object such as { "type": "object", "properties": { "title": { "type": "string" } } }.',
		);
	}
	const wrapping = isJsonObject(parsed.json_schema) ? parsed.json_schema : parsed;
	const schema = isJsonObject(wrapping.schema) ? wrapping.schema : wrapping;
	const refusal = refuseSchema('"JSON Schema"', schema, value);
	if (refusal) return fail(refusal);
	if (acceptsEverything(schema)) {
		return failInput(
			'"JSON Schema" accepts every answer, because it restricts nothing',
			`If it is an example of an answer, enter its schema: ${jsonText(schemaOfExample(schema))}`,
		);
	}
	const fault = faultOf(schema);
	if (fault) {
		return failInput(
			`"JSON Schema" is not a valid schema: ${fault}`,
			'Correct it in the node. Nothing was sent for this item, because no answer could be checked.',
		);
	}
	const given = typeof wrapping.name === 'string' ? wrapping.name : '';
	const name = given.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || 'answer';
	const isLoose = wrapping !== schema && wrapping.strict === false;
	return ok({ kind: 'jsonSchema', name, schema, ...(isLoose && { strict: false }) });
}

/** Keywords that restrict a value. A title, a description or a default alone restricts nothing. */
const RESTRICTING: ReadonlySet<string> = new Set([
	...['type', 'enum', 'const', '$ref', '$dynamicRef', 'allOf', 'anyOf', 'oneOf', 'not', 'if', 'format'],
	...['properties', 'patternProperties', 'additionalProperties', 'propertyNames', 'required'],
	...['minProperties', 'maxProperties', 'dependencies', 'dependentRequired', 'dependentSchemas'],
	...['prefixItems', 'additionalItems', 'contains', 'minItems', 'maxItems', 'uniqueItems'],
	...['minLength', 'maxLength', 'pattern'],
	...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
]);

/** Whether an object, taken as a schema, accepts every answer, e.g. because it is an example of an answer. */
function acceptsEverything(schema: JsonObject): boolean {
	// An example may have a list called "items", too.
	const restrictsItems = schema.items !== undefined && !Array.isArray(schema.items);
	return !restrictsItems && !Object.keys(schema).some((key) => RESTRICTING.has(key));
}

/** The schema of answers that look like an example. */
export function schemaOfExample(example: Json): JsonObject {
	if (Array.isArray(example)) {
		const [first] = example;
		return first === undefined ? { type: 'array' } : { type: 'array', items: schemaOfExample(first) };
	}
	if (!isJsonObject(example)) return { type: example === null ? 'null' : typeof example };
	const properties = Object.entries(example).map(([name, value]) => [name, schemaOfExample(value)] as const);
	return {
		type: 'object',
		properties: Object.fromEntries(properties),
		required: Object.keys(example),
		additionalProperties: false,
	};
}

/**
 * Why a schema cannot be used; `undefined` if it can. An integer beyond 2^53, e.g. as a bound, is refused, because it
 * would be sent as another number.
 * @param name how messages name the schema
 * @param entered the schema as it was entered
 */
export function refuseSchema(name: string, schema: JsonObject, entered: unknown): Failure | undefined {
	if (isTooDeep(schema)) return badInput(`${name} is nested too deeply`, 'Enter a schema with fewer levels.');
	const lost = lostDigits(entered);
	if (lost === undefined) return undefined;
	return badInput(
		`${name} contains the number ${excerpt(lost, 40)}, which would lose digits`,
		`Enter a number up to ${Number.MAX_SAFE_INTEGER}, or leave the bound out.`,
	);
}

/**
 * Finds the requested JSON in an answer: models put fences around it or a sentence before it. If several
 * different values fit, none is used, because one of them may be an old record that the model quotes.
 *
 * @param isCut the answer may be incomplete. It must then be JSON as a whole, because JSON in a part of it may not be
 *   the answer.
 * @returns the value, or a clause that says why there is none: "it is …"
 */
export function parseAnswer(text: string, format: AnswerFormat, isCut = false): Result<Json, string> {
	const found = jsonInText(text);
	if (!found.ok) return found;
	const values = isCut ? found.value.filter(isSurelyWhole) : found.value;
	const validator = createValidator();
	const checked = values.map((one) => ({ ...one, problem: problemOf(one, format, text, validator) }));
	// One that was not checked may be the answer.
	if (checked.some(({ problem }) => problem === TOO_MUCH)) return fail(TOO_MUCH);
	const fitting = new Map(
		checked.filter(({ problem }) => problem === '').map(({ value }) => [jsonText(value), value]),
	);
	if (fitting.size > 1) {
		return fail(
			`it contains ${fitting.size} different pieces of JSON that would fit, so it is not clear which one is the answer`,
		);
	}
	for (const fits of fitting.values()) return ok(fits);
	if (isCut && found.value.length > 0) return fail('it was cut off');
	const [longest] = checked.sort((left, right) => right.source.length - left.source.length);
	return fail(longest?.problem ?? describeText(text));
}

/** Whether a value is complete even if the answer was cut off. A number is not: it may have had more digits. */
function isSurelyWhole({ value, isWhole }: FoundValue): boolean {
	return isWhole && typeof value !== 'number';
}

/** Why a value is not what was asked for; empty if it is. */
function problemOf(
	{ value, source }: FoundValue,
	format: AnswerFormat,
	text: string,
	validator: Validator,
): string {
	if (format.kind !== 'jsonSchema') {
		if (isJsonObject(value)) return '';
		return Array.isArray(value) ? 'it is an array instead of a JSON object' : describeText(text);
	}
	// Checked with rounded numbers, because `value` contains very long integers as strings.
	return misfit(parseRounded(source) ?? value, format.schema, validator);
}

function describeText(text: string): string {
	if (!text.trim()) return 'it is empty';
	const opens = /^\s*(?:```\w*\s*)?[{[]/.test(text);
	return opens ? BROKEN : `it is text: "${excerpt(text, 80)}"`;
}

function misfit(value: Json, schema: JsonObject, validator: Validator): string {
	try {
		const { errors } = validator.validate(value, { ...schema }, CHECKING);
		if (errors.length === 0) return '';
		const shown = errors
			.slice(0, PROBLEMS_SHOWN)
			.map(({ property, message }) =>
				excerpt(`${property.replace(/^instance\.?/, '') || 'the answer'} ${message}`, 160),
			);
		const more = errors.length - PROBLEMS_SHOWN;
		return `it does not fit the schema: ${shown.join('; ')}${more > 0 ? ` and ${more} more` : ''}`;
	} catch (error) {
		if (error instanceof CheckTooLong) return TOO_MUCH;
		return `it does not fit the schema: the schema itself is invalid: ${faultIn(error)}`;
	}
}

/** The faults of recently tried schemas, by the schema's text. */
const tried = new Map<string, string>();
const MOST_TRIED = 50;

/** Like `whyUnusable`, but tries a schema once for all items: one with hundreds of fields takes 0.1 s. */
export function faultOf(schema: JsonObject): string {
	const text = jsonText(schema) ?? '';
	const fault = tried.get(text) ?? whyUnusable(schema);
	if (tried.size >= MOST_TRIED) tried.clear();
	tried.set(text, fault);
	return fault;
}

/**
 * Why a schema cannot check answers, as a clause; empty if it can. The library notices a fault only when it applies
 * the faulty keyword to a value, so each part is tried with sample values before an answer is paid for.
 */
function whyUnusable(schema: JsonObject): string {
	try {
		const schemas = { [SCHEMA_BASE]: { ...schema }, [`${SCHEMA_BASE}#`]: { ...schema } };
		for (const { part, pointer } of partsWithin(schema)) {
			const types = [part.type].flat().filter((type) => typeof type === 'string');
			const wrong = types.find((type) => !TYPES.has(type));
			if (wrong !== undefined) return `"${excerpt(wrong, 40)}" is not a type`;
			const validator = createValidator();
			validator.schemas = schemas;
			for (const sample of SAMPLES)
				validator.validate(sample, pointer ? { $ref: `#${pointer}` } : { ...schema }, CHECKING);
		}
		return '';
	} catch (error) {
		return faultIn(error);
	}
}

/** @param pointer where the schema is, as a JSON pointer in a URL */
function partsWithin(
	part: unknown,
	pointer = '',
): Array<{ readonly part: JsonObject; readonly pointer: string }> {
	if (!isJsonObject(part)) return [];
	const inner = [...PARTS, ...NAMED_PARTS].flatMap((key) => {
		const held = part[key];
		const at = `${pointer}/${key}`;
		if (isJsonObject(held) && !NAMED_PARTS.has(key)) return partsWithin(held, at);
		return Object.entries(held ?? {}).flatMap(([name, one]) => partsWithin(one, `${at}/${inPointer(name)}`));
	});
	return [{ part, pointer }, ...inner];
}

function inPointer(name: string): string {
	return encodeURIComponent(name.toWellFormed().replaceAll('~', '~0').replaceAll('/', '~1'));
}

/** The message of an error that the library throws because of the schema itself. */
function faultIn(error: unknown): string {
	if (error instanceof RangeError) return 'it refers to itself without end';
	const isExplained = error instanceof Error && !(error instanceof TypeError);
	return isExplained ? excerpt(error.message.replace(/ located in <.*/, ''), 160) : 'it cannot be read';
}
