import {
	Workflow,
	type IConnection,
	type IConnections,
	type INode,
	type INodeTypes,
	type IWorkflowBase,
	type IWorkflowSettings,
} from 'n8n-workflow';
import { harnessWorkflowId } from './dataTables';

/** A node as the editor copies it; missing fields are filled in as for a new node. */
export type NodeJson = Pick<INode, 'name' | 'type'> & Partial<INode>;

export interface WorkflowJson {
	id?: string;
	name?: string;
	nodes: NodeJson[];
	connections: IConnections;
	settings?: IWorkflowSettings;
}

export interface SingleNode extends Partial<Omit<INode, 'credentials'>> {
	type: string;
	/** The names of the no-op nodes that follow, one list per output of the node. */
	outputs?: string[][];
	credentials?: INode['credentials'];
	settings?: IWorkflowSettings;
}

export const TRIGGER_NAME = 'Trigger';
export const NODE_NAME = 'Node';

/** Trigger → the node under test ("Node" by default), with a no-op node, or itself, at each named output. */
export function singleNode({ outputs = [], settings, name = NODE_NAME, ...node }: SingleNode): WorkflowJson {
	const successors = outputs.flat().filter((successor) => successor !== name);
	return {
		nodes: [
			{ name: TRIGGER_NAME, type: 'harness.trigger' },
			{ ...node, name },
			...successors.map((successor) => ({ name: successor, type: 'harness.noOp' })),
		],
		connections: {
			[TRIGGER_NAME]: { main: [to(name)] },
			[name]: { main: outputs.map((names) => to(...names)) },
		},
		settings,
	};
}

/** The connections of one output to the inputs of these nodes. */
export function to(...names: string[]): IConnection[] {
	return names.map((node) => ({ node, type: 'main', index: 0 }));
}

/** The workflow with its node repeated twice for an item with this JSON. */
export function repeated({ nodes, connections }: WorkflowJson, json: object): WorkflowJson {
	const more = { name: 'More', type: 'harness.if', parameters: { condition: '={{ $runIndex < 2 }}' } };
	const same = { name: 'Same', type: 'harness.set', parameters: { json: JSON.stringify(json) } };
	return {
		nodes: [...nodes, more, same],
		connections: {
			...connections,
			[NODE_NAME]: { main: [to('More')] },
			More: { main: [to('Same'), []] },
			Same: { main: [to(NODE_NAME)] },
		},
	};
}

/** Agents, one after another, each of which calls the node once as its tool. */
export function toolOf(tool: NodeJson, agents = ['Agent']): WorkflowJson {
	return {
		nodes: [
			{ name: TRIGGER_NAME, type: 'harness.trigger' },
			...agents.map((name) => ({ name, type: 'harness.agent' })),
			tool,
		],
		connections: {
			...Object.fromEntries(
				agents.map((name, index) => [agents[index - 1] ?? TRIGGER_NAME, { main: [to(name)] }]),
			),
			[tool.name]: { ai_tool: [agents.map((node) => ({ node, type: 'ai_tool', index: 0 }))] },
		},
	};
}

/** The form that n8n's database would store for this JSON. */
export function savedWorkflow(json: WorkflowJson, nodeTypes: INodeTypes): IWorkflowBase {
	const now = new Date();
	return {
		id: json.id ?? harnessWorkflowId(),
		name: json.name ?? 'Harness workflow',
		active: false,
		activeVersionId: null,
		isArchived: false,
		createdAt: now,
		updatedAt: now,
		nodes: json.nodes.map((node, index) => ({
			...node,
			id: node.id ?? `node-${index}`,
			typeVersion: node.typeVersion ?? latestVersion(nodeTypes, node.type),
			position: node.position ?? [index * 220, 0],
			parameters: node.parameters ?? {},
		})),
		connections: json.connections,
		settings: { executionOrder: 'v1', ...json.settings },
	};
}

/** Builds a Workflow from a copy of the nodes, because it changes them (defaults, `disabled` on resume). */
export function buildWorkflow(saved: IWorkflowBase, nodeTypes: INodeTypes): Workflow {
	const { id, name, nodes, connections, settings } = structuredClone(saved);
	return new Workflow({
		id,
		name,
		nodes,
		connections,
		active: saved.activeVersionId !== null,
		nodeTypes,
		settings,
	});
}

/** The named node, or the trigger, or else the node that n8n itself would start with. */
export function findStartNode(workflow: Workflow, name?: string): INode {
	const isTrigger = (node: INode) =>
		workflow.nodeTypes.getByNameAndVersion(node.type, node.typeVersion).description.group.includes('trigger');
	const node = name
		? workflow.getNode(name)
		: (Object.values(workflow.nodes).find(isTrigger) ?? workflow.getStartNode());
	if (!node) throw new Error(`The workflow has no ${name ? `node named "${name}"` : 'node to start from'}`);
	return node;
}

function latestVersion(nodeTypes: INodeTypes, type: string): number {
	const { defaultVersion, version } = nodeTypes.getByNameAndVersion(type).description;
	return defaultVersion ?? (Array.isArray(version) ? Math.max(...version) : version);
}
