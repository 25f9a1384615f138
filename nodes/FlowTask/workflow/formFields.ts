import { isJsonObject, jsonText, type Json } from '../../shared/text/json';
import { isLongInteger, type DefinitionInput, type WorkflowDefinition } from './definition';
import { describeSpec, type ParameterSpec, type ParameterView, type Scalar } from './parameterView';

/** A row that the form offers for one value input of the workflow. */
export interface FormField {
	/** Encoded node id and parameter; survives a newer export, and n8n's own parsing of ids. */
	readonly id: string;
	readonly displayName: string;
	readonly type: 'string' | 'number' | 'boolean' | 'options' | 'object' | 'array';
	readonly options?: ReadonlyArray<{ readonly name: string; readonly value: Scalar }>;
	readonly defaultValue?: Scalar;
}

/** The editor becomes slow beyond this, and its menu has no search. */
export const MOST_FIELDS = 300;

/** A longer default would be stored with the workflow a second time. */
const LONGEST_DEFAULT_CHARS = 2_000;

/** The most common inputs come first if not all can be listed. */
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

/** An empty name, or one with half a character, cannot be encoded as an id. */
function hasFieldId(...names: string[]): boolean {
	return names.every((name) => name !== '' && name.isWellFormed());
}

export function fieldId(nodeId: string, parameter: string): string {
	return `${encodeURIComponent(nodeId.toWellFormed())}/${encodeURIComponent(parameter.toWellFormed())}`;
}

/** @returns `undefined` if the id is not one of ours */
export function readFieldId(id: string): { readonly nodeId: string; readonly parameter: string } | undefined {
	const [node, parameter, ...rest] = id.split('/');
	if (!node || !parameter || rest.length > 0) return undefined;
	try {
		return { nodeId: decodeURIComponent(node), parameter: decodeURIComponent(parameter) };
	} catch {
		return undefined;
	}
}

/** One field for each value input of the definition; never links, `class_type` or `_meta` (§4.1). */
export function formFields(definition: WorkflowDefinition, view: ParameterView): FormField[] {
	const byTitle = Map.groupBy(definition.nodes, ({ title }) => title);
	const fields = definition.nodes.flatMap((node) => {
		const title = byTitle.get(node.title)?.length === 1 ? node.title : `${node.title} (${node.nodeId})`;
		return node.inputs
			.filter(({ isLink, name }) => !isLink && hasFieldId(node.nodeId, name))
			.map((input) => ({
				rank: rankOf(input.name),
				field: fieldOf(node.nodeId, title, input, view.get(node.nodeId)?.get(input.name)),
			}));
	});
	if (fields.length > MOST_FIELDS) fields.sort((one, other) => one.rank - other.rank);
	return fields.slice(0, MOST_FIELDS).map(({ field }) => field);
}

function rankOf(parameter: string): number {
	const rank = COMMON_PARAMETERS.indexOf(parameter);
	return rank === -1 ? COMMON_PARAMETERS.length : rank;
}

function fieldOf(
	nodeId: string,
	title: string,
	{ name, value }: DefinitionInput,
	spec: ParameterSpec | undefined,
): FormField {
	const options = spec?.list?.length ? listOptions(spec.list, value) : [];
	const range = options.length === 0 ? describeSpec(withoutHugeMax(spec)) : '';
	const base = {
		id: fieldId(nodeId, name),
		displayName: `${title} · ${name}${range ? ` (${range})` : ''}`,
		...defaultOf(value),
	};
	return options.length > 0 ? { ...base, type: 'options', options } : { ...base, type: typeOf(value) };
}

/** Seeds end at 2^64: nobody needs that limit, and its digits would fill the row's title. */
function withoutHugeMax(spec: ParameterSpec | undefined): ParameterSpec | undefined {
	return spec?.max !== undefined && spec.max > Number.MAX_SAFE_INTEGER ? { ...spec, max: undefined } : spec;
}

/** The export's own value is always an option, or n8n would refuse to publish a workflow that uses it. */
function listOptions(list: readonly Scalar[], current: Json): NonNullable<FormField['options']> {
	const values = [...list, current].filter((value) => value !== null && typeof value !== 'object');
	return [...new Set(values)].map((value) => ({ name: String(value), value }));
}

/** A row begins empty, and is then not sent, if n8n cannot represent the number or the export has no value. */
function defaultOf(value: Json): Pick<FormField, 'defaultValue'> {
	if (isLongInteger(value) || value === null) return {};
	if (typeof value === 'number' || typeof value === 'boolean') return { defaultValue: value };
	const text = typeof value === 'string' ? value : jsonText(value);
	return text !== undefined && text.length <= LONGEST_DEFAULT_CHARS ? { defaultValue: text } : {};
}

function typeOf(value: Json): FormField['type'] {
	if (typeof value === 'number' || isLongInteger(value)) return 'number';
	if (typeof value === 'boolean') return 'boolean';
	if (Array.isArray(value)) return 'array';
	return isJsonObject(value) ? 'object' : 'string';
}
