import {
	NodeConnectionTypes,
	type IExecuteFunctions,
	type INodeExecutionData,
	type INodeType,
	type INodeTypeDescription,
} from 'n8n-workflow';

/*
 * The few nodes that a workflow under test needs around the node under test. They replace those of
 * n8n-nodes-base, which is not installed here; none of them matters to a test.
 */

/** The description of a node type of a test, which takes and outputs items by default. */
export function describedNode(
	over: Partial<INodeTypeDescription> & Pick<INodeTypeDescription, 'name'>,
): INodeTypeDescription {
	return {
		displayName: over.name,
		group: ['transform'],
		version: 1,
		description: 'Part of the test harness',
		defaults: { name: over.name },
		inputs: [NodeConnectionTypes.Main],
		outputs: [NodeConnectionTypes.Main],
		properties: [],
		...over,
	};
}

/**
 * Outputs the items of the run. It has `execute`, like n8n's "Execute Sub-workflow Trigger", because a
 * trigger function would always output one empty item in manual mode.
 */
class Trigger implements INodeType {
	description = describedNode({ name: 'trigger', group: ['trigger'], inputs: [] });

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		return [this.getInputData()];
	}
}

class NoOp implements INodeType {
	description = describedNode({ name: 'noOp' });

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		return [this.getInputData()];
	}
}

/** Passes nothing on but which item it was, such as Wait. */
class Forget implements INodeType {
	description = describedNode({ name: 'forget' });

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		return [this.getInputData().map((_, item) => ({ json: {}, pairedItem: { item } }))];
	}
}

/** Adds the fields of `json`, an object or an expression that returns one, to each item. */
class SetFields implements INodeType {
	description = describedNode({
		name: 'set',
		properties: [{ displayName: 'JSON', name: 'json', type: 'json', default: '{}' }],
	});

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		const items = this.getInputData().map((item, itemIndex) => {
			const fields: unknown = this.getNodeParameter('json', itemIndex, {}, { ensureType: 'json' });
			return { ...item, json: Object.assign({}, item.json, fields), pairedItem: { item: itemIndex } };
		});
		return [items];
	}
}

/** Outputs items for which `condition` is true at the first output, and the others at the second. */
class If implements INodeType {
	description = describedNode({
		name: 'if',
		outputs: [NodeConnectionTypes.Main, NodeConnectionTypes.Main],
		outputNames: ['true', 'false'],
		properties: [{ displayName: 'Condition', name: 'condition', type: 'boolean', default: true }],
	});

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		const outputs: [INodeExecutionData[], INodeExecutionData[]] = [[], []];
		this.getInputData().forEach((item, itemIndex) => {
			const output = this.getNodeParameter('condition', itemIndex) === true ? outputs[0] : outputs[1];
			output.push({ ...item, pairedItem: { item: itemIndex } });
		});
		return outputs;
	}
}

/** A stand-in for the AI Agent: calls every connected tool once with `args`, and outputs their answers. */
class Agent implements INodeType {
	description = describedNode({
		name: 'agent',
		inputs: [NodeConnectionTypes.Main, NodeConnectionTypes.AiTool],
		properties: [{ displayName: 'Arguments', name: 'args', type: 'json', default: '{}' }],
	});

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		const tools: unknown = await this.getInputConnectionData(NodeConnectionTypes.AiTool, 0);
		const args: unknown = this.getNodeParameter('args', 0, {}, { ensureType: 'json' });
		const items: INodeExecutionData[] = [];
		for (const tool of Array.isArray(tools) ? tools.filter(isTool) : []) {
			const answer = await tool.invoke(args);
			items.push({ json: { tool: tool.name, description: tool.description, answer: String(answer) } });
		}
		return [items];
	}
}

interface Tool {
	name: string;
	description: string;
	invoke(args: unknown): Promise<unknown>;
}

function isTool(candidate: unknown): candidate is Tool {
	return typeof candidate === 'object' && candidate !== null && 'invoke' in candidate;
}

/** Node types by full name. The n8n-nodes-base names are those of n8n's own trigger and no-op nodes in templates. */
export const stockNodes: Record<string, new () => INodeType> = {
	'harness.trigger': Trigger,
	'harness.noOp': NoOp,
	'harness.forget': Forget,
	'harness.set': SetFields,
	'harness.if': If,
	'harness.agent': Agent,
	'n8n-nodes-base.manualTrigger': Trigger,
	'n8n-nodes-base.executeWorkflowTrigger': Trigger,
	'n8n-nodes-base.noOp': NoOp,
	'@n8n/n8n-nodes-langchain.chatTrigger': Trigger,
};
