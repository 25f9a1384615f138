import type { INodeParameters, INodeProperties, INodeTypeDescription } from 'n8n-workflow';

import { isJsonObject } from '../../nodes/shared/text/json';

/** Moves each option of a test, even one that stands beside the fields, to the group in which the node's form shows it. */
export function inGroups(parameters: INodeParameters, { properties }: INodeTypeDescription): INodeParameters {
	const { options, limits, ...fields } = parameters;
	const isShown = ({ displayOptions }: INodeProperties): boolean =>
		(['resource', 'operation'] as const).every((key) => {
			const wanted: unknown[] = displayOptions?.show?.[key] ?? [parameters[key]];
			return wanted.includes(parameters[key]);
		});
	const listOf = (group: string): readonly object[] =>
		properties.find((one) => one.name === group && isShown(one))?.options ?? [];
	const isOption = namesIn(listOf('options'));
	const isExpert = namesIn(listOf('options').find((one) => 'name' in one && one.name === 'expert'));
	const isLimit = namesIn(listOf('limits'));
	const given: INodeParameters = { ...fields, ...objectOf(options), ...objectOf(limits) };
	const expert = pick(given, (name) => isExpert.has(name));
	return {
		...pick(fields, (name) => !isOption.has(name) && !isExpert.has(name) && !isLimit.has(name)),
		options: {
			...pick(fields, (name) => isOption.has(name)),
			...pick(objectOf(options), (name) => !isLimit.has(name) && !isExpert.has(name)),
			...(Object.keys(expert).length > 0 && { expert }),
		},
		limits: {
			...pick(given, (name) => isLimit.has(name)),
			...objectOf(limits),
		},
	};
}

/** The names of the options in a list, or of those that an option holds. */
function namesIn(list: object | undefined): ReadonlySet<string> {
	const options: unknown = list && 'options' in list ? list.options : list;
	const entries: unknown[] = Array.isArray(options) ? options : [];
	return new Set(entries.map((one) => (isJsonObject(one) && typeof one.name === 'string' ? one.name : '')));
}

function objectOf(value: unknown): INodeParameters {
	return isJsonObject(value) ? (value as INodeParameters) : {};
}

function pick(from: INodeParameters, isWanted: (name: string) => boolean): INodeParameters {
	return Object.fromEntries(Object.entries(from).filter(([name]) => isWanted(name)));
}
