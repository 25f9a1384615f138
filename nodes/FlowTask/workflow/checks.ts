import { badInput, fail, ok, type Result } from '../../shared/errors/failure';
import { excerpt, isJsonObject, jsonText, type Json } from '../../shared/text/json';
import {
	isEmptyDefinition,
	isLink,
	isLongInteger,
	readDefinition,
	type DefinitionInput,
	type DefinitionNode,
	type WorkflowDefinition,
} from './definition';
import { withInput, type Prompt } from './prompt';
import { describeSpec, readParameterView, type ParameterSpec, type ParameterView } from './parameterView';

/** What is known of a workflow before anything is sent: either may be missing. */
export interface WorkflowKnowledge {
	readonly definition: WorkflowDefinition | undefined;
	readonly view: ParameterView;
}

/** Reads what the operator pasted about the workflow; nothing pasted is nothing known. */
export function readKnowledge(definitionSource: unknown, viewSource: unknown): Result<WorkflowKnowledge> {
	const view = readParameterView(viewSource);
	if (!view.ok) return view;
	if (isEmptyDefinition(definitionSource)) return ok({ definition: undefined, view: view.value });
	const definition = readDefinition(definitionSource);
	return definition.ok ? ok({ definition: definition.value, view: view.value }) : definition;
}

/** Complaints shown in one error; the rest is counted. */
const COMPLAINTS_SHOWN = 20;

/**
 * Checks overrides against the workflow before anything is spent: nodes and parameters that exist, no links,
 * types, lists and ranges (§2.2, §4.1). All that is wrong is told in one error.
 *
 * @param isSeed tells inputs that are numbers even where the export holds a text, which stands for one
 * @returns the prompt with each value in the type that the definition has for it
 */
export function checkOverrides(
	prompt: Prompt,
	known: WorkflowKnowledge,
	isSeed: (nodeId: string, parameter: string) => boolean = () => false,
): Result<Prompt> {
	const complaints: string[] = [];
	let checked: Prompt = {};
	for (const [nodeId, { inputs }] of Object.entries(prompt)) {
		for (const [parameter, value] of Object.entries(inputs)) {
			const result = checkOne(nodeId, parameter, value, known, isSeed(nodeId, parameter));
			if (result.ok) checked = withInput(checked, nodeId, parameter, result.value);
			else complaints.push(result.failure);
		}
	}
	if (complaints.length === 0) return ok(checked);
	const more = complaints.length - COMPLAINTS_SHOWN;
	const list = complaints.slice(0, COMPLAINTS_SHOWN).join('; ') + (more > 0 ? `; and ${more} more` : '');
	const count = complaints.length === 1 ? 'One input does' : `${complaints.length} inputs do`;
	return fail(
		badInput(
			`${count} not fit the workflow: ${list}`,
			'Correct this in the node; nothing was submitted for this item.',
		),
	);
}

function checkOne(
	nodeId: string,
	parameter: string,
	value: Json,
	known: WorkflowKnowledge,
	isSeed: boolean,
): Result<Json, string> {
	const found = findPlace(nodeId, parameter, known);
	if (!found.ok) return found;
	const { place, input, spec } = found.value;
	return isLinkTo(known.definition, value, input)
		? fail(`${place} is set to a link; only values can be set`)
		: checkValue(place, value, kindOf(input?.value ?? spec?.default, spec, isSeed), spec);
}

/** A pair of numbers is a value where the export holds a list too, or where its first is no node. */
function isLinkTo(
	definition: WorkflowDefinition | undefined,
	value: Json,
	input: DefinitionInput | undefined,
): boolean {
	const isNode = (id: string): boolean =>
		!Array.isArray(input?.value) && (definition?.nodes.some(({ nodeId }) => nodeId === id) ?? true);
	return isLink(value, isNode);
}

interface Place {
	readonly place: string;
	readonly input: DefinitionInput | undefined;
	readonly spec: ParameterSpec | undefined;
}

/** Whether there is such an input, and a value may be set for it, as far as the workflow is known. */
function findPlace(nodeId: string, parameter: string, known: WorkflowKnowledge): Result<Place, string> {
	const spec = known.view.get(nodeId)?.get(parameter);
	if (!known.definition) return ok({ place: `"${parameter}" of node ${nodeId}`, input: undefined, spec });
	const node = known.definition.nodes.find((one) => one.nodeId === nodeId);
	if (!node) return fail(`there is no node ${excerpt(nodeId, 40)} in the workflow definition`);
	const input = node.inputs.find(({ name }) => name === parameter);
	const place = placeOf(node, parameter);
	if (!input && !spec) {
		const names = node.inputs.filter(({ isLink: linked }) => !linked).map(({ name }) => name);
		const has = names.length > 0 ? `it has ${names.slice(0, 12).join(', ')}` : 'it has none that can be set';
		return fail(`${place} is not an input of that node (${has})`);
	}
	return input?.isLink
		? fail(`${place} comes from another node, so it cannot be set`)
		: ok({ place, input, spec });
}

/** Checks where images go before they are uploaded; what they become there is known to the platform only. */
export function checkImagePlaces(
	images: ReadonlyArray<{ readonly nodeId: string; readonly parameter: string }>,
	known: WorkflowKnowledge,
): Result<undefined> {
	for (const { nodeId, parameter } of images) {
		const found = findPlace(nodeId, parameter, known);
		if (!found.ok) {
			return fail(
				badInput(
					`"Input Images" does not fit the workflow: ${found.failure}`,
					'Correct the node ID or the parameter of the image. Nothing was uploaded or submitted for this item.',
				),
			);
		}
	}
	return ok(undefined);
}

/** Inputs that one piece of advice names. */
const ACCEPTED_SHOWN = 8;

/**
 * What the parameter view says of the inputs that the platform may have refused (§7.3): those that its words
 * name, else all that were sent.
 * @returns takes the platform's words, and gives a sentence, or nothing where the view says nothing of the inputs. It
 *   keeps nothing of the workflow, of which each of many items may have one of its own
 */
export function acceptedFor(prompt: Prompt, known: WorkflowKnowledge): (said: string) => string {
	const sent = acceptedInputs(prompt, known);
	return (said) => {
		const named = sent.filter(({ parameter }) => said.includes(parameter));
		const texts = (named.length > 0 ? named : sent).slice(0, ACCEPTED_SHOWN).map(({ text }) => text);
		return texts.length > 0 ? `By the parameter view: ${texts.join('; ')}.` : '';
	};
}

function acceptedInputs(
	prompt: Prompt,
	known: WorkflowKnowledge,
): Array<{ readonly parameter: string; readonly text: string }> {
	return Object.entries(prompt).flatMap(([nodeId, { inputs }]) =>
		Object.entries(inputs).flatMap(([parameter, value]) => {
			const accepted = describeSpec(known.view.get(nodeId)?.get(parameter));
			if (!accepted) return [];
			const node = known.definition?.nodes.find((one) => one.nodeId === nodeId);
			const place = node ? placeOf(node, parameter) : `${parameter} of node ${nodeId}`;
			const given = excerpt(jsonText(value) ?? 'nested too deeply', 60);
			return [{ parameter, text: `${place} takes a value ${accepted} (sent: ${given})` }];
		}),
	);
}

/** How an input is called towards the operator: title, node id and parameter. */
export function placeOf(node: DefinitionNode, parameter: string): string {
	return `${node.title} (node ${node.nodeId}) · ${parameter}`;
}

function checkValue(
	place: string,
	value: Json,
	kind: Kind,
	spec: ParameterSpec | undefined,
): Result<Json, string> {
	const refuse = (wanted: string): Result<Json, string> => {
		const accepted = describeSpec(spec);
		const text = typeof value === 'string' ? `"${value}"` : jsonText(value);
		const given = excerpt(text ?? 'nested too deeply', 80);
		return fail(`${place} is ${given}, but must be ${[wanted, accepted].filter(Boolean).join(', ')}`);
	};
	if (spec?.list && spec.list.length > 0) {
		const listed =
			spec.list.find((one) => one === value) ?? spec.list.find((one) => String(one) === textOf(value));
		return listed === undefined ? refuse('') : ok(listed);
	}
	const typed = convertTo(kind, value);
	if (!typed.ok) return refuse(typed.failure);
	if (typeof typed.value === 'number') {
		if (spec?.min !== undefined && typed.value < spec.min) return refuse('a number');
		if (spec?.max !== undefined && typed.value > spec.max) return refuse('a number');
	}
	return typed;
}

function textOf(value: Json): string | undefined {
	return value === null || typeof value === 'object' ? undefined : String(value);
}

/** What an input takes. `loose` is a number where it reads as one, since the export only holds what stands for it. */
type Kind = 'number' | 'integer' | 'boolean' | 'text' | 'list' | 'object' | 'loose' | 'any';

/**
 * @param model the value in the export
 * @param isSeed whether it is a number wherever the export holds a text
 */
function kindOf(model: Json | undefined, spec: ParameterSpec | undefined, isSeed: boolean): Kind {
	// A template, or nothing, tells no type; the view may.
	const isOpen = model === undefined || model === null || typeof model === 'string';
	if (typeof model === 'number' || (isOpen && isNumeric(spec))) {
		return spec?.type === 'INT' ? 'integer' : 'number';
	}
	if (typeof model === 'boolean' || (isOpen && spec?.type === 'BOOLEAN')) return 'boolean';
	if (typeof model === 'string') return isSeed || isLongInteger(model) ? 'loose' : 'text';
	if (Array.isArray(model)) return 'list';
	if (isJsonObject(model)) return 'object';
	return spec?.type === 'STRING' ? 'text' : 'any';
}

/** Only numbers have limits (§2.2). */
function isNumeric(spec: ParameterSpec | undefined): boolean {
	return spec?.min !== undefined || spec?.max !== undefined || spec?.type === 'INT' || spec?.type === 'FLOAT';
}

/** Brings a value to what the input takes, where that loses nothing. */
function convertTo(kind: Kind, value: Json): Result<Json, string> {
	switch (kind) {
		case 'number':
			return convertToNumber(value);
		case 'integer': {
			const number = convertToNumber(value);
			return number.ok && !Number.isInteger(number.value) ? fail('a whole number') : number;
		}
		case 'loose':
			return typeof value === 'string' && !readsAsNumber(value) ? ok(value) : convertToNumber(value);
		case 'boolean': {
			const word = typeof value === 'string' ? value.trim().toLowerCase() : value;
			if (word === true || word === 'true') return ok(true);
			return word === false || word === 'false' ? ok(false) : fail('true or false');
		}
		case 'text':
			if (typeof value === 'string') return ok(value);
			return typeof value === 'number' || typeof value === 'boolean' ? ok(String(value)) : fail('a text');
		case 'list':
			return Array.isArray(value) ? ok(value) : fail('a list');
		case 'object':
			return isJsonObject(value) ? ok(value) : fail('an object');
		case 'any':
			return ok(value);
	}
}

function readsAsNumber(text: string): boolean {
	return text.trim() !== '' && Number.isFinite(Number(text));
}

/** A seed of another value makes another image, so the digits that are sent must be those that were given. */
function convertToNumber(value: Json): Result<Json, string> {
	const number = typeof value === 'string' && readsAsNumber(value) ? Number(value) : value;
	if (typeof number !== 'number' || !Number.isFinite(number)) return fail('a number');
	const isLong = typeof value === 'string' && /^[+-]?\d+$/.test(value.trim());
	return isLong && !Number.isSafeInteger(number)
		? fail(`a number up to ${Number.MAX_SAFE_INTEGER}, beyond which digits are lost`)
		: ok(number);
}
