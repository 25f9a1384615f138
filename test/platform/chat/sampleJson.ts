import { isRecord } from '../wireJson';
import type { JsonRecord } from '../wireJson';

const MAX_DEPTH = 12;

function referredTo(reference: string, root: JsonRecord): unknown {
	let found: unknown = root;
	for (const key of reference.replace(/^#\/?/, '').split('/')) {
		found = isRecord(found) ? found[key] : undefined;
	}
	return found;
}

function objectOf(schema: JsonRecord, text: string, root: JsonRecord, depth: number): JsonRecord {
	const properties = isRecord(schema.properties) ? schema.properties : {};
	return Object.fromEntries(
		Object.entries(properties).map(([key, inner]) => [key, valueOf(inner, text, root, depth + 1)]),
	);
}

function valueOf(schema: unknown, text: string, root: JsonRecord, depth: number): unknown {
	if (!isRecord(schema) || depth > MAX_DEPTH) return null;
	if (typeof schema.$ref === 'string') return valueOf(referredTo(schema.$ref, root), text, root, depth + 1);
	if ('const' in schema) return schema.const;
	if (Array.isArray(schema.enum)) return schema.enum[0];
	for (const choices of [schema.anyOf, schema.oneOf, schema.allOf]) {
		if (Array.isArray(choices)) return valueOf(choices[0], text, root, depth + 1);
	}
	const type: unknown = Array.isArray(schema.type) ? schema.type[0] : schema.type;
	switch (type) {
		case 'string':
			return text;
		case 'number':
		case 'integer':
			return typeof schema.minimum === 'number' ? schema.minimum : 1;
		case 'boolean':
			return true;
		case 'null':
			return null;
		case 'array':
			return [valueOf(schema.items ?? { type: 'string' }, text, root, depth + 1)];
		default:
			return objectOf(schema, text, root, depth);
	}
}

/** A value that matches a JSON schema, with this text wherever text is allowed. */
export function sampleJson(schema: JsonRecord, text: string): unknown {
	return valueOf(schema, text, schema, 0);
}
