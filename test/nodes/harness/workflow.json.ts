import {
	Workflow,
	type IConnections,
	type IDataObject,
	type INode,
	type INodeTypes,
	type IPinData,
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
	staticData?: IDataObject;
	pinData?: IPinData;
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

/** Trigger → the node under test ("Node" by default), with a no-op node at each named output. */
export function singleNode({ outputs = [], settings, name = NODE_NAME, ...node }: SingleNode): WorkflowJson {
	const successors = outputs.flat();
	return {
		nodes: [
			{ name: TRIGGER_NAME, type: 'harness.trigger' },
			{ ...node, name },
			...successors.map((successor) => ({ name: successor, type: 'harness.noOp' })),
		],
		connections: {
			[TRIGGER_NAME]: { main: [[{ node: name, type: 'main', index: 0 }]] },
			[name]: {
				main: outputs.map((names) => names.map((successor) => ({ node: successor, type: 'main', index: 0 }))),
			},
		},
		settings,
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
		staticData: json.staticData,
		pinData: json.pinData,
	};
}

/** Builds a Workflow from a copy of the nodes, because it changes them (defaults, `disabled` on resume). */
export function buildWorkflow(saved: IWorkflowBase, nodeTypes: INodeTypes, pinData?: IPinData): Workflow {
	const { id, name, nodes, connections, staticData, settings } = structuredClone(saved);
	return new Workflow({
		id,
		name,
		nodes,
		connections,
		active: saved.activeVersionId !== null,
		nodeTypes,
		staticData,
		settings,
		pinData,
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
