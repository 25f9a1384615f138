import { badInput, fail, ok, type Result } from '../shared/failure';
import { excerpt, isJsonObject, jsonText, type Json } from '../shared/json';
import type { Prompt } from './task.api';
import {
	isEmptyDefinition,
	isLink,
	readDefinition,
	type DefinitionInput,
	type DefinitionNode,
	type WorkflowDefinition,
} from './task.definition';
import { withInput } from './task.overrides';
import { describeSpec, readParameterView, type ParameterSpec, type ParameterView } from './task.spec';

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
 * @returns the prompt with each value in the type that the definition has for it
 */
export function checkOverrides(prompt: Prompt, known: WorkflowKnowledge): Result<Prompt> {
	const complaints: string[] = [];
	let checked: Prompt = {};
	for (const [nodeId, { inputs }] of Object.entries(prompt)) {
		for (const [parameter, value] of Object.entries(inputs)) {
			const result = checkOne(nodeId, parameter, value, known);
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
): Result<Json, string> {
	const found = findPlace(nodeId, parameter, known);
	return found.ok ? checkValue(found.value.place, value, found.value.input, found.value.spec) : found;
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
 * @returns a sentence, or nothing where the view says nothing of them
 */
export function acceptedFor(prompt: Prompt, known: WorkflowKnowledge, said: string): string {
	const sent = Object.entries(prompt).flatMap(([nodeId, { inputs }]) =>
		Object.entries(inputs).flatMap(([parameter, value]) => {
			const accepted = describeSpec(known.view.get(nodeId)?.get(parameter));
			if (!accepted) return [];
			const node = known.definition?.nodes.find((one) => one.nodeId === nodeId);
			const place = node ? placeOf(node, parameter) : `${parameter} of node ${nodeId}`;
			return [
				{
					parameter,
					text: `${place} takes a value ${accepted} (sent: ${excerpt(JSON.stringify(value), 60)})`,
				},
			];
		}),
	);
	const named = sent.filter(({ parameter }) => said.includes(parameter));
	const texts = (named.length > 0 ? named : sent).slice(0, ACCEPTED_SHOWN).map(({ text }) => text);
	return texts.length > 0 ? `By the parameter view: ${texts.join('; ')}.` : '';
}

/** How an input is called towards the operator: title, node id and parameter. */
export function placeOf(node: DefinitionNode, parameter: string): string {
	return `${node.title} (node ${node.nodeId}) · ${parameter}`;
}

function checkValue(
	place: string,
	value: Json,
	input: DefinitionInput | undefined,
	spec: ParameterSpec | undefined,
): Result<Json, string> {
	const refuse = (wanted: string): Result<Json, string> => {
		const accepted = describeSpec(spec);
		const text = typeof value === 'string' ? `"${value}"` : jsonText(value);
		const given = excerpt(text ?? 'nested too deeply', 80);
		return fail(`${place} is ${given}, but has to be ${[wanted, accepted].filter(Boolean).join(', ')}`);
	};
	if (isLink(value)) return fail(`${place} is set to a link; only values can be set`);
	if (spec?.list && spec.list.length > 0) {
		const listed =
			spec.list.find((one) => one === value) ?? spec.list.find((one) => String(one) === textOf(value));
		return listed === undefined ? refuse('') : ok(listed);
	}
	const typed = convertLike(value, input?.value ?? spec?.default, spec);
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

/** Brings a value to the type of the one in the definition, where that loses nothing. */
function convertLike(
	value: Json,
	model: Json | undefined,
	spec: ParameterSpec | undefined,
): Result<Json, string> {
	if (typeof model === 'number' || (hasLimits(spec) && isOpen(model))) {
		const number = typeof value === 'string' && value.trim() ? Number(value) : value;
		if (typeof number !== 'number' || !Number.isFinite(number)) return fail('a number');
		return typeof value === 'string' && losesDigits(value.trim(), number)
			? fail(`a number up to ${Number.MAX_SAFE_INTEGER}, beyond which digits are lost`)
			: ok(number);
	}
	if (typeof model === 'boolean') {
		const word = typeof value === 'string' ? value.trim().toLowerCase() : value;
		if (word === true || word === 'true') return ok(true);
		return word === false || word === 'false' ? ok(false) : fail('true or false');
	}
	if (typeof model === 'string') {
		if (typeof value === 'string') return ok(value);
		return typeof value === 'number' || typeof value === 'boolean' ? ok(String(value)) : fail('a text');
	}
	if (Array.isArray(model)) return Array.isArray(value) ? ok(value) : fail('a list');
	if (isJsonObject(model)) return isJsonObject(value) ? ok(value) : fail('an object');
	return ok(value);
}

function hasLimits(spec: ParameterSpec | undefined): boolean {
	return spec?.min !== undefined || spec?.max !== undefined;
}

/** Only numbers have limits (§2.2), so that they tell the type where the export holds none, or a template. */
function isOpen(model: Json | undefined): boolean {
	return model === undefined || model === null || typeof model === 'string';
}

/** A seed of another value makes another picture, so the digits that are sent have to be those that were given. */
function losesDigits(text: string, number: number): boolean {
	return /^[+-]?\d+$/.test(text) && BigInt(text.replace(/^\+/, '')).toString() !== String(number);
}
