import type { INodeParameters, INodeTypeDescription } from 'n8n-workflow';

import { isJsonObject } from '../../nodes/shared/text/json';

/** Moves each option of a test to the group in which the node's form shows it. */
export function inGroups(parameters: INodeParameters, { properties }: INodeTypeDescription): INodeParameters {
	const { options, limits, ...others } = parameters;
	if (!isJsonObject(options)) return parameters;
	const form = properties.find(({ name, displayOptions }) => {
		const operations: unknown[] = displayOptions?.show?.operation ?? [parameters.operation];
		return name === 'limits' && operations.includes(parameters.operation);
	});
	const names = new Set(form?.options?.map(({ name }) => name));
	const entries = Object.entries(options);
	const pick = (isLimit: boolean) =>
		Object.fromEntries(entries.filter(([name]) => names.has(name) === isLimit));
	return { ...others, options: pick(false), limits: { ...pick(true), ...(isJsonObject(limits) && limits) } };
}
