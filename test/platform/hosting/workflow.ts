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
	/** Every value input of the class that no link feeds, with the exported value or the class's default. */
	readonly values: ReadonlyMap<string, unknown>;
}

export interface HostedWorkflow {
	readonly workflowId: string;
	readonly owner: Owner;
	readonly nodes: ReadonlyMap<string, WorkflowNode>;
	/** The nodes that results need, each after those that feed it. */
	readonly order: readonly WorkflowNode[];
}

export type RefusalReason =
	'notApiExport' | 'unsupportedNode' | 'unsupportedModel' | 'missingAsset' | 'invalidGraph' | 'idTaken';

/** A file that was not hosted. `reason` tells the kind, the message the whole story. */
export class WorkflowRefused extends Error {
	override readonly name = 'WorkflowRefused';

	constructor(
		readonly reason: RefusalReason,
		message: string,
	) {
		super(message);
	}
}
