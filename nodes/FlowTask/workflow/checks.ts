import { badInput, fail, failInput, ok, type Failure, type Result } from '../../shared/errors/failure';
import { excerpt, type Json } from '../../shared/text/json';
import {
	isLink,
	type DefinitionInput,
	type DefinitionNode,
	type WorkflowKnowledge,
} from '../../shared/workflow/definition';
import { describeSpec, type ParameterSpec } from '../../shared/workflow/parameterView';
import { specOf } from './fileNodes';
import { graphOf, holderOf } from '../graph/links';
import { inputName, inputsIn, NOT_SUBMITTED, withInputs, type Prompt, type PromptInput } from './prompt';
import { promptsOf } from './inputRanking';
import { convertTo, kindOf, showValue, type Kind } from './values';

/** An error lists at most this many complaints, and says how many more there are. */
const COMPLAINTS_SHOWN = 20;

const REFRESH =
	"If the export is that of another workflow, paste that of this one into 'Workflow Definition', or save the workflow again with it; after a newer export, 'Refresh Input List' in the menu (⋮) of 'Inputs to Change' removes inputs that are gone. ";

/**
 * Checks overrides against the workflow before anything is spent: nodes, parameters, links, types, lists and ranges
 * (§2.2, §4.1). One error lists everything that is wrong.
 * @param isSeed whether an input is a number even if the export has text for it
 * @returns the prompt, with each value converted to the type of its input
 */
export function checkOverrides(
	prompt: Prompt,
	known: WorkflowKnowledge,
	isSeed: (nodeId: string, parameter: string) => boolean = () => false,
): Result<Prompt> {
	const complaints: string[] = [];
	let isAnyGone = false;
	const checked: PromptInput[] = [];
	for (const { nodeId, parameter, value } of inputsIn(prompt)) {
		const found = findInput(nodeId, parameter, known);
		isAnyGone ||= !found.ok;
		const result = found.ok ? checkOne(found.value, value, known, isSeed(nodeId, parameter)) : found;
		if (result.ok) checked.push({ nodeId, parameter, value: result.value });
		else complaints.push(result.failure);
	}
	if (complaints.length === 0) return ok(withInputs({}, checked));
	const more = complaints.length - COMPLAINTS_SHOWN;
	const list = complaints.slice(0, COMPLAINTS_SHOWN).join('; ') + (more > 0 ? `; and ${more} more` : '');
	const count = complaints.length === 1 ? 'One input does' : `${complaints.length} inputs do`;
	return failInput(
		`${count} not fit the workflow: ${list}`,
		`Correct or remove what does not fit. ${isAnyGone ? REFRESH : ''}${NOT_SUBMITTED}`,
	);
}

function checkOne(
	{ label, input, spec }: FoundInput,
	value: Json,
	known: WorkflowKnowledge,
	isSeed: boolean,
): Result<Json, string> {
	// A pair of numbers is a value if the export has an array there too, or if no node has the first number as its ID.
	const isNode = (id: string): boolean =>
		!Array.isArray(input?.value) && (known.definition === undefined || nodeOf(known, id) !== undefined);
	if (isLink(value, isNode)) return fail(`${label} is set to a link to another node; only values can be set`);
	const checked = checkValue(value, kindOf(input?.value ?? spec?.default, spec, isSeed), spec);
	if (checked.ok) return checked;
	const wanted = [checked.failure, describeSpec(spec)].filter(Boolean).join(', ');
	return fail(`${label} is ${showValue(value)}, but must be ${wanted}`);
}

/** @returns the converted value, or what it must be; the spec's own limits are added by the caller */
function checkValue(
	value: Json,
	kind: Kind,
	{ list = [], min = -Infinity, max = Infinity }: ParameterSpec = {},
): Result<Json, string> {
	if (list.length > 0) {
		const text = value === null || typeof value === 'object' ? undefined : String(value);
		const listed = list.find((one) => one === value) ?? list.find((one) => String(one) === text);
		return listed === undefined ? fail('') : ok(listed);
	}
	const typed = convertTo(kind, value);
	if (!typed.ok || typeof typed.value !== 'number') return typed;
	const { value: number } = typed;
	if (number >= min && number <= max) return typed;
	const passed = number < min ? min : max;
	// The message does not show limits with that many digits.
	const isLong = Math.min(Math.abs(number), Math.abs(passed)) > Number.MAX_SAFE_INTEGER;
	return fail(isLong ? 'a number with fewer digits' : 'a number');
}

interface FoundInput {
	/** The name in messages. */
	readonly label: string;
	readonly input: DefinitionInput | undefined;
	readonly spec: ParameterSpec | undefined;
}

/** Finds an input that can be set. Without the definition, any input may exist. */
function findInput(nodeId: string, parameter: string, known: WorkflowKnowledge): Result<FoundInput, string> {
	const spec = specOf(known.view, nodeId, parameter);
	const label = labelOf(nodeId, parameter, known);
	if (!known.definition) return ok({ label, input: undefined, spec });
	const node = nodeOf(known, nodeId);
	if (!node) {
		const id = excerpt(nodeId, 40);
		return fail(`there is no node ${id} in the workflow definition, so its "${parameter}" cannot be set`);
	}
	const input = node.inputs.find(({ name }) => name === parameter);
	if (input?.isLink)
		return fail(`${label} comes from another node, so it cannot be set${heldBy(input, known)}`);
	if (input || spec) return ok({ label, input, spec });
	const names = node.inputs.filter(({ isLink: linked }) => !linked).map(({ name }) => name);
	const has = names.length > 0 ? `it has ${names.slice(0, 12).join(', ')}` : 'it has none that can be set';
	return fail(`${label} is not an input of that node (${has})`);
}

/** Ends a sentence about a linked input with the input to set instead, if there is one. */
function heldBy(input: DefinitionInput, known: WorkflowKnowledge): string {
	const holder = known.definition && holderOf(graphOf(known.definition), input);
	return holder ? `; set ${labelOf(holder.node.nodeId, holder.input.name, known)} instead` : '';
}

function nodeOf({ definition }: WorkflowKnowledge, nodeId: string): DefinitionNode | undefined {
	return definition && graphOf(definition).get(nodeId);
}

/** The name of an input in messages, with the node's title if that is known. */
function labelOf(nodeId: string, parameter: string, known: WorkflowKnowledge): string {
	const node = nodeOf(known, nodeId);
	return node ? `${node.title} (node ${nodeId}) · ${parameter}` : inputName(nodeId, parameter);
}

/** Checks only whether the inputs for images exist, because their values are known only after the uploads. */
export function checkImageInputs(
	images: ReadonlyArray<{ readonly nodeId: string; readonly parameter: string }>,
	known: WorkflowKnowledge,
): Result<undefined> {
	for (const { nodeId, parameter } of images) {
		const found = findInput(nodeId, parameter, known);
		if (found.ok) continue;
		return failInput(
			`'Input Images' does not fit the workflow: ${found.failure}`,
			'Correct the node ID or the parameter of the image. Nothing was uploaded or submitted for this item.',
		);
	}
	return ok(undefined);
}

export function emptyTexts(prompt: Prompt): PromptInput[] {
	return inputsIn(prompt).filter(({ value }) => typeof value === 'string' && value.trim() === '');
}

/** Refuses an empty prompt, because the image would be paid for and could show anything. */
export function refuseEmptyPrompts(prompt: Prompt, known: WorkflowKnowledge): Failure | undefined {
	const prompts = known.definition ? promptsOf(known.definition) : [];
	const names = emptyTexts(prompt)
		.filter(({ nodeId, parameter }) =>
			prompts.some(({ node, input }) => node.nodeId === nodeId && input.name === parameter),
		)
		.map(({ nodeId, parameter }) => labelOf(nodeId, parameter, known));
	if (names.length === 0) return undefined;
	return badInput(
		`The prompt is empty: ${names.join('; ')}`,
		`Check the expression and the cell that it reads. To keep the hosted text for all items, remove this input from the node. ${NOT_SUBMITTED}`,
	);
}
