import { Validator, type CustomProperty } from 'jsonschema';

import { isJsonObject, member } from '../../shared/text/json';

type Checked = ReturnType<CustomProperty>;

/** Keywords of newer drafts, which the library would ignore, in the form that it knows. */
const OLDER_FORMS: Readonly<Record<string, (schema: object) => object>> = {
	prefixItems: (schema) => ({
		items: member(schema, 'prefixItems'),
		additionalItems: member(schema, 'items'),
	}),
	dependentRequired: (schema) => ({ dependencies: member(schema, 'dependentRequired') }),
	dependentSchemas: (schema) => ({ dependencies: member(schema, 'dependentSchemas') }),
};

/** A keyword that is checked is one step, and so is each element or property of the value that it is checked on. */
const MOST_STEPS = 1_000_000;
/** So many characters of the path to a value are another step, because the library writes the path for each keyword. */
const PATH_CHARS = 400;
/** The most problems that are kept at once. Those of an alternative are forgotten if another one fits. */
const MOST_PROBLEMS = 10_000;

/** Ends a check if all checks of an answer took too many steps or found too many problems. */
export class CheckTooLong extends Error {}

/** A validator for one answer. */
export function createValidator(): Validator {
	const validator = new Validator();
	const { attributes } = validator;
	for (const [keyword, olderForm] of Object.entries(OLDER_FORMS)) {
		attributes[keyword] = (instance, schema, options, context) =>
			validator.validate(instance, olderForm(schema), options, context);
	}
	const { items } = attributes;
	// Next to "prefixItems", "items" describes only the items after those.
	if (items) {
		attributes.items = (instance, schema, ...rest) =>
			items.call(validator, instance, 'prefixItems' in schema ? {} : schema, ...rest);
	}
	let steps = 0;
	let problems = 0;
	const count = (more: number): void => {
		steps += more;
		if (steps > MOST_STEPS || problems > MOST_PROBLEMS) throw new CheckTooLong('checking it takes too long');
	};
	for (const keyword in attributes) {
		const check = attributes[keyword];
		// Kept, because alternatives that contain each other ask the same again at each level of a value.
		// By schema, of which there are few: a map for each of an answer's objects would take far more memory.
		const results = new WeakMap<object, Map<object, Checked>>();
		attributes[keyword] = (instance: unknown, schema, options, context) => {
			const before = problems;
			count(1);
			const isPlain = typeof instance !== 'object' || instance === null;
			const known = results.get(schema) ?? new Map<object, Checked>();
			let result = isPlain ? undefined : known.get(instance);
			if (result === undefined) {
				count(sizeOf(instance) + context.propertyPath.length / PATH_CHARS);
				const checked = keyword === 'uniqueItems' ? twinsIn(instance, count) : instance;
				result = check?.call(validator, checked, schema, options, context) ?? '';
				if (!isPlain) results.set(schema, known.set(instance, result));
			}
			problems = before + sizeOf(member(result, 'errors'));
			return result;
		};
	}
	return validator;
}

function sizeOf(value: unknown): number {
	if (Array.isArray(value)) return value.length;
	return isJsonObject(value) ? Object.keys(value).length : 0;
}

/**
 * A short list that repeats an element if the given one does: the library would compare each element with each.
 * @param count called with the length of each element's text
 */
function twinsIn(list: unknown, count: (chars: number) => void): number[] {
	if (!Array.isArray(list)) return [];
	const texts = new Set<string>();
	for (const one of list) {
		const text = JSON.stringify(one, withSortedKeys);
		count(text.length);
		if (texts.has(text)) return [0, 0];
		texts.add(text);
	}
	return [];
}

function withSortedKeys(_key: string, value: unknown): unknown {
	// As text, a number beyond the range of a double would be null.
	if (typeof value === 'number') return Math.min(Math.max(value, -Number.MAX_VALUE), Number.MAX_VALUE);
	if (!isJsonObject(value)) return value;
	const keys = Object.keys(value).sort();
	return Object.fromEntries(keys.map((key) => [key, value[key]]));
}
