import { dereference, format, validate, type OutputUnit, type Schema } from '@cfworker/json-schema';

import { excerpt, isJsonObject, jsonText, member, type Json, type JsonObject } from '../../shared/text/json';
import { patternWork } from './pattern';

const TYPE: Schema = { enum: ['string', 'number', 'integer', 'boolean', 'array', 'object', 'null'] };
const SCHEMA: Schema = { $ref: '#' };
const LIST: Schema = { type: 'array' };
const OBJECT: Schema = { type: 'object' };
const NAMED: Schema = { ...OBJECT, additionalProperties: SCHEMA };
type Keywords = Record<string, Schema | boolean>;
const each = (names: string, schema: Schema | boolean): Keywords =>
	Object.fromEntries(names.split(' ').map((name) => [name, schema]));
/** Keywords whose value is a schema or an array of schemas, and those whose value is an object of schemas. */
const PARTS: Keywords = {
	...each('additionalItems contains additionalProperties propertyNames not if then else', SCHEMA),
	...each('unevaluatedItems unevaluatedProperties', SCHEMA),
	...each('allOf anyOf oneOf prefixItems', { ...LIST, minItems: 1, items: SCHEMA }),
	items: { if: LIST, then: { items: SCHEMA }, else: SCHEMA },
};
const NAMED_PARTS: Keywords = {
	...each('properties patternProperties dependentSchemas $defs definitions', NAMED),
	// In older drafts, a dependency may be a list of names.
	dependencies: { ...OBJECT, additionalProperties: { if: LIST, else: SCHEMA } },
};
/** What the value of each keyword must be, so that a fault is found before an answer is paid for. */
const OF_KEYWORDS: Keywords = {
	...PARTS,
	...NAMED_PARTS,
	...each('enum required', LIST),
	const: true,
	type: { if: LIST, then: { items: TYPE, minItems: 1 }, else: TYPE },
	...each('minLength maxLength minItems maxItems minContains maxContains', { type: 'integer', minimum: 0 }),
	...each('minProperties maxProperties', { type: 'integer', minimum: 0 }),
	...each('minimum maximum exclusiveMinimum exclusiveMaximum', { type: 'number' }),
	...each('pattern format $ref $id $anchor', { type: 'string' }),
	multipleOf: { type: 'number', exclusiveMinimum: 0 },
	uniqueItems: { type: 'boolean' },
	dependentRequired: { ...OBJECT, additionalProperties: LIST },
	// The library ignores these, or reads them differently from what they mean.
	...each('$dynamicRef $dynamicAnchor $recursiveRef $recursiveAnchor', false),
};
/** Keywords that the library knows; any other only describes. */
export const KEYWORDS: ReadonlySet<string> = new Set(Object.keys(OF_KEYWORDS));
const OF_SCHEMAS: Schema = { type: ['object', 'boolean'], properties: OF_KEYWORDS };
/** Keywords that apply their schemas to the same value, so that a circle of them has no end. */
const IN_PLACE = 'allOf anyOf oneOf not if then else dependencies dependentSchemas'.split(' ');

/** A backslash outside of classes that the library's Unicode mode forbids, and what it allows as group 1. */
const NEEDLESS_ESCAPE = /(\[(?:\\.|[^\]\\])*\]|\\[\w^$\\.*+?()[\]{}|/])|\\(?=.)/gsu;

/** Each schema that is applied to a value is a step, and so are 100 comparisons and 1,000 steps of a pattern. */
const MOST_CHECKS = 300_000;

/** How many problems a message lists; the rest are counted. */
const PROBLEMS_SHOWN = 3;
export const TOO_MUCH = 'it is too large or differs too much from the schema to be checked';

/** A schema cannot check answers; the message is a clause. */
export class SchemaFault extends Error {}

/**
 * Checks the values of one answer against a schema (drafts 7 to 2020-12). The library does the checking; it is given a
 * copy of the schema that counts the steps, those of patterns through formats. The library knows these by name alone, so
 * a checker must be used before the next one is made.
 */
export class SchemaChecker {
	private readonly schema: Schema | boolean;
	private readonly lookup: Keywords;
	private readonly copies: Schema[] = [];
	private steps = 0;

	/** @throws a `SchemaFault`, or the library's error about a URI that it cannot read */
	constructor(schema: JsonObject) {
		const [fault] = validate(schema, OF_SCHEMAS).errors.filter(isLeaf);
		if (fault) throw new SchemaFault(problemIn(fault).replace(NOT_ALLOWED, 'cannot be checked'));
		this.schema = this.copyOf(schema);
		this.lookup = dereference(this.schema);
		const lost = this.copies.find((copy) => copy.$ref !== undefined && this.target(copy) === undefined);
		if (lost) throw new SchemaFault(`no such schema ${excerpt(lost.$ref ?? '', 80)}`);
		const done = new Set<unknown>();
		for (const copy of this.copies) this.refuseCircle(copy, new Set(), done);
	}

	/** Why a value does not fit, as a clause with the first problems; empty if it does, and `TOO_MUCH` if it was not checked. */
	whyUnfit(value: Json): string {
		try {
			if (this.copies.some(({ uniqueItems }) => uniqueItems)) {
				// The library compares each element of a list with each.
				this.count((jsonText(value) ?? '').split(',').length ** 2 / 100);
			}
			const { errors } = validate(value, this.schema, '2020-12', this.lookup);
			const problems = errors.filter(isLeaf).map((error) => excerpt(problemIn(error), 160));
			if (problems.length === 0) return '';
			const more = problems.splice(PROBLEMS_SHOWN).length;
			return `it does not fit the schema: ${problems.join('; ')}${more > 0 ? ` and ${more} more` : ''}`;
		} catch {
			// The count ended the check, or the call stack or the list of errors was full.
			return TOO_MUCH;
		}
	}

	private count(steps: number): true {
		this.steps += steps;
		if (this.steps > MOST_CHECKS) throw new RangeError(TOO_MUCH);
		return true;
	}

	/** @param part a valid schema */
	private copyOf(part: unknown): Schema | boolean {
		if (!isJsonObject(part)) return part === true;
		const known = Object.entries(part).filter(([name]) => KEYWORDS.has(name));
		const copy: Schema = Object.fromEntries(
			known.map(([name, value]) => [name, this.keywordOf(name, value)]),
		);
		const names = Object.keys(copy.patternProperties ?? {});
		const counted: Schema[] = names.map((name) => ({ propertyNames: { format: this.formatOf(name) } }));
		if (copy.pattern !== undefined) counted.push({ format: this.formatOf(copy.pattern) });
		// The library applies these before it matches.
		if (counted.length > 0) copy.allOf = [...counted, ...(copy.allOf ?? [])];
		// Read by the library once for each value to which the schema is applied.
		Object.defineProperty(copy, '$recursiveAnchor', { get: () => void this.count(1) });
		this.copies.push(copy);
		return copy;
	}

	private keywordOf(name: string, value: unknown): unknown {
		const copy = (one: unknown): unknown => (Array.isArray(one) ? one.map(copy) : this.copyOf(one));
		if (name === 'pattern' && typeof value === 'string') return value.replace(NEEDLESS_ESCAPE, '$1');
		if (name in PARTS) return copy(value);
		if (!(name in NAMED_PARTS) || !isJsonObject(value)) return value;
		return Object.fromEntries(
			Object.entries(value).map(([key, one]) => [key, Array.isArray(one) ? one : copy(one)]),
		);
	}

	/** The name of a format that counts the steps of matching a pattern. */
	private formatOf(pattern: string): string {
		const work = patternWork(pattern);
		if (!work.ok)
			throw new SchemaFault(`the pattern ${excerpt(pattern, 80)} cannot be checked: ${work.failure}`);
		const { degree, factor } = work.value;
		const name = `pattern ${degree} ${factor}`;
		format[name] = ({ length }) => this.count((factor * (length + 1) ** degree) / 1_000);
		return name;
	}

	private target(copy: Schema): Schema | boolean | undefined {
		const uri = member(copy, '__absolute_ref__');
		return typeof uri === 'string' ? this.lookup[uri] : undefined;
	}

	/** Refuses a schema that applies itself to the same value. */
	private refuseCircle(part: unknown, above: Set<unknown>, done: Set<unknown>): void {
		if (!isJsonObject(part) || done.has(part)) return;
		if (above.has(part)) throw new SchemaFault('it refers to itself endlessly');
		above.add(part);
		const held = IN_PLACE.flatMap((name) => {
			const inner = part[name];
			return isJsonObject(inner) && name in NAMED_PARTS ? Object.values(inner) : inner;
		});
		for (const one of [this.target(part), ...held]) this.refuseCircle(one, above, done);
		above.delete(part);
		done.add(part);
	}
}

/** Whether an error is where a value does not fit, instead of saying that a part of a schema has errors. */
function isLeaf(
	{ keyword, keywordLocation: at }: OutputUnit,
	index: number,
	all: readonly OutputUnit[],
): boolean {
	const next = all[index + 1];
	return keyword !== 'if' && next?.keyword !== 'false' && !next?.keywordLocation.startsWith(`${at}/`);
}

const TYPES: Readonly<Record<string, string>> = {
	string: 'text',
	number: 'a number',
	integer: 'a whole number',
	boolean: 'true or false',
	array: 'a list',
	object: 'an object',
};
const NOT_ALLOWED = 'is not allowed';
/** What the library says, and the same in the words of the node's other messages. */
const WORDS: ReadonlyArray<readonly [RegExp, string]> = [
	[/^Instance type "number" is invalid\. Expected "integer"$/, 'must be integer'],
	[/^Instance type "(.*)" is invalid\. Expected "(.*)"$/, 'must be $2 instead of $1'],
	[/^(\S+) is not a multiple of (\S+)$/, 'must be a multiple of $2 instead of $1'],
	[/^Array has too few items \((\d+) < (\d+)\)$/, 'must have at least $2 items, but has $1'],
	[/^Array has too many items \((\d+) > (\d+)\)$/, 'must have at most $2 items, but has $1'],
	[/^String is too short \((\d+) < (\d+)\)$/, 'must have at least $2 characters, but has $1'],
	[/^String is too long \((\d+) > (\d+)\)$/, 'must have at most $2 characters, but has $1'],
	[/^String does not match format (".*")$/, 'must have the format $1'],
	[/^String does not match pattern$/, 'must match the pattern'],
	[/^Instance does not match (any of )?(?=\W|\w+$)/, 'must be $1'],
	[/^Instance does not have required property/, 'must have'],
	[/^False boolean schema$/, NOT_ALLOWED],
	[/^(?:Instance|String|Array) /, ''],
];

/** The library's words for a bound do not always say whether the bound itself is allowed. */
const BOUNDS: Readonly<Record<string, string>> = {
	minimum: 'at least',
	maximum: 'at most',
	exclusiveMinimum: 'more than',
	exclusiveMaximum: 'less than',
};
const PAST_BOUND = /^(\S+) is (?:less|greater) than (?:or equal to )? ?(\S+)$/;

/** A problem in words, without the full stop: `list.0.title must be text instead of a number`. */
function problemIn({ instanceLocation, keyword, error }: OutputUnit): string {
	const steps = instanceLocation.split('/').slice(1);
	const path = steps.map((step) => decodeURI(step).replaceAll('~1', '/').replaceAll('~0', '~')).join('.');
	let problem = error.replace(/\.$/, '');
	problem = problem.replace(PAST_BOUND, `must be ${BOUNDS[keyword] ?? ''} $2 instead of $1`);
	for (const [said, words] of WORDS) problem = problem.replace(said, words);
	if (keyword === 'type')
		problem = problem.replaceAll('", "', ' or ').replace(/\w+/g, (word) => TYPES[word] ?? word);
	return `${path || 'the answer'} ${problem}`;
}
