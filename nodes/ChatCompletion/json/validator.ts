import { dereference, format, validate, type OutputUnit, type Schema } from '@cfworker/json-schema';

import { excerpt, isJsonObject, member, type Json, type JsonObject } from '../../shared/text/json';
import { compilePattern, type Matches } from './pattern';

/** Keywords whose value is a schema or an array of schemas, and those whose value is an object of schemas. */
const PARTS: ReadonlySet<string> = new Set([
	...['items', 'prefixItems', 'additionalItems', 'contains', 'additionalProperties', 'propertyNames'],
	...['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else', 'unevaluatedItems', 'unevaluatedProperties'],
]);
const NAMED_PARTS: ReadonlySet<string> = new Set([
	...['properties', 'patternProperties', '$defs', 'definitions', 'dependencies', 'dependentSchemas'],
]);
/** Keywords that apply their schemas to the same value, so that a circle of them has no end. */
const IN_PLACE: ReadonlySet<string> = new Set([
	...['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else', 'dependencies', 'dependentSchemas'],
]);
/** Keywords that the library ignores, or reads differently from what they mean. */
const UNSUPPORTED = ['$dynamicRef', '$dynamicAnchor', '$recursiveRef', '$recursiveAnchor'];

/** Each schema that is applied to a value is a step, and so are 50 states of a pattern. */
const MOST_STEPS = 300_000;
const STATES_PER_STEP = 50;
/** The library compares each element of a list with each, unless it is known that no two are equal. */
const LONGEST_WITH_TWINS = 1_000;
/** Names of properties are matched by JavaScript itself, so they and the patterns are kept short. */
const LONGEST_NAME = 300;
const MOST_REPEATS = 2;

const TYPE: Schema = { enum: ['string', 'number', 'integer', 'boolean', 'array', 'object', 'null'] };
const each = (names: string, schema: Schema): Record<string, Schema> =>
	Object.fromEntries(names.split(' ').map((name) => [name, schema]));
/** What the value of a keyword must be, so that a fault is found before an answer is paid for. */
const OF_KEYWORDS: Schema = {
	properties: {
		type: { anyOf: [TYPE, { type: 'array', items: TYPE, minItems: 1 }] },
		...each('enum required', { type: 'array' }),
		...each('allOf anyOf oneOf prefixItems', { type: 'array', minItems: 1 }),
		...each('minLength maxLength minItems maxItems minContains maxContains', { type: 'integer', minimum: 0 }),
		...each('minProperties maxProperties', { type: 'integer', minimum: 0 }),
		...each('minimum maximum exclusiveMinimum exclusiveMaximum', { type: 'number' }),
		...each('pattern format $ref $id $anchor', { type: 'string' }),
		multipleOf: { type: 'number', exclusiveMinimum: 0 },
		uniqueItems: { type: 'boolean' },
		dependentRequired: { type: 'object', additionalProperties: { type: 'array' } },
	},
};
const KEYWORD_LOOKUP = dereference(OF_KEYWORDS);
/** Keywords that are passed on as they are; any other only describes. */
const SIMPLE: ReadonlySet<string> = new Set([...Object.keys(OF_KEYWORDS.properties ?? {}), 'const']);

/** A schema cannot check answers; the message is a clause. */
export class SchemaFault extends Error {}

/** A check took too many steps. */
export class CheckTooLong extends Error {}

/**
 * Checks the values of one answer against a schema (drafts 7 to 2020-12). The library does the checking. It is given a copy
 * of the schema in which each application of a schema is counted, patterns are matched in bounded time, and the elements
 * of lists are compared only if two of them are equal.
 */
export class SchemaChecker {
	private readonly schema: Schema | boolean;
	private readonly lookup: Record<string, Schema | boolean>;
	private readonly patterns = new Map<string, Matches>();
	private readonly copies: Schema[] = [];
	private hasNamePatterns = false;
	private hasTwins = false;
	private steps = 0;

	/** @throws a `SchemaFault` */
	constructor(schema: JsonObject) {
		this.schema = this.copyOf(schema, 'schema');
		try {
			this.lookup = dereference(this.schema);
		} catch {
			throw new SchemaFault('its "$id", "$anchor" or "$ref" cannot be read');
		}
		const lost = this.copies.find((copy) => copy.$ref !== undefined && this.target(copy) === undefined);
		if (lost) throw new SchemaFault(`no such schema ${excerpt(lost.$ref ?? '', 80)}`);
		const done = new Set<unknown>();
		for (const copy of this.copies) this.refuseCircle(copy, new Set(), done);
	}

	/**
	 * @returns the problems of a value; none if it fits
	 * @throws `CheckTooLong` if all values of the answer took too many steps
	 */
	problemsOf(value: Json): readonly OutputUnit[] {
		for (const [name, matches] of this.patterns) {
			format[name] = (text) => matches(text, (states) => this.count(states / STATES_PER_STEP));
		}
		try {
			this.survey(value);
			const first = this.errorsIn(value, true);
			return first.length > 0 ? this.allErrorsIn(value, first) : [];
		} catch (error) {
			throw error instanceof RangeError ? new CheckTooLong() : error;
		} finally {
			for (const name of this.patterns.keys()) Reflect.deleteProperty(format, name);
		}
	}

	private errorsIn(value: Json, isFirstOnly: boolean): OutputUnit[] {
		return validate(value, this.schema, '2020-12', this.lookup, isFirstOnly).errors;
	}

	/** All problems, or only the first if it would take too long to find the others. */
	private allErrorsIn(value: Json, first: OutputUnit[]): OutputUnit[] {
		try {
			return this.errorsIn(value, false);
		} catch {
			return first;
		}
	}

	/** Takes note of what the library would take too long to find out about a value. */
	private survey(value: Json): void {
		const { hasTwins, longestList, longestName } = surveyOf(value, (steps) => this.count(steps));
		this.hasTwins = hasTwins;
		const isSlow =
			hasTwins && longestList > LONGEST_WITH_TWINS && this.copies.some(({ uniqueItems }) => uniqueItems);
		if (isSlow || (this.hasNamePatterns && longestName > LONGEST_NAME)) throw new CheckTooLong();
	}

	private count(steps: number): void {
		this.steps += steps;
		if (this.steps > MOST_STEPS) throw new CheckTooLong();
	}

	private copyOf(part: unknown, keyword: string): Schema | boolean {
		if (typeof part === 'boolean') return part;
		if (!isJsonObject(part)) throw new SchemaFault(`"${keyword}" expects a schema`);
		const unsupported = UNSUPPORTED.find((name) => name in part);
		if (unsupported) throw new SchemaFault(`the keyword "${unsupported}" cannot be checked`);
		const [fault] = validate(part, OF_KEYWORDS, '2020-12', KEYWORD_LOOKUP).errors.filter(isLeaf);
		if (fault) throw new SchemaFault(`${pathOf(fault)}: ${wordsOf(fault)}`);
		const entries = Object.entries(part)
			.filter(([name]) => SIMPLE.has(name) || PARTS.has(name) || NAMED_PARTS.has(name))
			.map(([name, value]) => [name, this.keywordOf(name, value)] as const);
		const { pattern, ...copy }: Schema = Object.fromEntries(entries);
		if (pattern !== undefined) copy.allOf = [...(copy.allOf ?? []), { format: this.formatOf(pattern) }];
		// Read by the library once for each value to which the schema is applied.
		Object.defineProperty(copy, '$recursiveAnchor', { get: () => void this.count(1) });
		if (copy.uniqueItems) Object.defineProperty(copy, 'uniqueItems', { get: () => this.hasTwins });
		this.copies.push(copy);
		return copy;
	}

	private keywordOf(name: string, value: unknown): unknown {
		if (PARTS.has(name)) {
			return Array.isArray(value) ? value.map((one) => this.copyOf(one, name)) : this.copyOf(value, name);
		}
		if (!NAMED_PARTS.has(name)) return value;
		if (!isJsonObject(value)) throw new SchemaFault(`"${name}" expects an object`);
		if (name === 'patternProperties') this.refuseSlow(Object.keys(value));
		const parts = Object.entries(value).map(([key, one]) => [
			key,
			// In older drafts, a dependency may be a list of names.
			name === 'dependencies' && Array.isArray(one) ? one : this.copyOf(one, key),
		]);
		return Object.fromEntries(parts);
	}

	/** The name of a format that stands for a pattern: the library lets its formats be added to. */
	private formatOf(pattern: string): string {
		const matches = compilePattern(pattern);
		if (!matches.ok)
			throw new SchemaFault(`the pattern ${excerpt(pattern, 80)} cannot be checked: ${matches.failure}`);
		const name = `pattern ${pattern}`;
		this.patterns.set(name, matches.value);
		return name;
	}

	private refuseSlow(patterns: readonly string[]): void {
		if (patterns.length > 0) this.hasNamePatterns = true;
		for (const pattern of patterns) {
			this.formatOf(pattern);
			const repeats = pattern.replace(/\\.|\[(?:\\.|[^\]\\])*\]/g, 'x').match(/[*+}]/g) ?? [];
			if (repeats.length > MOST_REPEATS || /\)(?:[*+]|\{\d+,)/.test(pattern)) {
				throw new SchemaFault(
					`the pattern ${excerpt(pattern, 80)} in "patternProperties" may take too long to check`,
				);
			}
		}
	}

	private target(copy: Schema): Schema | boolean | undefined {
		const uri = member(copy, '__absolute_ref__');
		return typeof uri === 'string' ? this.lookup[uri] : undefined;
	}

	/** Refuses a schema that applies itself to the same value. */
	private refuseCircle(part: unknown, above: Set<unknown>, done: Set<unknown>): void {
		if (!isJsonObject(part) || done.has(part)) return;
		if (above.has(part)) throw new SchemaFault('it refers to itself without end');
		above.add(part);
		const inner = [...IN_PLACE].flatMap((name) => {
			const held = part[name];
			return NAMED_PARTS.has(name) ? Object.values(held ?? {}) : [held].flat();
		});
		for (const one of [this.target(part), ...inner]) this.refuseCircle(one, above, done);
		above.delete(part);
		done.add(part);
	}
}

interface Survey {
	hasTwins: boolean;
	longestList: number;
	longestName: number;
}

/** Walks through a value once. Equal values get the same number, so that twins are found without comparing. */
function surveyOf(value: Json, count: (steps: number) => void): Survey {
	const numbers = new Map<string, number>();
	const survey: Survey = { hasTwins: false, longestList: 0, longestName: 0 };
	const numberOf = (one: Json): number => {
		count(0.1);
		let text = `${typeof one} ${String(one)}`;
		if (Array.isArray(one)) {
			const inner = one.map(numberOf);
			survey.hasTwins ||= new Set(inner).size < inner.length;
			survey.longestList = Math.max(survey.longestList, inner.length);
			text = `[${inner.join()}]`;
		} else if (isJsonObject(one)) {
			const names = Object.keys(one).sort();
			survey.longestName = names.reduce((most, { length }) => Math.max(most, length), survey.longestName);
			text = `{${names.map((name) => `${JSON.stringify(name)}:${numberOf(one[name] ?? null)}`).join()}}`;
		}
		const known = numbers.get(text) ?? numbers.size;
		numbers.set(text, known);
		return known;
	};
	numberOf(value);
	return survey;
}

/** Whether an error is where a value does not fit, instead of saying that a part of a schema has errors. */
export function isLeaf({ keywordLocation }: OutputUnit, index: number, all: readonly OutputUnit[]): boolean {
	return !all[index + 1]?.keywordLocation.startsWith(`${keywordLocation}/`);
}

/** Where in an answer a problem is: `list.0.title`; empty for the answer as a whole. */
export function pathOf({ instanceLocation }: OutputUnit): string {
	const steps = instanceLocation.split('/').slice(1);
	return steps.map((step) => decodeURI(step).replaceAll('~1', '/').replaceAll('~0', '~')).join('.');
}

/** A problem in a sentence's own words, without the full stop. */
export function wordsOf({ error }: OutputUnit): string {
	const pattern = /^String does not match format "pattern (.*)"\.$/s.exec(error)?.[1];
	if (pattern !== undefined) return `does not match the pattern ${pattern}`;
	const words = error.replace(/^Instance |\.$/g, '').replace('. Expected', '; expected');
	return `${words.charAt(0).toLowerCase()}${words.slice(1)}`;
}
