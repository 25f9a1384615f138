import type { INodeProperties, INodePropertyTypeOptions, NodePropertyTypes } from 'n8n-workflow';

import { failInput, ok, type Result } from '../errors/failure';
import { numberOf } from '../text/textOf';

interface OptionFacts extends INodeProperties {
	/** The value while the option is not added, if it differs from the `default` that is shown once it is. */
	whenAbsent?: number;
	/** Whether a retry with another value makes a new request (a seed does) or not (a timeout does not). */
	isPartOfRequest?: boolean;
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

/** The "Options" collection with the named fields, in alphabetical order as n8n shows them. */
export function optionsCollection<F extends Named<F, OptionField>>(
	fields: F,
	names?: ReadonlyArray<keyof F>,
): INodeProperties {
	const shown = names?.map((name) => fields[name]) ?? Object.values<OptionField>(fields);
	return {
		displayName: 'Options',
		name: 'options',
		type: 'collection',
		placeholder: 'Add option',
		default: {},
		// By code units: a locale's collator takes a tenth of the time in which n8n loads this package.
		options: shown
			.map(({ whenAbsent: _ours, isPartOfRequest: _too, ...field }: OptionField): INodeProperties => field)
			.sort((left, right) => (left.displayName < right.displayName ? -1 : 1)),
	};
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
 * @param groupOf the label of the collection that an option is in
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
