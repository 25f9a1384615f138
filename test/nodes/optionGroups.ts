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
	const namesIn = (group: string): ReadonlySet<string> => {
		const form = properties.find((one) => one.name === group && isShown(one));
		return new Set(form?.options?.map(({ name }) => name));
	};
	const isOption = namesIn('options');
	const isLimit = namesIn('limits');
	const pick = (from: unknown, isWanted: (name: string) => boolean): INodeParameters =>
		Object.fromEntries(
			Object.entries(isJsonObject(from) ? from : {}).filter(([name]) => isWanted(name)),
		) as INodeParameters;
	return {
		...pick(fields, (name) => !isOption.has(name) && !isLimit.has(name)),
		options: {
			...pick(fields, (name) => isOption.has(name)),
			...pick(options, (name) => !isLimit.has(name)),
		},
		limits: {
			...pick({ ...fields, ...(isJsonObject(options) && options) }, (name) => isLimit.has(name)),
			...pick(limits, () => true),
		},
	};
}
