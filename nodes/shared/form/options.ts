import type {
	IExecuteFunctions,
	INodeProperties,
	INodePropertyTypeOptions,
	NodePropertyTypes,
} from 'n8n-workflow';

import { fail, failInput, ok, NOT_SENT, type Result } from '../errors/failure';
import { isJsonObject } from '../text/json';
import { booleanOf, isBlank, numberOf } from '../text/textOf';

interface OptionFacts extends INodeProperties {
	/** The value while the option is not added, if it differs from `default`. */
	whenAbsent?: number;
	/** Whether the option limits a run's cost or speed; such options are in "Cost and Speed". */
	isLimit?: boolean;
	/** Whether few people need it; such options are in "Expert Options", a list within the options. */
	isExpert?: boolean;
	/** Whether 0 removes the limit on what a run may cost, so that no other value may become 0. */
	isBudget?: boolean;
}

/** A number, accepted only within the range that the form shows. */
interface NumberField extends OptionFacts {
	type: 'number';
	default: number;
	typeOptions: INodePropertyTypeOptions & { minValue: number; maxValue: number };
}

interface OtherField extends OptionFacts {
	type: Exclude<NodePropertyTypes, 'number'>;
}

type OptionField = NumberField | OtherField;

type Named<F, Field> = { [Name in keyof F]: Field & { name: Name } };
type NumberName<F> = { [Name in keyof F]: F[Name] extends NumberField ? Name : never }[keyof F];

export function defineOptions<F extends Named<F, OptionField>>(fields: F): F {
	return fields;
}

/** The paths of the parameters that hold options, and their labels. */
const GROUPS = {
	options: 'Options',
	'options.expert': 'Expert Options',
	limits: 'Cost and Speed',
} as const;

/** The option that holds others. */
const EXPERT = 'expert';

/** The "Options" collection with the named fields, or with all fields; those of other groups are included. */
export function optionsCollection<F extends Named<F, OptionField>>(
	fields: F,
	names?: ReadonlyArray<keyof F>,
): INodeProperties {
	return collectionOf('options', 'Add option', chosenFields(fields, names));
}

/** The collections "Options", with "Expert Options" in it, and "Cost and Speed", with the named fields or with all. */
export function optionGroups<F extends Named<F, OptionField>>(
	fields: F,
	names?: ReadonlyArray<keyof F>,
): INodeProperties[] {
	const shown = chosenFields(fields, names);
	const limits = shown.filter(({ isLimit }) => isLimit === true);
	const experts = shown.filter(({ isExpert }) => isExpert === true);
	const others = shown.filter((one) => !limits.includes(one) && !experts.includes(one));
	const options = collectionOf('options', 'Add option', others);
	if (experts.length > 0) {
		// Last, because it is what a person looks for last.
		options.options?.push(collectionOf('options.expert', 'Add expert option', experts));
	}
	return limits.length > 0 ? [options, collectionOf('limits', 'Add limit', limits)] : [options];
}

function chosenFields<F extends Named<F, OptionField>>(fields: F, names?: ReadonlyArray<keyof F>) {
	return names?.map((name) => fields[name]) ?? Object.values<OptionField>(fields);
}

function collectionOf(
	path: keyof typeof GROUPS,
	placeholder: string,
	fields: readonly OptionField[],
): INodeProperties {
	return {
		displayName: GROUPS[path],
		name: path.split('.').at(-1) ?? path,
		type: 'collection',
		placeholder,
		default: {},
		// Sorted by code units, because a collator would take a tenth of this package's load time.
		options: fields.map(withoutFacts).sort((left, right) => (left.displayName < right.displayName ? -1 : 1)),
	};
}

function withoutFacts(option: OptionField): INodeProperties {
	const field = { ...option };
	delete field.whenAbsent;
	delete field.isLimit;
	delete field.isExpert;
	delete field.isBudget;
	return field;
}

/**
 * Reads the options of all groups; switches that an expression returned as text become booleans.
 * @param isEvaluated false for options whose expressions differ per item, because an error in one must not fail the
 *   other items. `given` then contains the expression.
 */
export function enteredOptions(
	context: Pick<IExecuteFunctions, 'getNodeParameter'>,
	itemIndex: number,
	fields: Readonly<Record<string, OptionField>>,
	isEvaluated: (name: string) => boolean = () => true,
): { readonly given: Readonly<Record<string, unknown>>; readonly groupOf: (name: string) => string } {
	const given: Record<string, unknown> = {};
	const labels = new Map<string, string>();
	for (const [group, label] of Object.entries(GROUPS)) {
		const entered: unknown = context.getNodeParameter(group, itemIndex, {}, { rawExpressions: true });
		for (const [name, raw] of Object.entries(isJsonObject(entered) ? entered : {})) {
			if (name === EXPERT) continue;
			labels.set(name, label);
			const value = isEvaluated(name) ? context.getNodeParameter(`${group}.${name}`, itemIndex, '') : raw;
			given[name] = fields[name]?.type === 'boolean' ? (booleanOf(value) ?? value) : value;
		}
	}
	return { given, groupOf: (name) => labels.get(name) ?? GROUPS.options };
}

/** The given value if it is one of the choices, otherwise the first choice. */
export function oneOf<Choice extends string>(
	choices: readonly [Choice, ...Choice[]],
	given: unknown,
): Choice {
	return choices.find((choice) => choice === given) ?? choices[0];
}

/**
 * Reads a choice of the form. Blank counts as the first choice; anything else that is not a choice is refused.
 * @param field as messages name it, e.g. `"Seed Mode"`
 */
export function readChoice<Choice extends string>(
	field: string,
	choices: readonly [Choice, ...Choice[]],
	given: unknown,
): Result<Choice> {
	const choice = isBlank(given) ? choices[0] : choices.find((one) => one === given);
	if (choice !== undefined) return ok(choice);
	return failInput(
		mustBeOneOf(field, choices),
		`Check its expression: it must return one of these words. ${NOT_SENT}`,
	);
}

function mustBeOneOf(field: string, choices: readonly string[]): string {
	return `${field} must be ${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}`;
}

/**
 * Reads the numbers among the options and checks that they are in range, and that each choice is one that its field
 * offers. Values may come from expressions; blank ones count as absent, except in a budget whose default is no limit.
 * @param formFields fields of the form itself, not among the options
 * @param groupOf the label of the group that an option is in
 */
export function checkEntered<F extends Named<F, OptionField>, G extends Named<G, OptionField> = object>(
	given: Readonly<Record<string, unknown>>,
	options: F,
	formFields?: G,
	groupOf: (name: string) => string = () => 'Options',
) {
	type Name = NumberName<F> | NumberName<G>;
	const fields: Readonly<Record<PropertyKey, OptionField>> = { ...options, ...formFields };
	const entered = new Map<PropertyKey, number>();
	const complaints: string[] = [];
	const locations = new Set<string>();
	for (const [name, field] of Object.entries(fields)) {
		const raw = given[name];
		const isBudget = field.isBudget === true;
		// A budget whose expression returned nothing must not become 0, which means no limit.
		if (isBlank(raw) && !(isBudget && field.default === 0 && name in given)) continue;
		const read = field.type === 'number' ? readNumber(field, raw) : checkChoice(field, raw);
		if (!read.ok) {
			complaints.push(read.failure);
			locations.add(name in options ? `under '${groupOf(name)}'` : `in the field '${field.displayName}'`);
		} else if (read.value !== undefined) {
			// Callers round down, but a fraction of a budget must not become 0 either.
			entered.set(name, isBudget && read.value > 0 ? Math.max(1, read.value) : read.value);
		}
	}
	if (complaints.length > 0) {
		const where = [...locations].join(' and ');
		return failInput(complaints.join('; '), `Correct it ${where} in the node. Nothing was sent.`);
	}
	return ok({
		/** The entered number, or the one that applies if none was entered. */
		number: (name: Name) => entered.get(name) ?? Number(fields[name].whenAbsent ?? fields[name].default),
		entered: (name: Name) => entered.get(name),
	});
}

function readNumber({ displayName, typeOptions }: NumberField, given: unknown): Result<number, string> {
	const { minValue, maxValue } = typeOptions;
	const value = numberOf(given);
	if (value !== undefined && value >= minValue && value <= maxValue) return ok(value);
	return fail(`'${displayName}' must be a number from ${minValue} to ${maxValue}`);
}

function checkChoice({ displayName, type, options = [] }: OtherField, given: unknown) {
	const choices =
		type === 'options' ? options.flatMap((one) => ('value' in one ? [String(one.value)] : [])) : [];
	const isKnown = choices.length === 0 || choices.some((one) => one === given);
	return isKnown ? ok(undefined) : fail(mustBeOneOf(`'${displayName}'`, choices));
}
