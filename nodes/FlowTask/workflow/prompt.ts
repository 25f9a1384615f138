import { badInput, fail, ok, type Failure, type Result } from '../../shared/errors/failure';
import {
	excerpt,
	isJsonObject,
	jsonText,
	parseJson,
	type Json,
	type JsonObject,
} from '../../shared/text/json';
import { lostDigits, onlyOne, parsePasted, ROUNDED, roundedNumber } from '../../shared/form/pastedJson';
import { holdsEditorFile, isLink, readDefinition } from './definition';
import { readFieldId } from './formFields';
import { readParameterView } from './parameterView';

/** `prompt` of §4.1: node id -> the inputs changed in this request. */
export type Prompt = Record<string, { inputs: JsonObject }>;

/** One row of the "Fields" form. */
export interface OverrideField {
	readonly nodeId: string;
	readonly parameter: string;
	readonly value: unknown;
	readonly valueType: OverrideType;
}

export type OverrideType = 'auto' | 'string' | 'number' | 'boolean' | 'json';

const FIELDS = 'Inputs to Change';
const PROMPT = 'Prompt (JSON)';

/** Builds `prompt` (§4.1) from rows. All that is wrong is told at once. */
export function promptFromFields(rows: readonly OverrideField[]): Result<Prompt> {
	let prompt: Prompt = {};
	const complaints: string[] = [];
	const seen = new Set<string>();
	rows.forEach((row, index) => {
		const nodeId = row.nodeId.trim();
		const parameter = row.parameter.trim();
		const place = `Row ${index + 1}`;
		if (!nodeId) return complaints.push(`${place} has no node ID`);
		if (!parameter) return complaints.push(`${place} (node ${nodeId}) has no parameter name`);
		const key = JSON.stringify([nodeId, parameter]);
		if (seen.has(key)) return complaints.push(`${place} sets "${parameter}" of node ${nodeId} a second time`);
		seen.add(key);
		const value = convert(row.value, row.valueType);
		if (!value.ok) return complaints.push(`${place} ("${parameter}" of node ${nodeId}): ${value.failure}`);
		if (isLink(value.value, isNeverANode)) {
			return complaints.push(
				`${place} ("${parameter}" of node ${nodeId}) is a link to another node; only values can be changed`,
			);
		}
		prompt = withInput(prompt, nodeId, parameter, value.value);
		return undefined;
	});
	if (complaints.length === 0) return ok(prompt);
	return fail(
		badInput(
			`"${FIELDS}" cannot be sent: ${complaints.join('; ')}`,
			`Correct ${complaints.length === 1 ? 'this row' : 'these rows'} in the node. Nothing was submitted for this item.`,
		),
	);
}

/** Without the workflow a pair of numbers may be a value; the checks, which may know it, look at these. */
const isNeverANode = (): boolean => false;

/**
 * Builds `prompt` from the rows that the operator added to the form. A row of an older export may name what the
 * workflow no longer has; that is told by the checks, which know the workflow.
 */
export function promptFromForm(value: unknown): Result<Prompt> {
	let prompt: Prompt = {};
	const rows = toJson(value);
	if (rows === undefined && value !== undefined) {
		return fail(
			badInput(
				'"Inputs to Change" holds a value that cannot be sent as JSON',
				'Look at the expressions in its rows: a value is a text, a number, true or false, a list or an object.',
			),
		);
	}
	for (const [id, rowValue] of Object.entries(isJsonObject(rows) ? rows : {})) {
		const place = readFieldId(id);
		if (!place) {
			return fail(
				badInput(
					`"Inputs to Change" holds a row "${excerpt(id, 60)}" that is not an input of a workflow`,
					'Remove this row and add it again from the list.',
				),
			);
		}
		const rounded = roundedNumber(isJsonObject(value) ? value[id] : undefined);
		if (rounded !== undefined) {
			return fail(
				badInput(
					`"Inputs to Change" cannot be sent: ${rounded}, the value of "${place.parameter}" of node ${place.nodeId}, ${ROUNDED}`,
					'Enter a smaller number, or remove the row to keep the value with which the workflow was hosted. Nothing was submitted for this item.',
				),
			);
		}
		if (rowValue !== null) prompt = withInput(prompt, place.nodeId, place.parameter, rowValue);
	}
	return ok(prompt);
}

/** The prompt with one more input set. Node ids come from operators, so that none may reach an object's prototype. */
export function withInput(prompt: Prompt, nodeId: string, parameter: string, value: Json): Prompt {
	const inputs = Object.hasOwn(prompt, nodeId) ? prompt[nodeId]?.inputs : undefined;
	return { ...prompt, [nodeId]: { inputs: { ...inputs, [parameter]: value } } };
}

/** Gives a row's value the type that the workflow expects. */
function convert(value: unknown, type: OverrideType): Result<Json, string> {
	const json = toJson(value);
	if (json === undefined || json === null) return fail('the value is missing (an expression gave nothing)');
	const text = typeof json === 'string' ? json : JSON.stringify(json);
	const rounded = roundedNumber(value);
	if (rounded !== undefined) return fail(`${rounded} ${ROUNDED}`);
	switch (type) {
		case 'auto':
			// An expression that gave nothing often gives an empty text.
			if (!text.trim()) return fail('the value is empty; to send an empty text, choose the type Text');
			return ok(typeof json === 'string' ? fromText(json) : json);
		case 'string':
			return ok(text);
		case 'number': {
			const number =
				typeof json === 'number' ? json : typeof json === 'string' && json.trim() ? Number(json) : NaN;
			if (!Number.isFinite(number)) return fail(`${shown(text)} is not a number`);
			return keepsDigits(json, number);
		}
		case 'boolean': {
			const word = text.trim().toLowerCase();
			return word === 'true' || word === 'false'
				? ok(word === 'true')
				: fail(`${shown(text)} is neither true nor false`);
		}
		case 'json': {
			const parsed = typeof json === 'string' ? parseJson(json) : json;
			if (parsed === undefined) return fail(`${shown(text)} is not valid JSON`);
			return keepsDigits(json, parsed);
		}
	}
}

/** A seed of another value makes another image. */
function keepsDigits(given: Json, value: Json): Result<Json, string> {
	const lost = typeof given === 'string' ? lostDigits(given) : undefined;
	return lost === undefined
		? ok(value)
		: fail(
				`${shown(lost)} is a number of which digits would be lost; the largest is ${Number.MAX_SAFE_INTEGER}`,
			);
}

function shown(text: string): string {
	return `"${excerpt(text, 60)}"`;
}

function toJson(value: unknown): Json | undefined {
	const text = jsonText(value);
	return text === undefined ? undefined : parseJson(text);
}

/**
 * A number or truth value written as text becomes one; anything else stays the text that it is. A number that
 * would not read the same again (leading zeros, more digits than a number holds) stays text too.
 */
function fromText(text: string): Json {
	const word = text.trim();
	if (word === 'true' || word === 'false') return word === 'true';
	if (/^-?(0|[1-9]\d*)(\.\d+)?$/.test(word)) {
		const number = Number(word);
		if (Number.isSafeInteger(number) || (word.includes('.') && word.length <= 16)) return number;
	}
	return text;
}

/**
 * Reads `prompt` as an operator pasted it, bare or as the whole body of a request (§4.1, rule 6). What is plainly
 * something else is named as what it is: the full export, the editor's own file, the parameter view (rules 2 to 4).
 * @param workflowId with which the body has to agree, where both name a workflow
 */
export function promptFromJson(value: unknown, workflowId?: string): Result<Prompt> {
	const read = readPrompt(value);
	const parsed = read.ok ? onlyOne(read.value) : undefined;
	if (!isJsonObject(parsed)) {
		const what = read.ok ? 'is not a JSON object' : `is not valid JSON${read.failure && `: ${read.failure}`}`;
		return fail(
			refuse(
				what,
				'Enter an object such as {"6": {"inputs": {"text": "a red fox"}}}: node id, then the inputs to change.',
			),
		);
	}
	if (jsonText(parsed) === undefined) {
		return fail(refuse('is nested too deeply to be sent', 'Remove what is nested.'));
	}
	const wrong = recogniseWholeFile(parsed);
	if (wrong) return fail(wrong);
	// JSON leaves out what an expression did not give, so that it is looked for in what was given.
	let given = typeof value === 'string' ? parsed : onlyOne(value);
	let nodes = parsed;
	while (isRequestBody(nodes)) {
		const inner = readBody(nodes, workflowId);
		if (!inner.ok) return inner;
		nodes = inner.value;
		given = isJsonObject(given) ? given.prompt : given;
	}
	const loss = refuseLoss(value, given);
	return loss ? fail(loss) : promptOfNodes(nodes);
}

/** Nodes may be called "prompt" and "workflow_id": their inputs tell them from the body of a request. */
function isRequestBody({ prompt, workflow_id: workflowId }: JsonObject): boolean {
	if (prompt === undefined) return false;
	if (workflowId !== undefined) return !isJsonObject(workflowId);
	return holdsChanges(prompt) || (isJsonObject(prompt) && isRequestBody(prompt));
}

/** @returns what stands under "prompt" */
function readBody(body: JsonObject, workflowId: string | undefined): Result<JsonObject> {
	const { prompt, workflow_id: id, ...others } = body;
	const [other] = Object.keys(others);
	if (other !== undefined) {
		return fail(
			refuse(
				`is a request body that holds "${excerpt(other, 60)}"`,
				'A body holds "workflow_id" and "prompt"; remove the rest.',
			),
		);
	}
	const said = typeof id === 'string' ? id.trim() : (jsonText(id) ?? '');
	if (workflowId !== undefined && id !== undefined && said !== workflowId) {
		return fail(
			refuse(
				`is a request body for the workflow "${excerpt(said, 60)}", but "Workflow ID" is "${excerpt(workflowId, 60)}"`,
				'Copy the body of this workflow, or correct "Workflow ID".',
			),
		);
	}
	if (!isJsonObject(prompt)) {
		return fail(
			refuse(
				'is a request body of which "prompt" is not an object',
				'Copy the whole body from the trial-run page, or enter only the inputs to change.',
			),
		);
	}
	const wrong = recogniseWholeFile(prompt);
	return wrong ? fail(wrong) : ok(prompt);
}

function readPrompt(value: unknown): Result<Json, string> {
	if (typeof value === 'string') return parsePasted(value.trim() || '{}');
	const json = toJson(value);
	return json === undefined ? fail('') : ok(json);
}

/** What would be sent without a word as something else than was entered. */
function refuseLoss(value: unknown, nodes: unknown): Failure | undefined {
	const missing = missingIn(nodes);
	if (missing !== undefined) {
		return refuse(
			`has no value for ${missing}`,
			'Check the expression that should give it, or remove it to keep the value with which the workflow was hosted.',
		);
	}
	const lost = lostDigits(typeof value === 'string' ? value : (jsonText(value) ?? ''));
	if (lost === undefined) return undefined;
	return refuse(
		`holds the number ${excerpt(lost, 40)}, of which digits would be lost`,
		`Enter a number up to ${Number.MAX_SAFE_INTEGER}.`,
	);
}

function promptOfNodes(nodes: JsonObject): Result<Prompt> {
	let prompt: Prompt = {};
	for (const [nodeId, node] of Object.entries(nodes)) {
		const id = excerpt(nodeId, 60);
		if (!isJsonObject(node) || !isJsonObject(node.inputs)) {
			return fail(refuse(`has no "inputs" object for node "${id}"`, `Write {"${id}": {"inputs": {…}}}.`));
		}
		const wrong = Object.keys(node).find((key) => key !== 'inputs');
		if (wrong !== undefined) {
			return fail(
				refuse(
					`holds "${excerpt(wrong, 60)}" at node "${id}"`,
					'A node takes "inputs" only; remove the rest.',
				),
			);
		}
		const link = Object.entries(node.inputs).find(([, input]) => isLink(input, isNeverANode));
		if (link) {
			return fail(
				refuse(
					`sets "${excerpt(link[0], 60)}" of node "${id}" to a link to another node`,
					'Only values can be changed, not how nodes are linked; remove this input.',
				),
			);
		}
		prompt = { ...prompt, [nodeId]: { inputs: node.inputs } };
	}
	return ok(prompt);
}

/**
 * In place of what an expression did not give, the hosted value would be paid for.
 * @returns how the place without a value is called
 */
function missingIn(value: unknown): string | undefined {
	for (const [nodeId, node] of membersOf(value)) {
		const id = excerpt(nodeId, 60);
		if (node === undefined) return `node "${id}"`;
		const inputs = membersOf(node).find(([key]) => key === 'inputs')?.[1];
		const missing = membersOf(inputs).find(([, input]) => (jsonText(input) ?? 'null') === 'null');
		if (missing) return `"${excerpt(missing[0], 60)}" of node "${id}"`;
	}
	return undefined;
}

function membersOf(value: unknown): Array<[string, unknown]> {
	return typeof value === 'object' && value !== null ? Object.entries(value) : [];
}

function refuse(what: string, advice: string): Failure {
	return badInput(`"${PROMPT}" ${what}`, `${advice} Nothing was submitted for this item.`);
}

const ONLY_CHANGES = 'Enter only the inputs to change, such as {"6": {"inputs": {"text": "a red fox"}}}.';

/** What was pasted in place of changes; `undefined` where they may be changes. */
function recogniseWholeFile(object: JsonObject): Failure | undefined {
	const view = readParameterView(object);
	if ('spec' in object || (view.ok && view.value.size > 0)) {
		return refuse(
			"is the platform's parameter view",
			`${ONLY_CHANGES} The view tells which inputs there are and what they accept.`,
		);
	}
	if (readDefinition(object).ok) {
		return refuse(
			'is a full workflow export',
			`${ONLY_CHANGES} The workflow itself is known to the platform by its id.`,
		);
	}
	if (holdsEditorFile(object)) {
		return refuse(
			"is a workflow file of the engine's editor, not a list of changes",
			`${ONLY_CHANGES} A workflow is hosted in the platform's console, from an export in API format.`,
		);
	}
	return undefined;
}

function holdsChanges(value: Json | undefined): boolean {
	if (!isJsonObject(value) || isJsonObject(value.inputs)) return false;
	return Object.values(value).some((node) => isJsonObject(node) && isJsonObject(node.inputs));
}
