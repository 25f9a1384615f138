import { badInput, fail, ok, type Failure, type Result } from '../shared/failure';
import { excerpt, isJsonObject, parseJson, type Json, type JsonObject } from '../shared/json';
import { onlyOne, parsePasted } from '../shared/pastedJson';

/** A workflow as its API-format export describes it (§2.1): what the form and the checks are made from. */
export interface WorkflowDefinition {
	readonly nodes: readonly DefinitionNode[];
}

export interface DefinitionNode {
	readonly nodeId: string;
	/** The name in the editor, else the class, else the id: never empty. */
	readonly title: string;
	readonly inputs: readonly DefinitionInput[];
}

export interface DefinitionInput {
	readonly name: string;
	readonly value: Json;
	/** Comes from another node's output, so it cannot be overridden (§4.1, rule 4). */
	readonly isLink: boolean;
}

const FIELD = 'Workflow Definition';

const HOW_TO_EXPORT =
	'In the engine\'s editor choose "Export (API)"; older versions have "Save (API Format)" once the developer mode is switched on in the settings.';

/** Reads an API-format export as operators have it: text or object, bare or wrapped. */
export function readDefinition(source: unknown): Result<WorkflowDefinition> {
	const read =
		typeof source === 'string' ? parsePasted(source) : source === undefined ? fail('') : ok(source);
	const parsed = read.ok ? onlyOne(read.value) : undefined;
	if (!isJsonObject(parsed)) {
		const why =
			read.ok || !read.failure ? '; the file may not have been pasted as a whole' : `: ${read.failure}`;
		const what = read.ok ? 'is no JSON object' : `is no valid JSON${why}`;
		return fail(
			badInput(
				`"${FIELD}" ${what}`,
				`Paste the whole content of the workflow's API-format export. ${HOW_TO_EXPORT}`,
			),
		);
	}
	const exported = findExport(parsed);
	if (exported) return ok({ nodes: Object.entries(exported).flatMap(readNode) });
	return fail(explainNoExport(parsed));
}

/** Whether nothing has been pasted yet. */
export function isEmptyDefinition(source: unknown): boolean {
	if (source === undefined || source === null || source === '') return true;
	const parsed = typeof source === 'string' ? parseJson(source.trim() || '{}') : source;
	return isJsonObject(parsed) && Object.keys(parsed).length === 0;
}

/** Tools wrap an export as what they send it as; a wrapper may hold the export as text. */
const WRAPPERS = ['prompt', 'workflow', 'output', 'data'];

function findExport(value: Json, depth = 0): JsonObject | undefined {
	if (!isJsonObject(value)) return undefined;
	if (Object.values(value).some(isExportNode)) return value;
	if (depth === 3) return undefined;
	for (const key of WRAPPERS) {
		const inner = value[key];
		const read = typeof inner === 'string' ? parsePasted(inner) : ok(inner ?? null);
		const found = read.ok ? findExport(read.value, depth + 1) : undefined;
		if (found) return found;
	}
	return undefined;
}

function isExportNode(value: Json): boolean {
	return isJsonObject(value) && typeof value.class_type === 'string';
}

function readNode([nodeId, node]: [string, Json]): DefinitionNode[] {
	if (!isJsonObject(node) || !isExportNode(node)) return [];
	const inputs = isJsonObject(node.inputs) ? Object.entries(node.inputs) : [];
	return [
		{
			nodeId,
			title: titleOf(nodeId, node),
			inputs: inputs.map(([name, value]) => ({ name, value, isLink: isLink(value) })),
		},
	];
}

function titleOf(nodeId: string, node: JsonObject): string {
	const meta = isJsonObject(node._meta) ? node._meta : isJsonObject(node.meta) ? node.meta : {};
	const named = [meta.title, node.title, node.class_type].find(
		(name) => typeof name === 'string' && name.trim() !== '',
	);
	return typeof named === 'string' ? excerpt(named, 80) : `Node ${nodeId}`;
}

/** A link is how an export says that an input comes from another node's output: `["4", 0]`. */
export function isLink(value: unknown): boolean {
	return (
		Array.isArray(value) && value.length === 2 && typeof value[0] === 'string' && Number.isInteger(value[1])
	);
}

function explainNoExport(value: JsonObject): Failure {
	if (isEditorFile(value) || (isJsonObject(value.workflow) && isEditorFile(value.workflow))) {
		return badInput(
			`"${FIELD}" is a workflow file of the engine's editor (UI format), not an API-format export`,
			`${HOW_TO_EXPORT} Then paste the content of that file.`,
		);
	}
	return badInput(
		`"${FIELD}" is JSON, but no node of a workflow was found in it`,
		`An API-format export looks like {"3": {"class_type": "KSampler", "inputs": {…}}}. ${HOW_TO_EXPORT}`,
	);
}

/** Whether it is what the engine's editor saves (UI format), which nothing but the editor can run. */
export function isEditorFile(value: JsonObject): boolean {
	return (
		Array.isArray(value.nodes) &&
		(Array.isArray(value.links) || 'last_node_id' in value || 'version' in value)
	);
}
