import { integerOf } from '../wireJson';
import type { RawInteger } from '../wireJson';
import type { ValueInput } from './nodeClasses';
import type { HostedWorkflow } from './workflow';

/** A number; an integer above 2^53 is its own literal, of which JSON.stringify writes all digits. */
export type SpecNumber = number | RawInteger;

export interface ParameterSpec {
	/** The value in the hosted file. */
	default: unknown;
	min?: SpecNumber;
	max?: SpecNumber;
	list?: string[];
}

export interface ParameterViewNode {
	title: string;
	class_type: string;
	inputs: Record<string, { spec: ParameterSpec }>;
}

export type ParameterView = Record<string, ParameterViewNode>;

function specOf(input: ValueInput, value: unknown): ParameterSpec {
	switch (input.type) {
		case 'integer':
			return { default: value, min: input.min, max: integerOf(BigInt(input.max)) };
		case 'number':
			return { default: value, min: input.min, max: input.max };
		case 'list':
		case 'model':
			return { default: value, list: [...input.list] };
		case 'text':
		case 'image':
			return { default: value };
	}
}

/** Lists every parameter that a task of this workflow may set, with what it accepts. */
export function parameterView(workflow: HostedWorkflow): ParameterView {
	const view: ParameterView = {};
	for (const node of workflow.nodes.values()) {
		const inputs: ParameterViewNode['inputs'] = {};
		for (const [name, value] of node.values) {
			const input = node.nodeClass.values[name];
			if (input !== undefined) inputs[name] = { spec: specOf(input, value) };
		}
		if (Object.keys(inputs).length === 0) continue;
		view[node.id] = { title: node.title, class_type: node.classType, inputs };
	}
	return view;
}
