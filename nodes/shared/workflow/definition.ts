import { failInput, ok, type Result } from '../errors/failure';
import { excerpt, isJsonObject, type Json, type JsonObject } from '../text/json';
import { readParameterView, type ParameterView } from './parameterView';
import { readPastedObject, unwrap } from './pasted';

/** A workflow as its API-format export describes it (§2.1). */
export interface WorkflowDefinition {
	readonly nodes: readonly DefinitionNode[];
}

export interface DefinitionNode {
	readonly nodeId: string;
	/** The title in the editor, else the class, else "Node" and the ID; never empty. */
	readonly title: string;
	readonly classType: string;
	readonly inputs: readonly DefinitionInput[];
}

export interface DefinitionInput {
	readonly name: string;
	readonly value: Json;
	/** Whether the value comes from another node's output, so that it cannot be overridden (§4.1, rule 4). */
	readonly isLink: boolean;
}

const FIELD = 'Workflow Definition';

const HOW_TO_EXPORT =
	'In the engine\'s editor choose "Export (API)"; older versions have "Save (API Format)" once developer mode is enabled in the settings.';

/** How to let the node know a workflow, for the middle of a sentence. The field is hidden for a saved workflow. */
export const GIVE_EXPORT =
	"paste the workflow's export into 'Workflow Definition', or save the workflow with it ('Workflow' > 'Save')";

/** Reads an API-format export: text or object, bare or wrapped. */
export function readDefinition(source: unknown): Result<WorkflowDefinition> {
	const advice = `Paste the whole content of the workflow's API-format export. ${HOW_TO_EXPORT}`;
	if (isEmptyDefinition(source)) return refuse('is empty', advice);
	const parsed = readPastedObject(FIELD, source, advice);
	if (!parsed.ok) return parsed;
	const found = findExport(parsed.value);
	if (!found.ok) return found;
	const exported = found.value;
	const isNode = (id: string): boolean => isExportNode(exported[id]);
	const nodes = Object.entries(exported).flatMap(([nodeId, node]) =>
		isExportNode(node)
			? [{ nodeId, title: titleOf(nodeId, node), classType: node.class_type, inputs: inputsOf(node, isNode) }]
			: [],
	);
	return ok({ nodes });
}

function findExport(object: JsonObject): Result<JsonObject> {
	const wrapped = unwrap(object, WRAPPERS).find(isExport);
	// A file of the editor may contain the export as well.
	const [only, ...others] = wrapped ? [wrapped] : exportsIn(object, MOST_EXPORT_LEVELS);
	if (!only && holdsEditorFile(object)) {
		return refuse(
			"is a workflow file of the engine's editor (UI format), not an API-format export",
			`${HOW_TO_EXPORT} Then paste the content of that file.`,
		);
	}
	if (!only) {
		return refuse(
			'is JSON, but contains no workflow nodes',
			`An API-format export looks like {"3": {"class_type": "KSampler", "inputs": {…}}}. ${HOW_TO_EXPORT}`,
		);
	}
	if (others.length > 0) {
		const what = `contains several workflows (${1 + others.length})`;
		return refuse(what, `Paste only the one that is hosted. ${HOW_TO_EXPORT}`);
	}
	if (!isView(only)) return refuseUnnamed(only) ?? ok(only);
	return refuse(
		'is a parameter view, not an API-format export',
		`Paste it into 'Parameter View'. ${HOW_TO_EXPORT}`,
	);
}

/** Refuses an export that the engine does not run, because it does not say what one of its nodes is. */
function refuseUnnamed(exported: JsonObject): Result<never> | undefined {
	for (const [nodeId, node] of Object.entries(exported)) {
		if (!isJsonObject(node) || !isJsonObject(node.inputs) || isExportNode(node)) continue;
		return refuse(
			`has a node without "class_type": ${titleOf(nodeId, node)}, ID ${excerpt(nodeId, 40)}`,
			`The package of this node was not installed where the workflow was exported. Install it there. ${HOW_TO_EXPORT}`,
		);
	}
	return undefined;
}

function refuse(what: string, advice: string): Result<never> {
	return failInput(`'${FIELD}' ${what}`, advice);
}

/** Exports below unknown keys or in lists, as in the replies of an engine. */
function exportsIn(value: Json, levels: number): JsonObject[] {
	if (typeof value !== 'object' || value === null || levels === 0) return [];
	if (isJsonObject(value) && isExport(value)) return [value];
	return Object.values(value).flatMap((inner: Json) => exportsIn(inner, levels - 1));
}

/** How many levels are searched. In an engine's history and queue, the export is at the fourth. */
const MOST_EXPORT_LEVELS = 5;

function isExport(object: JsonObject): boolean {
	return Object.values(object).some(isExportNode);
}

/** Whether every input has a "spec" instead of a value, as in a parameter view. */
function isView(object: JsonObject): boolean {
	const values = Object.values(object).flatMap((node) =>
		isJsonObject(node) && isJsonObject(node.inputs) ? Object.values(node.inputs) : [],
	);
	return values.length > 0 && values.every((value) => isJsonObject(value) && 'spec' in value);
}

export function isEmptyDefinition(source: unknown): boolean {
	if (source === undefined || source === null) return true;
	if (typeof source === 'string') return /^\s*(\{\s*\}\s*)?$/.test(source);
	return isJsonObject(source) && Object.keys(source).length === 0;
}

const WRAPPERS = ['prompt', 'workflow', 'output', 'data', 'input'];

function isExportNode(value: Json | undefined): value is JsonObject & { class_type: string } {
	return isJsonObject(value) && typeof value.class_type === 'string';
}

function titleOf(nodeId: string, node: JsonObject): string {
	const inMeta = [node._meta, node.meta].map((meta) => (isJsonObject(meta) ? meta.title : undefined));
	const named = [...inMeta, node.title, node.class_type].find(
		(name): name is string => typeof name === 'string' && name.trim() !== '',
	);
	return named === undefined ? `Node ${nodeId}` : excerpt(named, 80);
}

function inputsOf({ inputs }: JsonObject, isNode: (nodeId: string) => boolean): DefinitionInput[] {
	return Object.entries(isJsonObject(inputs) ? inputs : {}).map(([name, value]) => ({
		name,
		value,
		isLink: isLink(value, isNode),
	}));
}

/** No node has more outputs than this, so a pair with a larger number is a size, not a link. */
const MOST_OUTPUTS = 64;

/**
 * Whether a value is a link to another node's output: `["4", 0]`, or `[4, 0]` as some tools write it.
 * @param isNode distinguishes `[4, 0]` from a pair of numbers
 */
export function isLink(value: unknown, isNode: (nodeId: string) => boolean): boolean {
	const pair: readonly unknown[] = Array.isArray(value) ? value : [];
	const [from, output] = pair;
	if (pair.length !== 2) return false;
	if (typeof output !== 'number' || !Number.isInteger(output)) return false;
	if (typeof from === 'string') return true;
	return Number.isInteger(from) && output >= 0 && output < MOST_OUTPUTS && isNode(String(from));
}

/** Whether a value is an integer beyond 2^53, which `parseJson` returns as text, and n8n as a rounded number. */
export function isLongInteger(value: Json | undefined): boolean {
	const isInteger = typeof value === 'string' ? /^-?\d{16,}$/.test(value) : Number.isInteger(value);
	return isInteger && !Number.isSafeInteger(Number(value));
}

/** Whether an object is, bare or wrapped, a file of the engine's editor (UI format), which only the editor can run. */
export function holdsEditorFile(object: JsonObject): boolean {
	return unwrap(object, WRAPPERS).some(
		({ nodes, links, ...others }) =>
			Array.isArray(nodes) && (Array.isArray(links) || 'last_node_id' in others || 'version' in others),
	);
}

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
