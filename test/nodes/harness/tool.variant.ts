import {
	deepCopy,
	NodeConnectionTypes,
	UserError,
	type INodeProperties,
	type INodeType,
	type INodeTypeDescription,
} from 'n8n-workflow';

/**
 * n8n creates a second type, "<name>Tool", of each node with `usableAsTool`: the same `execute`, no inputs, one
 * ai_tool output and a description for the model. Mirrors tool-generation/ai-tools and node-types of n8n's `cli` package.
 */
export function asTool(node: INodeType): INodeType {
	const { usableAsTool, ...rest } = node.description;
	if (!usableAsTool) throw new UserError('Node cannot be used as a tool', { extra: { nodeType: rest.name } });
	const replacements = typeof usableAsTool === 'object' ? usableAsTool.replacements : {};
	const copy: INodeTypeDescription = { ...deepCopy(rest), ...replacements };
	const description: INodeTypeDescription = {
		...copy,
		name: `${copy.name}Tool`,
		displayName: `${copy.displayName} Tool`,
		inputs: [],
		outputs: [NodeConnectionTypes.AiTool],
		properties: [...toolProperties(copy), ...copy.properties],
	};
	return Object.create(node, { description: { value: description } }) as INodeType;
}

function toolProperties({ properties, description }: INodeTypeDescription): INodeProperties[] {
	const has = (...names: string[]) => properties.some(({ name }) => names.includes(name));
	if (has('toolDescription')) return [];
	const toolDescription: INodeProperties = {
		displayName: 'Description',
		name: 'toolDescription',
		type: 'string',
		default: description,
		required: true,
	};
	if (!has('resource', 'operation')) return [toolDescription];
	const descriptionType: INodeProperties = {
		displayName: 'Tool Description',
		name: 'descriptionType',
		type: 'options',
		noDataExpression: true,
		options: [
			{ name: 'Set Automatically', value: 'auto' },
			{ name: 'Set Manually', value: 'manual' },
		],
		default: 'auto',
	};
	return [descriptionType, { ...toolDescription, displayOptions: { show: { descriptionType: ['manual'] } } }];
}
