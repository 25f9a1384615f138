import type { DefinitionInput, DefinitionNode, WorkflowDefinition } from '../../shared/workflow/definition';
import type { ParameterSpec, ParameterView } from '../../shared/workflow/parameterView';
import { graphOf, sourceOf } from '../graph/links';
import { isEditorState, isFileInput } from '../graph/names';

/** A node of a workflow, under the name that a list shows; `value` is its ID. */
interface NamedNode {
	readonly name: string;
	readonly value: string;
}

/**
 * Nodes with an input called `image` come first, because that is the default of the field "Parameter". Apart from this,
 * nodes with linked inputs come last, because they usually get their images from other nodes and only show them.
 */
export function imageNodesIn({ nodes }: WorkflowDefinition): NamedNode[] {
	const loaders = nodes.flatMap((node) => {
		const { nodeId, title, inputs } = node;
		const files = inputs.filter((input) => isImageInput(node, input)).map(({ name }) => name);
		if (files.length === 0) return [];
		const name = `${title} (${nodeId}) · ${files.join(', ')}`;
		const isFed = inputs.some(({ isLink }) => isLink);
		return [{ value: nodeId, name, order: 2 * Number(!files.includes('image')) + Number(isFed) }];
	});
	return loaders.sort((one, other) => one.order - other.order).map(({ name, value }) => ({ name, value }));
}

/** Whether an input takes an uploaded image or another file. */
export function isImageInput(node: DefinitionNode, input: DefinitionInput): boolean {
	if (!isFileInput(input) || /url$/i.test(input.name)) return false;
	return !isEditorState(node, input) && !savesFiles(node) && !readsText(node);
}

/** Whether a node takes the content of a file as text, and not the ID of an upload. */
function readsText({ classType }: DefinitionNode): boolean {
	return /base64/i.test(classType);
}

/** What an input accepts. For a file, the view lists old ones, although newer uploads are accepted, too. */
export function specOf(view: ParameterView, nodeId: string, name: string): ParameterSpec | undefined {
	const spec = view.get(nodeId)?.get(name);
	return spec && isFileInput({ name, value: '', isLink: false }) ? { ...spec, list: undefined } : spec;
}

/** Class types of nodes that make files; some of them also pass their files on. */
const SAVES_FILES = /save|export|combine/i;

/** A node that gets nothing to save only has the name of the package that a saving one comes from. */
function savesFiles({ classType, inputs }: DefinitionNode): boolean {
	return SAVES_FILES.test(classType) && inputs.some(({ isLink }) => isLink);
}

export function savesNothing({ nodes }: WorkflowDefinition): boolean {
	return !nodes.some(savesFiles);
}

/** An export does not say which nodes make files: likely class names come first, then the ends of the graph. */
export function outputNodesIn(definition: WorkflowDefinition): NamedNode[] {
	const graph = graphOf(definition);
	const used = new Set(
		definition.nodes.flatMap(({ inputs }) => inputs.map((input) => sourceOf(graph, input)?.nodeId)),
	);
	const saves = definition.nodes.filter(savesFiles);
	const ends = definition.nodes.filter(
		(node) => !saves.includes(node) && !used.has(node.nodeId) && node.inputs.some(({ isLink }) => isLink),
	);
	return [...saves, ...ends].map(({ nodeId, title }) => ({ value: nodeId, name: `${title} (${nodeId})` }));
}
