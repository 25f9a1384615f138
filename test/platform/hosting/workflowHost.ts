import { randomBytes } from 'node:crypto';
import type { Owner } from '../owners';
import { readExport } from './exportFile';
import { parameterView } from './parameterView';
import type { ParameterView } from './parameterView';
import { checkValue } from './valueRules';
import { WorkflowRefused } from './workflow';
import type { HostedWorkflow, WorkflowNode } from './workflow';

type Nodes = ReadonlyMap<string, WorkflowNode>;

function invalid(message: string): WorkflowRefused {
	return new WorkflowRefused('invalidGraph', message);
}

function checkLinks(node: WorkflowNode, nodes: Nodes): void {
	for (const [name, slotType] of Object.entries(node.nodeClass.links)) {
		const link = node.links.get(name);
		if (link === undefined) throw invalid(`Node ${node.id} (${node.title}): input ${name} has no link.`);
		const given = nodes.get(link.nodeId)?.nodeClass.outputs[link.slot];
		if (given === slotType) continue;
		throw invalid(
			`Node ${node.id} (${node.title}): input ${name} needs ${slotType}, ` +
				`but output ${link.slot} of node ${link.nodeId} gives ${given ?? 'nothing'}.`,
		);
	}
	for (const [name, link] of node.links) {
		if (name in node.nodeClass.links) continue;
		throw invalid(`Node ${node.id} (${node.title}): ${name} is fed by node ${link.nodeId}, not by a value.`);
	}
}

function checkModels(node: WorkflowNode): void {
	for (const [name, input] of Object.entries(node.nodeClass.values)) {
		const value = node.values.get(name);
		if (input.type !== 'model' || typeof value !== 'string' || input.list.includes(value)) continue;
		throw new WorkflowRefused(
			'unsupportedModel',
			`Node ${node.id} (${node.title}), ${name}: the model ${value} is outside the supported list.`,
		);
	}
}

function checkValues(node: WorkflowNode): void {
	for (const [name, input] of Object.entries(node.nodeClass.values)) {
		const problem = checkValue(input, node.values.get(name));
		if (problem !== undefined) throw invalid(`Node ${node.id} (${node.title}): ${name} ${problem.text}.`);
	}
}

/** Orders nodes depth first from those that output images; nodes that no result needs are left out, as in the engine. */
function executionOrder(nodes: Nodes): WorkflowNode[] {
	const order: WorkflowNode[] = [];
	const done = new Map<WorkflowNode, boolean>();
	const visit = (node: WorkflowNode): void => {
		const finished = done.get(node);
		if (finished === true) return;
		if (finished === false) throw invalid(`Node ${node.id} (${node.title}) feeds itself.`);
		done.set(node, false);
		for (const link of node.links.values()) {
			const source = nodes.get(link.nodeId);
			if (source !== undefined) visit(source);
		}
		done.set(node, true);
		order.push(node);
	};
	for (const node of nodes.values()) if (node.nodeClass.images !== undefined) visit(node);
	if (order.length === 0) throw invalid('The workflow has no SaveImage or PreviewImage node.');
	return order;
}

/** The management side of the service, which accepts exported files, validates them and issues workflow IDs. */
export class WorkflowHost {
	readonly #workflows = new Map<string, HostedWorkflow>();

	/** Hosts a file. Throws WorkflowRefused. If an owner's own workflow ID is used again, the new file replaces the old. */
	host(file: unknown, owner: Owner, workflowId = `wf-${randomBytes(8).toString('hex')}`): HostedWorkflow {
		const holder = this.#workflows.get(workflowId)?.owner;
		if (holder !== undefined && holder !== owner) {
			throw new WorkflowRefused('idTaken', `The workflow id ${workflowId} belongs to another owner.`);
		}
		const nodes = readExport(file);
		for (const node of nodes.values()) checkLinks(node, nodes);
		for (const node of nodes.values()) checkValues(node);
		for (const node of nodes.values()) checkModels(node);
		const workflow: HostedWorkflow = { workflowId, owner, nodes, order: executionOrder(nodes) };
		this.#workflows.set(workflowId, workflow);
		return workflow;
	}

	find(workflowId: string): HostedWorkflow | undefined {
		return this.#workflows.get(workflowId);
	}

	list(): HostedWorkflow[] {
		return [...this.#workflows.values()];
	}

	parameterView(workflowId: string): ParameterView {
		const workflow = this.#workflows.get(workflowId);
		if (workflow === undefined) throw new Error(`There is no workflow ${workflowId}.`);
		return parameterView(workflow);
	}
}
