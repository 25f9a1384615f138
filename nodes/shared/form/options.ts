import type {
	IExecuteFunctions,
	INodeProperties,
	INodePropertyTypeOptions,
	NodePropertyTypes,
} from 'n8n-workflow';

import { failInput, ok, type Result } from '../errors/failure';
import { isJsonObject } from '../text/json';
import { numberOf } from '../text/textOf';

interface OptionFacts extends INodeProperties {
	/** The value while the option is not added, if it differs from `default`. */
	whenAbsent?: number;
	/** Whether a retry with another value is a new request: true for a seed, false for a timeout. */
	isPartOfRequest?: boolean;
	/** Whether it limits the cost or speed of a run; such options have a group of their own. */
	isLimit?: boolean;
}

/** A number, accepted only within the range that the form shows. */
export interface NumberField extends OptionFacts {
	type: 'number';
	default: number;
	typeOptions: INodePropertyTypeOptions & { minValue: number; maxValue: number };
}

interface OtherField extends OptionFacts {
	type: Exclude<NodePropertyTypes, 'number'>;
}

export type OptionField = NumberField | OtherField;

/** An option of a node that remembers across retries what it has requested. */
export type RequestOption = OptionField & { isPartOfRequest: boolean };

type Named<F, Field> = { [Name in keyof F]: Field & { name: Name } };
type NumberName<F> = { [Name in keyof F]: F[Name] extends NumberField ? Name : never }[keyof F];

export function defineOptions<F extends Named<F, OptionField>>(fields: F): F {
	return fields;
}

export function defineRequestOptions<F extends Named<F, RequestOption>>(fields: F): F {
	return fields;
}

/** The groups of options: parameter name and label. */
const GROUPS = { options: 'Options', limits: 'Cost and Speed' } as const;

/** The "Options" collection with the named fields, or with all. */
export function optionsCollection<F extends Named<F, OptionField>>(
	fields: F,
	names?: ReadonlyArray<keyof F>,
): INodeProperties {
	return collectionOf('options', 'Add option', chosenFields(fields, names));
}

/** The collections of options and of limits, with the named fields or with all. */
export function optionGroups<F extends Named<F, OptionField>>(
	fields: F,
	names?: ReadonlyArray<keyof F>,
): [options: INodeProperties, limits: INodeProperties] {
	const shown = chosenFields(fields, names);
	const others = shown.filter(({ isLimit }) => isLimit !== true);
	const limits = shown.filter(({ isLimit }) => isLimit === true);
	return [collectionOf('options', 'Add option', others), collectionOf('limits', 'Add limit', limits)];
}

function chosenFields<F extends Named<F, OptionField>>(
	fields: F,
	names?: ReadonlyArray<keyof F>,
): OptionField[] {
	return names?.map((name) => fields[name]) ?? Object.values<OptionField>(fields);
}

function collectionOf(
	name: keyof typeof GROUPS,
	placeholder: string,
	fields: readonly OptionField[],
): INodeProperties {
	return {
		displayName: GROUPS[name],
		name,
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
	delete field.isPartOfRequest;
	delete field.isLimit;
	return field;
}

export interface EnteredOptions {
	readonly given: Readonly<Record<string, unknown>>;
	readonly groupOf: (name: string) => string;
}

/**
 * Reads the options of all groups.
 * @param isEvaluated false for options whose expressions differ per item, because an error in one must not fail the
 *   other items. `given` then contains the expression.
 */
export function enteredOptions(
	context: Pick<IExecuteFunctions, 'getNodeParameter'>,
	itemIndex: number,
	isEvaluated: (name: string) => boolean = () => true,
): EnteredOptions {
	const given: Record<string, unknown> = {};
	const labels = new Map<string, string>();
	for (const [group, label] of Object.entries(GROUPS)) {
		const entered: unknown = context.getNodeParameter(group, itemIndex, {}, { rawExpressions: true });
		for (const [name, raw] of Object.entries(isJsonObject(entered) ? entered : {})) {
			labels.set(name, label);
			given[name] = isEvaluated(name) ? context.getNodeParameter(`${group}.${name}`, itemIndex, '') : raw;
		}
	}
	return { given, groupOf: (name) => labels.get(name) ?? GROUPS.options };
}

/** The given choice, or the first choice if the given value is not one of them. */
export function oneOf<Choice extends string>(
	choices: readonly [Choice, ...Choice[]],
	given: unknown,
): Choice {
	return choices.find((choice) => choice === given) ?? choices[0];
}

export interface Numbers<Name> {
	/** The entered number, or the default. */
	readonly number: (name: Name) => number;
	readonly entered: (name: Name) => number | undefined;
}

/**
 * Reads the numbers among the options, which may come from expressions, and checks their ranges.
 * @param formFields fields of the form itself, not among the options
 * @param groupOf the label of the group that an option is in
 */
export function readNumbers<F extends Named<F, OptionField>, G extends Named<G, OptionField> = object>(
	given: Readonly<Record<string, unknown>>,
	options: F,
	formFields?: G,
	groupOf: (name: string) => string = () => 'Options',
): Result<Numbers<NumberName<F> | NumberName<G>>> {
	const entered = new Map<PropertyKey, number>();
	const fallbacks = new Map<PropertyKey, number>();
	const complaints: string[] = [];
	const locations = new Set<string>();
	for (const [name, field] of Object.entries<OptionField>({ ...options, ...formFields })) {
		if (field.type !== 'number') continue;
		fallbacks.set(name, field.whenAbsent ?? field.default);
		const raw = given[name];
		if (raw === undefined || raw === null || raw === '') continue;
		const value = numberOf(raw);
		const { minValue, maxValue } = field.typeOptions;
		if (value !== undefined && value >= minValue && value <= maxValue) entered.set(name, value);
		else {
			complaints.push(`"${field.displayName}" must be a number from ${minValue} to ${maxValue}`);
			locations.add(name in options ? `under "${groupOf(name)}"` : `in the field "${field.displayName}"`);
		}
	}
	if (complaints.length > 0) {
		const where = [...locations].join(' and ');
		return failInput(complaints.join('; '), `Correct it ${where} in the node. Nothing was sent.`);
	}
	return ok({
		number: (name) => entered.get(name) ?? Number(fallbacks.get(name)),
		entered: (name) => entered.get(name),
	});
}
