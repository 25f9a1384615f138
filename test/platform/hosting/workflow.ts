import type { Owner } from '../owners';
import type { NodeClass } from './nodeClasses';

export interface NodeLink {
	readonly nodeId: string;
	readonly slot: number;
}

export interface WorkflowNode {
	readonly id: string;
	readonly title: string;
	readonly classType: string;
	readonly nodeClass: NodeClass;
	readonly links: ReadonlyMap<string, NodeLink>;
	/** Every unlinked value input of the class, with the exported value or the class's default. */
	readonly values: ReadonlyMap<string, unknown>;
}

export interface HostedWorkflow {
	readonly workflowId: string;
	readonly owner: Owner;
	readonly nodes: ReadonlyMap<string, WorkflowNode>;
	/** The nodes that results need, each after the nodes on which it depends. */
	readonly order: readonly WorkflowNode[];
}

export type RefusalReason =
	'notApiExport' | 'unsupportedNode' | 'unsupportedModel' | 'invalidGraph' | 'idTaken';

/** Thrown for a file that is not hosted. `reason` is the kind of problem, and the message describes it. */
export class WorkflowRefused extends Error {
	override readonly name = 'WorkflowRefused';

	constructor(
		readonly reason: RefusalReason,
		message: string,
	) {
		super(message);
	}
}
