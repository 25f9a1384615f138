import { ok, type Result } from '../errors/failure';
import { isEmptyDefinition, readDefinition, type WorkflowDefinition } from './definition';
import { readParameterView, type ParameterView } from './parameterView';

export interface WorkflowKnowledge {
	readonly definition: WorkflowDefinition | undefined;
	readonly view: ParameterView;
}

export function readKnowledge(definitionSource: unknown, viewSource: unknown): Result<WorkflowKnowledge> {
	const view = readParameterView(viewSource);
	if (!view.ok) return view;
	if (isEmptyDefinition(definitionSource)) return ok({ definition: undefined, view: view.value });
	const definition = readDefinition(definitionSource);
	return definition.ok ? ok({ definition: definition.value, view: view.value }) : definition;
}
