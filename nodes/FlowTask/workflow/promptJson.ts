import { failInput, ok, type Result } from '../../shared/errors/failure';
import { lostDigits, onlyOne } from '../../shared/form/pastedJson';
import { excerpt, isJsonObject, jsonText, type JsonObject } from '../../shared/text/json';
import { holdsEditorFile, readDefinition } from '../../shared/workflow/definition';
import { readParameterView } from '../../shared/workflow/parameterView';
import { membersOf, readPastedObject } from '../../shared/workflow/pasted';
import { NOT_SUBMITTED, toJson, type Prompt } from './prompt';

const FIELD = 'Prompt (JSON)';

/**
 * Reads a pasted `prompt`, bare or as a whole request body (§4.1, rule 6). The full export, the editor's own file and
 * the parameter view (rules 2 to 4) are refused, each with a message of its own.
 * @param workflowId must match the ID in the body, if the body has one
 */
export function promptFromJson(value: unknown, workflowId: string): Result<Prompt> {
	const isText = typeof value === 'string';
	const read = readPastedObject(
		FIELD,
		isText ? value.trim() || '{}' : toJson(value),
		`Enter an object such as {"6": {"inputs": {"text": "a red fox"}}}: node ID, then the inputs to change. ${NOT_SUBMITTED}`,
	);
	if (!read.ok) return read;
	let nodes = read.value;
	const changes = refuseWholeFile(nodes);
	if (!changes.ok) return changes;
	// JSON drops `undefined`, so missing values are looked for in the value itself.
	let given = isText ? nodes : onlyOne(value);
	if (isRequestBody(nodes)) {
		const inner = readBody(nodes, workflowId);
		if (!inner.ok) return inner;
		nodes = inner.value;
		given = isJsonObject(given) ? given.prompt : given;
	}
	const whole = refuseLoss(isText ? value : (jsonText(value) ?? ''), given);
	return whole.ok ? readNodes(nodes) : whole;
}

/** Whether an object is a request body. A node may also be called "prompt" or "workflow_id", but it has inputs. */
function isRequestBody({ prompt, workflow_id: workflowId }: JsonObject): boolean {
	if (prompt === undefined) return false;
	if (workflowId !== undefined) return !isJsonObject(workflowId);
	if (!isJsonObject(prompt) || isJsonObject(prompt.inputs)) return false;
	return Object.values(prompt).some((node) => isJsonObject(node) && isJsonObject(node.inputs));
}

function readBody(body: JsonObject, workflowId: string): Result<JsonObject> {
	const { prompt, workflow_id: id, ...others } = body;
	const [other] = Object.keys(others);
	if (other !== undefined) {
		return refuse(
			`is a request body that contains "${excerpt(other, 60)}"`,
			'A body may contain only "workflow_id" and "prompt"; remove the rest.',
		);
	}
	const named = typeof id === 'string' ? id.trim() : (jsonText(id) ?? '');
	if (id !== undefined && named !== workflowId) {
		return refuse(
			`is a request body for the workflow "${excerpt(named, 60)}", but 'Workflow' is "${excerpt(workflowId, 60)}"`,
			"Copy the body of this workflow, or correct 'Workflow'.",
		);
	}
	if (isJsonObject(prompt)) return refuseWholeFile(prompt);
	return refuse(
		'is a request body whose "prompt" is not an object',
		'Copy the whole body from the trial-run page, or enter only the inputs to change.',
	);
}

/** Refuses values that would not be sent as entered. */
function refuseLoss(source: string, nodes: unknown): Result<undefined> {
	const missing = missingIn(nodes);
	if (missing !== undefined) {
		return refuse(
			`has no value for ${missing}`,
			'Check its expression, or remove it to keep the hosted value.',
		);
	}
	const lost = lostDigits(source);
	if (lost === undefined) return ok(undefined);
	return refuse(
		`contains the number ${excerpt(lost, 40)}, which would lose digits`,
		`Enter a number up to ${Number.MAX_SAFE_INTEGER}.`,
	);
}

function readNodes(nodes: JsonObject): Result<Prompt> {
	const prompt: Array<[string, { inputs: JsonObject }]> = [];
	for (const [nodeId, node] of Object.entries(nodes)) {
		const id = excerpt(nodeId, 60);
		if (!isJsonObject(node) || !isJsonObject(node.inputs)) {
			return refuse(`has no "inputs" object for node "${id}"`, `Write {"${id}": {"inputs": {…}}}.`);
		}
		const { inputs, ...others } = node;
		const [other] = Object.keys(others);
		if (other !== undefined) {
			return refuse(
				`contains "${excerpt(other, 60)}" at node "${id}"`,
				'A node may contain only "inputs"; remove the rest.',
			);
		}
		prompt.push([nodeId, { inputs }]);
	}
	return ok(Object.fromEntries(prompt));
}

/** The first node or input whose expression returned nothing, so that the hosted value would be used and paid for. */
function missingIn(nodes: unknown): string | undefined {
	for (const [nodeId, node] of membersOf(nodes)) {
		const id = excerpt(nodeId, 60);
		if (node === undefined) return `node "${id}"`;
		const inputs = membersOf(node).find(([key]) => key === 'inputs')?.[1];
		const missing = membersOf(inputs).find(([, input]) => (jsonText(input) ?? 'null') === 'null');
		if (missing) return `"${excerpt(missing[0], 60)}" of node "${id}"`;
	}
	return undefined;
}

const ONLY_CHANGES = 'Enter only the inputs to change, such as {"6": {"inputs": {"text": "a red fox"}}}.';

function refuseWholeFile(object: JsonObject): Result<JsonObject> {
	const view = readParameterView(object);
	if ('spec' in object || (view.ok && view.value.size > 0)) {
		return refuse(
			"is the platform's parameter view",
			`${ONLY_CHANGES} The view lists the inputs and what they accept.`,
		);
	}
	if (readDefinition(object).ok) {
		return refuse(
			'is a full workflow export',
			`${ONLY_CHANGES} The platform knows the workflow itself by its ID.`,
		);
	}
	if (holdsEditorFile(object)) {
		return refuse(
			"is a workflow file of the engine's editor, not a list of changes",
			`${ONLY_CHANGES} A workflow is hosted in the platform's console, from an export in API format.`,
		);
	}
	return ok(object);
}

function refuse(what: string, advice: string): Result<never> {
	return failInput(`'${FIELD}' ${what}`, `${advice} ${NOT_SUBMITTED}`);
}
