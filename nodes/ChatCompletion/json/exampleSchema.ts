import { isJsonObject, type Json, type JsonObject } from '../../shared/text/json';

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
export function acceptsEverything(schema: JsonObject): boolean {
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
