import { badInput, fail, ok, type Result } from '../../shared/errors/failure';
import { excerpt, isJsonObject, type Json, type JsonObject } from '../../shared/text/json';
import { onlyOne, parsePasted } from '../../shared/form/pastedJson';

export type Scalar = string | number | boolean;

/** What the engine calls its kinds of values. */
const ENGINE_TYPES = ['INT', 'FLOAT', 'STRING', 'BOOLEAN'] as const;
export type EngineType = (typeof ENGINE_TYPES)[number];

/** What one parameter accepts (§2.2). A missing field is no limit. */
export interface ParameterSpec {
	readonly default?: Json;
	readonly min?: number;
	readonly max?: number;
	/** What the engine calls the kind of value, where the view says it. */
	readonly type?: EngineType;
	/** The values of an enumerated parameter. */
	readonly list?: readonly Scalar[];
}

/** The platform's parameter view: node id -> parameter -> what it accepts. */
export type ParameterView = ReadonlyMap<string, ReadonlyMap<string, ParameterSpec>>;

export const EMPTY_VIEW: ParameterView = new Map();

/** Only `spec`, `default`, `min` and `max` are named by the interface; where lists stand is not shown. */
const LIST_KEYS = ['list', 'options', 'values', 'enum', 'choices'];
const WRAPPERS = ['data', 'parameters', 'parameter_view', 'nodes', 'workflow'];
const PARAMETER_GROUPS = ['inputs', 'parameters', 'params'];

/** A loader lists the files that were there when the view was made: one that is uploaded later is accepted too. */
const FILE_PARAMETERS: ReadonlySet<string> = new Set(['image', 'video', 'audio', 'file']);

/** Reads the parameter view as pasted from the console. Nothing pasted is an empty view. */
export function readParameterView(source: unknown): Result<ParameterView> {
	if (source === undefined || source === null) return ok(EMPTY_VIEW);
	const read = typeof source === 'string' ? parsePasted(source.trim() || '{}') : ok(source);
	const parsed = read.ok ? onlyOne(read.value) : undefined;
	if (!isJsonObject(parsed)) {
		const why = read.ok || !read.failure ? '' : `: ${read.failure}`;
		return fail(
			badInput(
				`"Parameter View" is not a JSON object${why}`,
				"Paste the whole parameter view from the platform's console, or leave the field empty.",
			),
		);
	}
	const view = findView(parsed);
	if (view || Object.keys(parsed).length === 0) return ok(view ?? EMPTY_VIEW);
	return fail(
		badInput(
			'"Parameter View" is JSON, but holds no "spec" of any parameter',
			'Paste the parameter view from the platform\'s console here, and the workflow\'s API-format export into "Workflow Definition".',
		),
	);
}

function findView(value: JsonObject, depth = 0): ParameterView | undefined {
	const nodes = new Map<string, ReadonlyMap<string, ParameterSpec>>();
	for (const [nodeId, node] of Object.entries(value)) {
		const parameters = isJsonObject(node) ? readParameters(node) : undefined;
		if (parameters && parameters.size > 0) nodes.set(nodeId, parameters);
	}
	if (nodes.size > 0) return nodes;
	if (depth === 3) return undefined;
	for (const key of WRAPPERS) {
		const inner = value[key];
		const found = isJsonObject(inner) ? findView(inner, depth + 1) : undefined;
		if (found) return found;
	}
	return undefined;
}

function readParameters(node: JsonObject): Map<string, ParameterSpec> {
	const group = PARAMETER_GROUPS.map((key) => node[key]).find((candidate) => isJsonObject(candidate)) ?? node;
	const parameters = new Map<string, ParameterSpec>();
	if (!isJsonObject(group)) return parameters;
	for (const [name, entry] of Object.entries(group)) {
		const spec = isJsonObject(entry) && entry.spec !== undefined ? readSpec(entry.spec, entry) : undefined;
		if (spec) parameters.set(name, FILE_PARAMETERS.has(name) ? withoutList(spec) : spec);
	}
	return parameters;
}

function withoutList({ list: _list, ...spec }: ParameterSpec): ParameterSpec {
	return spec;
}

/** A spec is an object of limits, or the list of accepted values itself; a list may also stand beside it. */
function readSpec(spec: Json, entry: JsonObject): ParameterSpec | undefined {
	if (Array.isArray(spec)) return readListSpec(spec, entry);
	return isJsonObject(spec) ? readLimits(spec, entry) : undefined;
}

/** The engine itself writes a pair, type and limits; the type of what is enumerated is the list. */
function readListSpec(spec: Json[], entry: JsonObject): ParameterSpec {
	const [type, limits = {}] = spec;
	const isType = Array.isArray(type) || (typeof type === 'string' && (spec.length === 2 || isTypeName(type)));
	if (spec.length > 2 || !isType || !isJsonObject(limits)) return listOf(spec);
	const read = readLimits(limits, entry);
	if (Array.isArray(type)) return { ...read, ...listOf(type) };
	const known = ENGINE_TYPES.find((name) => name === type);
	return known ? { ...read, type: known } : read;
}

/** `*` is the engine's word for any type, and types with commas between are a choice of types: neither is a value. */
function isTypeName(text: string): boolean {
	const names: ReadonlySet<string> = new Set([...ENGINE_TYPES, 'COMBO', '*']);
	return text.split(',').every((name) => names.has(name.trim()));
}

function listOf(values: Json[]): Pick<ParameterSpec, 'list'> {
	const list = scalars(values);
	return list.length === 1 && list[0] === '*' ? {} : { list };
}

function readLimits(spec: JsonObject, entry: JsonObject): ParameterSpec {
	const list = [...LIST_KEYS.map((key) => spec[key]), ...LIST_KEYS.map((key) => entry[key])].find((one) =>
		Array.isArray(one),
	);
	const min = numberOf(spec.min);
	const max = numberOf(spec.max);
	return {
		...(spec.default !== undefined && { default: spec.default }),
		...(min !== undefined && { min }),
		...(max !== undefined && { max }),
		...(Array.isArray(list) && listOf(list)),
	};
}

function scalars(list: Json[]): Scalar[] {
	return list.filter((value) => value !== null && typeof value !== 'object');
}

function numberOf(value: Json | undefined): number | undefined {
	if (typeof value === 'number') return value;
	if (typeof value !== 'string' || !value.trim()) return undefined;
	const number = Number(value);
	return Number.isNaN(number) ? undefined : number;
}

const LISTED_VALUES_SHOWN = 8;

/** What a parameter accepts, in words; empty where nothing is known. */
export function describeSpec(spec: ParameterSpec | undefined): string {
	if (!spec) return '';
	if (spec.list && spec.list.length > 0) {
		const shown = spec.list.slice(0, LISTED_VALUES_SHOWN).map((value) => excerpt(String(value), 40));
		const more = spec.list.length - shown.length;
		return `one of ${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
	}
	if (spec.min !== undefined && spec.max !== undefined) return `from ${spec.min} to ${spec.max}`;
	if (spec.min !== undefined) return `${spec.min} or more`;
	if (spec.max !== undefined) return `${spec.max} or less`;
	return '';
}
