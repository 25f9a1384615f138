import { isJsonObject, jsonText, type Json } from '../../shared/text/json';
import {
	isLongInteger,
	type DefinitionInput,
	type DefinitionNode,
	type WorkflowDefinition,
} from './definition';
import { describeSpec, type ParameterSpec, type ParameterView, type Scalar } from './parameterView';

/** A row that the form offers for one value input of the workflow. */
export interface FormField {
	/** Encoded node id and parameter; survives a newer export, and n8n's own parsing of ids. */
	readonly id: string;
	readonly displayName: string;
	readonly type: 'string' | 'number' | 'boolean' | 'options' | 'object' | 'array';
	readonly options?: ReadonlyArray<{ readonly name: string; readonly value: string | number | boolean }>;
	readonly defaultValue?: string | number | boolean;
}

/** The editor becomes slow beyond this, and its menu has no search. */
export const MOST_FIELDS = 300;

/** A longer default would be stored with the workflow a second time. */
const LONGEST_DEFAULT_CHARS = 2_000;

/** What operators change most comes first where not all inputs can be listed. */
const COMMON_PARAMETERS = [
	'text',
	'prompt',
	'seed',
	'noise_seed',
	'image',
	'steps',
	'cfg',
	'width',
	'height',
	'batch_size',
	'denoise',
	'sampler_name',
	'scheduler',
	'ckpt_name',
	'filename_prefix',
];

/** Without a name, or with half a character in it, an id would stand for nothing or for another input. */
function hasFieldId(...names: string[]): boolean {
	return names.every((name) => name !== '' && name.isWellFormed());
}

export function fieldId(nodeId: string, parameter: string): string {
	return `${encodeURIComponent(nodeId.toWellFormed())}/${encodeURIComponent(parameter.toWellFormed())}`;
}

/** @returns `undefined` where the id is none of ours */
export function readFieldId(id: string): { readonly nodeId: string; readonly parameter: string } | undefined {
	const [node, parameter, ...rest] = id.split('/');
	if (!node || !parameter || rest.length > 0) return undefined;
	try {
		return { nodeId: decodeURIComponent(node), parameter: decodeURIComponent(parameter) };
	} catch {
		return undefined;
	}
}

/** One field for each value input of the definition; links, `class_type` and `_meta` never are (§4.1). */
export function formFields(definition: WorkflowDefinition, view: ParameterView): FormField[] {
	const titles = new Map<string, number>();
	for (const { title } of definition.nodes) titles.set(title, (titles.get(title) ?? 0) + 1);
	const fields = definition.nodes.flatMap((node) =>
		node.inputs
			.filter(({ isLink, name }) => !isLink && hasFieldId(node.nodeId, name))
			.map((input) => ({
				rank: rankOf(input.name),
				field: fieldOf(
					node,
					input,
					(titles.get(node.title) ?? 0) > 1,
					view.get(node.nodeId)?.get(input.name),
				),
			})),
	);
	if (fields.length <= MOST_FIELDS) return fields.map(({ field }) => field);
	return fields
		.sort((left, right) => left.rank - right.rank)
		.slice(0, MOST_FIELDS)
		.map(({ field }) => field);
}

function rankOf(parameter: string): number {
	const rank = COMMON_PARAMETERS.indexOf(parameter);
	return rank === -1 ? COMMON_PARAMETERS.length : rank;
}

function fieldOf(
	node: DefinitionNode,
	input: DefinitionInput,
	titleRepeats: boolean,
	spec: ParameterSpec | undefined,
): FormField {
	const title = titleRepeats ? `${node.title} (${node.nodeId})` : node.title;
	// An empty list says nothing; the checks take it so too.
	const options = spec?.list?.length ? listOptions(spec.list, input.value) : [];
	const range = options.length === 0 ? describeSpec(withoutHugeMax(spec)) : '';
	const base = {
		id: fieldId(node.nodeId, input.name),
		displayName: `${title} · ${input.name}${range ? ` (${range})` : ''}`,
		...defaultOf(input.value),
	};
	return options.length > 0 ? { ...base, type: 'options', options } : { ...base, type: typeOf(input.value) };
}

/** Seeds end at 2^64: to a person that is no limit, and its digits would fill the row's title. */
function withoutHugeMax(spec: ParameterSpec | undefined): ParameterSpec | undefined {
	return spec?.max !== undefined && spec.max > Number.MAX_SAFE_INTEGER ? { ...spec, max: undefined } : spec;
}

/** The export's own value stays choosable, else n8n would refuse to publish a workflow that uses it. */
function listOptions(list: readonly Scalar[], current: Json): NonNullable<FormField['options']> {
	const values = [...list, current].filter(
		(value): value is string | number | boolean =>
			typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean',
	);
	return [...new Set(values)].map((value) => ({ name: String(value), value }));
}

/** A row begins empty, and is not sent so, where n8n could not hold the number or the export has no value. */
function defaultOf(value: Json): Pick<FormField, 'defaultValue'> {
	if (isLongInteger(value)) return {};
	if (typeof value === 'number' || typeof value === 'boolean') return { defaultValue: value };
	if (value === null) return {};
	const text = typeof value === 'string' ? value : jsonText(value);
	return text !== undefined && text.length <= LONGEST_DEFAULT_CHARS ? { defaultValue: text } : {};
}

function typeOf(value: Json): FormField['type'] {
	if (typeof value === 'number' || isLongInteger(value)) return 'number';
	if (typeof value === 'boolean') return 'boolean';
	if (Array.isArray(value)) return 'array';
	return isJsonObject(value) ? 'object' : 'string';
}
