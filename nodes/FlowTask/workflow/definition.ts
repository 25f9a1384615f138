import { badInput, fail, ok, type Failure, type Result } from '../../shared/errors/failure';
import { excerpt, isJsonObject, parseJson, type Json, type JsonObject } from '../../shared/text/json';
import { onlyOne, parsePasted } from '../../shared/form/pastedJson';

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
		const what = read.ok ? 'is not a JSON object' : `is not valid JSON${why}`;
		return fail(
			badInput(
				`"${FIELD}" ${what}`,
				`Paste the whole content of the workflow's API-format export. ${HOW_TO_EXPORT}`,
			),
		);
	}
	const exported = findExport(parsed);
	if (!exported) return fail(explainNoExport(parsed));
	const isNode = (id: string): boolean => isExportNode(exported[id]);
	return ok({ nodes: Object.entries(exported).flatMap(([id, node]) => readNode(id, node, isNode)) });
}

/** Whether nothing has been pasted yet. */
export function isEmptyDefinition(source: unknown): boolean {
	if (source === undefined || source === null || source === '') return true;
	const parsed = typeof source === 'string' ? parseJson(source.trim() || '{}') : source;
	return isJsonObject(parsed) && Object.keys(parsed).length === 0;
}

/** Tools wrap an export as what they send it as; a wrapper may hold the export as text. */
const WRAPPERS = ['prompt', 'workflow', 'output', 'data', 'input'];

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

function isExportNode(value: Json | undefined): boolean {
	return isJsonObject(value) && typeof value.class_type === 'string';
}

function readNode(nodeId: string, node: Json, isNode: (id: string) => boolean): DefinitionNode[] {
	if (!isJsonObject(node) || !isExportNode(node)) return [];
	const inputs = isJsonObject(node.inputs) ? Object.entries(node.inputs) : [];
	return [
		{
			nodeId,
			title: titleOf(nodeId, node),
			inputs: inputs.map(([name, value]) => ({ name, value, isLink: isLink(value, isNode) })),
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

/** More than any node has: a pair of larger numbers is a size, and no link. */
const MOST_OUTPUTS = 64;

/**
 * A link is how an export says that an input comes from another node's output: `["4", 0]`, and `[4, 0]` as some
 * tools write it.
 * @param isNode tells a link from a value of two numbers, as far as the workflow's nodes are known
 */
export function isLink(value: unknown, isNode: (nodeId: string) => boolean = () => true): boolean {
	const pair: readonly unknown[] = Array.isArray(value) ? value : [];
	const [from, output] = pair;
	if (pair.length !== 2) return false;
	if (typeof output !== 'number' || !Number.isInteger(output)) return false;
	if (typeof from === 'string') return true;
	return Number.isInteger(from) && output >= 0 && output < MOST_OUTPUTS && isNode(String(from));
}

/** Whether it is an integer beyond 2^53: of a text in JSON it is the text of its digits, else it was rounded. */
export function isLongInteger(value: Json | undefined): boolean {
	const isInteger = typeof value === 'string' ? /^-?\d{16,}$/.test(value) : Number.isInteger(value);
	return isInteger && !Number.isSafeInteger(Number(value));
}

function explainNoExport(value: JsonObject): Failure {
	if (holdsEditorFile(value)) {
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

/** Whether it is, bare or wrapped, what the engine's editor saves (UI format): nothing but the editor can run it. */
export function holdsEditorFile(value: Json | undefined, depth = 0): boolean {
	if (!isJsonObject(value)) return false;
	const hasMark = Array.isArray(value.links) || 'last_node_id' in value || 'version' in value;
	if (Array.isArray(value.nodes) && hasMark) return true;
	return depth < 3 && WRAPPERS.some((key) => holdsEditorFile(value[key], depth + 1));
}
