import type { INodePropertyOptions, ResourceMapperField } from 'n8n-workflow';

import { excerpt, isJsonObject, jsonText, type Json } from '../../shared/text/json';
import { isLongInteger, type WorkflowDefinition } from '../../shared/workflow/definition';
import { describeSpec, type ParameterView, type Scalar } from '../../shared/workflow/parameterView';
import { isImageInput, specOf } from './fileNodes';
import { findSeeds } from '../graph/foundSeeds';
import type { GraphInput } from '../graph/links';
import { isSeedName } from '../graph/names';
import { promptChoice, rankInputs, type RankedInput } from './inputRanking';

/** A row that the form offers for one value input of the workflow. */
export type FormField = Pick<ResourceMapperField, 'id' | 'displayName' | 'type' | 'options' | 'defaultValue'>;

const FIELD_TYPES = ['string', 'number', 'boolean', 'options', 'object', 'array'] as const;

/** The type if a row can have it; otherwise that of text. */
export function fieldType(type: unknown): (typeof FIELD_TYPES)[number] {
	return FIELD_TYPES.find((one) => one === type) ?? 'string';
}

/** With more rows than this, the editor becomes slow, and its menu of rows has no search. */
export const MOST_FIELDS = 300;

/** Longer defaults are left out, because n8n would store them in the workflow a second time. */
const LONGEST_DEFAULT_CHARS = 2_000;

/** Precedes the hosted value in a row's title. */
const HOSTED = ' – hosted: ';
const HOSTED_CHARS = 60;

/** Whether names can be encoded as an ID: empty ones cannot, nor can those with half of a surrogate pair. */
function hasFieldId(...names: string[]): boolean {
	return names.every((name) => name !== '' && name.isWellFormed());
}

/** Made of node ID and parameter, to stay the same in a newer export; both are encoded, so that n8n can parse it. */
export function fieldId(nodeId: string, parameter: string): string {
	return `${encodeURIComponent(nodeId.toWellFormed())}/${encodeURIComponent(parameter.toWellFormed())}`;
}

/** @returns `undefined` if the ID is not one of ours */
export function readFieldId(id: string): { readonly nodeId: string; readonly parameter: string } | undefined {
	const [node, parameter, ...rest] = id.split('/');
	if (!node || !parameter || rest.length > 0) return undefined;
	try {
		return { nodeId: decodeURIComponent(node), parameter: decodeURIComponent(parameter) };
	} catch {
		return undefined;
	}
}

/**
 * A field for each value input in the order of `rankInputs`; never for links, `class_type` or `_meta` (§4.1).
 * @returns up to `MOST_FIELDS`, and how many inputs are left out
 */
export function formFields(definition: WorkflowDefinition, view: ParameterView) {
	const ranked = rankInputs(definition).filter(({ node, input }) => hasFieldId(node.nodeId, input.name));
	const filled = new Set(promptChoice(definition).filled.map(({ input }) => input));
	const groupOf = ({ node, rank }: RankedInput): string => `${rank} ${node.nodeId}`;
	const groups = Map.groupBy(ranked, groupOf);
	const shownIds = shortIds(ranked.map(({ node }) => node.nodeId));
	const { alsoFor } = findSeeds(definition);
	/** What an input is called in place of its own name; `undefined` if other inputs of its node could be called that. */
	const rankNameOf = (one: RankedInput): string | undefined => {
		const { node, input, rank } = one;
		const isShared = rank === 'seed' && alsoFor(node.nodeId, input.name) !== undefined;
		const isAlone = groups.get(groupOf(one))?.length === 1;
		if (!isAlone || isShared || isSeedName(input.name)) return undefined;
		return filled.has(input) ? 'Prompt' : RANK_NAMES[rank];
	};
	return {
		fields: ranked
			.slice(0, MOST_FIELDS)
			.map((one) => fieldOf(one, view, rankNameOf(one), shownIds.get(one.node.nodeId))),
		leftOut: Math.max(0, ranked.length - MOST_FIELDS),
	};
}

export const NEGATIVE_TITLE = 'Negative prompt';
/** What an input is called in place of its own name, which may not say what it is for. */
const RANK_NAMES: Partial<Record<RankedInput['rank'], string>> = {
	negative: NEGATIVE_TITLE,
	seed: 'Seed',
};

/** What a row of an image accepts. */
const IMAGE_VALUES = 'file field, link or image ID';

/** The panel cuts off long titles, so what distinguishes rows comes first. */
function fieldOf(
	{ node, input }: GraphInput,
	view: ParameterView,
	rankName: string | undefined,
	shownId = node.nodeId,
): FormField {
	const { name, value } = input;
	const spec = specOf(view, node.nodeId, name);
	// The export's own value is always an option: n8n refuses to publish a workflow with a value that is not listed.
	const options = spec?.list?.length ? fieldOptions([...spec.list, value]) : [];
	const accepted = isImageInput(node, input) ? IMAGE_VALUES : describeSpec(spec);
	const range = options.length === 0 ? accepted : '';
	const type = options.length > 0 ? 'options' : typeOf(value);
	const defaultValue = defaultOf(type, value);
	// A structure is readable only in the row itself.
	const isShown = typeof value === 'object' && defaultValue !== undefined;
	const origin = rankName === undefined ? node.title : `${node.title} · ${name}`;
	const label = `${rankName ?? name} (${shownId})${range && `, ${range}`} · ${origin}`;
	return {
		id: fieldId(node.nodeId, name),
		displayName: `${label}${isShown ? '' : hostedNote(value)}`,
		type,
		...(options.length > 0 && { options }),
		...(defaultValue !== undefined && { defaultValue }),
	};
}

/** Shortens long IDs, which nodes of subgraphs and other tools have, to ends that still differ. */
function shortIds(nodeIds: readonly string[]): ReadonlyMap<string, string> {
	const shown = new Map<string, string>();
	let left = [...new Set(nodeIds)];
	for (let atEnd = 4; left.length > 0; atEnd++) {
		const shorten = (id: string): string => {
			const letters = [...id];
			const isShort = letters.length <= Math.max(8, atEnd + 3);
			return isShort ? id : `${letters.slice(0, 2).join('')}…${letters.slice(-atEnd).join('')}`;
		};
		const groups = Map.groupBy(left, shorten);
		for (const [short, [only = '', ...others]] of groups) if (others.length === 0) shown.set(only, short);
		left = left.filter((id) => !shown.has(id));
	}
	return shown;
}

/** Ends a row's title with the hosted value, because the menu of rows shows nothing but titles. */
function hostedNote(value: Json): string {
	if (value === null) return '';
	if (typeof value === 'string' && !value.trim()) return `${HOSTED}empty`;
	if (typeof value === 'object') return `${HOSTED}a list or an object`;
	return HOSTED + excerpt(String(value).slice(0, 4 * HOSTED_CHARS), HOSTED_CHARS);
}

/** A row's title without the hosted value. */
export function shortTitle(displayName: string): string {
	return displayName.split(HOSTED, 1)[0] ?? displayName;
}

/** An option for each of the values that can be one. */
export function fieldOptions(values: ReadonlyArray<Json | undefined>): INodePropertyOptions[] {
	const scalars = values.filter(
		(value) => value !== undefined && value !== null && typeof value !== 'object',
	);
	return [...new Set(scalars)].map((value) => ({ name: String(value), value }));
}

/** None for text (n8n would append a dragged field to it), numbers that n8n rounds, `null` and long values. */
function defaultOf(type: FormField['type'], value: Json): Scalar | undefined {
	if (type === 'string' || isLongInteger(value) || value === null) return undefined;
	if (typeof value !== 'object') return value;
	const text = jsonText(value);
	return text !== undefined && text.length <= LONGEST_DEFAULT_CHARS ? text : undefined;
}

function typeOf(value: Json): FormField['type'] {
	if (typeof value === 'number' || isLongInteger(value)) return 'number';
	if (typeof value === 'boolean') return 'boolean';
	if (Array.isArray(value)) return 'array';
	return isJsonObject(value) ? 'object' : 'string';
}
