import {
	badInput,
	fail,
	failInput,
	NOT_SENT,
	ok,
	type Failure,
	type Result,
} from '../../shared/errors/failure';
import { lossIn } from '../../shared/form/pastedJson';
import {
	isJsonObject,
	isTooDeep,
	jsonText,
	objectsIn,
	parseRounded,
	type Json,
	type JsonObject,
} from '../../shared/text/json';
import { KEYWORDS, SchemaChecker, SchemaFault } from './validator';

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
	const [element] = objectsIn(parsed);
	if (element) return failInput("'JSON Schema' is a list instead of a schema", ifExample([element]));
	if (!isJsonObject(parsed) || Object.keys(parsed).length === 0) {
		return failInput(
			"'JSON Schema' contains no schema",
			'Enter an object such as { "type": "object", "properties": { "title": { "type": "string" } } }.',
		);
	}
	const wrapping = isJsonObject(parsed.json_schema) ? parsed.json_schema : parsed;
	const schema = isJsonObject(wrapping.schema) ? wrapping.schema : wrapping;
	const refusal = refuseSchema("'JSON Schema'", schema, value);
	if (refusal) return fail(refusal);
	if (acceptsEverything(schema)) {
		return failInput("'JSON Schema' accepts every answer, because it restricts nothing", ifExample(schema));
	}
	const fault = faultOf(schema);
	if (fault) {
		const cure = `Correct it in the node. ${NOT_SENT}`;
		// An example may have a field "type", too.
		const isMeant = 'properties' in schema || '$ref' in schema;
		const advice = isMeant ? cure : `${cure} ${ifExample(schema)}`;
		return failInput(`'JSON Schema' is not a valid schema: ${fault}`, advice);
	}
	const given = typeof wrapping.name === 'string' ? wrapping.name : '';
	const name = given.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || 'answer';
	const isLoose = wrapping !== schema && wrapping.strict === false;
	return ok({ kind: 'jsonSchema', name, schema, ...(isLoose && { strict: false }) });
}

/** Keywords that only name or hold schemas, so that they restrict nothing, no more than a title does. */
const NAMING: ReadonlySet<string> = new Set(['$defs', 'definitions', '$id', '$anchor']);

/** Whether an object, taken as a schema, accepts every answer, e.g. because it is an example of an answer. */
function acceptsEverything(schema: JsonObject): boolean {
	return !Object.entries(schema).some(([key, value]) => {
		// An example may have a list called "items", too.
		return KEYWORDS.has(key) && !NAMING.has(key) && !(key === 'items' && Array.isArray(value));
	});
}

function ifExample(example: Json): string {
	return `If it is an example of an answer, enter its schema: ${jsonText(schemaOfExample(example))}`;
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
 * Why a schema cannot be used; `undefined` if it can. One that would not be sent as it was entered is
 * refused.
 * @param name how messages name the schema
 * @param entered the schema as it was entered
 */
export function refuseSchema(name: string, schema: JsonObject, entered: unknown): Failure | undefined {
	if (isTooDeep(schema)) return badInput(`${name} is nested too deeply`, 'Enter a schema with fewer levels.');
	const loss = lossIn(entered);
	return loss && badInput(`${name} ${loss.clause}`, loss.cure);
}

/** Why a schema cannot check answers, as a clause; empty if it can. */
export function faultOf(schema: JsonObject): string {
	try {
		new SchemaChecker(schema);
		return '';
	} catch (error) {
		const isKnown = error instanceof SchemaFault;
		return isKnown ? error.message : 'its "$id", "$anchor" or "$ref" cannot be read';
	}
}
