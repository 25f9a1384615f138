import { CODES } from '../codes';
import type { Owner } from '../owners';
import { isRecord } from '../wireJson';
import { linkOf, looksLikeParameterView } from './exportFile';
import { EXAMPLE_IMAGE } from './nodeClasses';
import { checkValue } from './valueRules';
import type { HostedWorkflow, WorkflowNode } from './workflow';

/** A task's own values: node ID -> parameter -> value. */
export type Overrides = ReadonlyMap<string, ReadonlyMap<string, unknown>>;

export interface OverrideProblem {
	readonly code: number;
	readonly msg: string;
}

export interface OverrideSurroundings {
	readonly owner: Owner;
	readonly imageExists: (owner: Owner, imageId: string) => boolean;
}

function checkParameter(
	node: WorkflowNode,
	name: string,
	value: unknown,
	surroundings: OverrideSurroundings,
): OverrideProblem | undefined {
	const where = `Node ${node.id} (${node.title}), parameter ${name}`;
	if (linkOf(value) !== undefined || name in node.nodeClass.links || node.links.has(name)) {
		return { code: CODES.linkOverride, msg: `${where} is a link; only value inputs can be passed.` };
	}
	const input = node.nodeClass.values[name];
	if (input === undefined) {
		const known = [...node.values.keys()].join(', ') || 'none';
		return { code: CODES.unknownParameter, msg: `${where} does not exist; it accepts: ${known}.` };
	}
	const problem = checkValue(input, value);
	if (problem !== undefined) return { code: problem.code, msg: `${where} ${problem.text}.` };
	if (typeof value !== 'string') return undefined;
	const { owner, imageExists } = surroundings;
	if (input.type === 'image' && value !== EXAMPLE_IMAGE && !imageExists(owner, value)) {
		return { code: CODES.unknownImage, msg: `${where}: there is no uploaded image ${value}.` };
	}
	if (input.type === 'model' && !input.list.includes(value)) {
		return { code: CODES.notInList, msg: `${where}: the model ${value} is not in the accepted list.` };
	}
	return undefined;
}

function checkShape(prompt: unknown): OverrideProblem | undefined {
	if (!isRecord(prompt)) {
		return {
			code: CODES.badPrompt,
			msg: 'prompt is required: an object of node ids with the inputs to change.',
		};
	}
	if (looksLikeParameterView(prompt)) {
		return {
			code: CODES.parameterView,
			msg: 'prompt holds the parameter view; pass { "<node id>": { "inputs": { "<parameter>": <value> } } }.',
		};
	}
	const nodes = Object.entries(prompt);
	const exported = nodes.filter(([, node]) => isRecord(node) && ('class_type' in node || '_meta' in node));
	if (exported.length > 0) {
		const ids = exported.map(([id]) => id).join(', ');
		return {
			code: CODES.fullExport,
			msg: `prompt holds the exported file (class_type or _meta in node ${ids}); pass only the changed inputs.`,
		};
	}
	return undefined;
}

/** Reads the overrides of a submit body, or lists every problem with them. */
export function readOverrides(
	prompt: unknown,
	workflow: HostedWorkflow,
	surroundings: OverrideSurroundings,
): { overrides: Overrides } | { problems: OverrideProblem[] } {
	const shape = checkShape(prompt);
	if (shape !== undefined || !isRecord(prompt)) return { problems: shape === undefined ? [] : [shape] };
	const problems: OverrideProblem[] = [];
	const overrides = new Map<string, ReadonlyMap<string, unknown>>();
	for (const [id, entry] of Object.entries(prompt)) {
		const node = workflow.nodes.get(id);
		if (node === undefined) {
			problems.push({ code: CODES.unknownNode, msg: `The workflow has no node ${id}.` });
			continue;
		}
		if (!isRecord(entry) || !isRecord(entry['inputs']) || Object.keys(entry).length > 1) {
			problems.push({ code: CODES.badPrompt, msg: `Node ${id} must be { "inputs": { … } } and no more.` });
			continue;
		}
		const inputs = new Map(Object.entries(entry['inputs']));
		for (const [name, value] of inputs) {
			const problem = checkParameter(node, name, value, surroundings);
			if (problem !== undefined) problems.push(problem);
		}
		overrides.set(id, inputs);
	}
	return problems.length > 0 ? { problems } : { overrides };
}
