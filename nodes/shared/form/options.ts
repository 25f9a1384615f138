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
	/** The value while the option is not added, if it differs from the `default` that is shown once it is. */
	whenAbsent?: number;
	/** Whether a retry with another value makes a new request (a seed does) or not (a timeout does not). */
	isPartOfRequest?: boolean;
	/** Whether it says what a run may cost or how fast it goes: a group of its own where a node has many options. */
	isLimit?: boolean;
}

/** A number of a form: the range that it shows is the range that it accepts. */
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

/** The options of a node, typed by their names. */
export function defineOptions<F extends Named<F, OptionField>>(fields: F): F {
	return fields;
}

/** The options of a node that remembers across retries what it has requested. */
export function defineRequestOptions<F extends Named<F, RequestOption>>(fields: F): F {
	return fields;
}

/** The groups that options are shown in: the name of the parameter and its label. */
const GROUPS = { options: 'Options', limits: 'Cost and Speed' } as const;

/** The "Options" collection with the named fields, in alphabetical order as n8n shows them. */
export function optionsCollection<F extends Named<F, OptionField>>(
	fields: F,
	names?: ReadonlyArray<keyof F>,
): INodeProperties {
	return collectionOf('options', 'Add option', chosenFields(fields, names));
}

/** The named fields, or all, in groups that a person can look through. */
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
		// By code units: a locale's collator takes a tenth of the time in which n8n loads this package.
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

/** The options that an operator has added. */
export interface EnteredOptions {
	readonly given: Readonly<Record<string, unknown>>;
	/** The label of the group that an option was added to: operations with a few have only one. */
	readonly groupOf: (name: string) => string;
}

/**
 * Reads the options of all groups.
 * @param isEvaluated false for options whose expressions differ per item: an error in one must not fail the other
 * items. They are in `given` as they were entered.
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

/** The given choice, or the first one, which is the default. */
export function oneOf<Choice extends string>(
	choices: readonly [Choice, ...Choice[]],
	given: unknown,
): Choice {
	return choices.find((choice) => choice === given) ?? choices[0];
}

/** The checked numbers of a form. */
export interface Numbers<Name> {
	/** The entered number, else the default. */
	readonly number: (name: Name) => number;
	/** The entered number, if there is one. */
	readonly entered: (name: Name) => number | undefined;
}

/**
 * Reads the numbers among the options, which expressions may have given, within the ranges of their fields.
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
