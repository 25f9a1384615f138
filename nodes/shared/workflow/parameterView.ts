import { failInput, ok, type Result } from '../errors/failure';
import { excerpt, isJsonObject, type Json, type JsonObject } from '../text/json';
import { numberOf } from '../text/textOf';
import { readPastedObject, unwrap } from './pasted';

export type Scalar = string | number | boolean;

const ENGINE_TYPES = ['INT', 'FLOAT', 'STRING', 'BOOLEAN'] as const;

export interface ParameterSpec {
	readonly default?: Json;
	readonly min?: number;
	readonly max?: number;
	readonly type?: (typeof ENGINE_TYPES)[number];
	readonly list?: readonly Scalar[];
}

/** The platform's parameter view: node id -> parameter -> what it accepts. */
export type ParameterView = ReadonlyMap<string, ReadonlyMap<string, ParameterSpec>>;

/** §2.2 names no key for the list of accepted values, so the list is searched for under each of these. */
const LIST_KEYS = ['list', 'options', 'values', 'enum', 'choices'];
const WRAPPERS = ['data', 'parameters', 'parameter_view', 'nodes', 'workflow'];
const PARAMETER_GROUPS = ['inputs', 'parameters', 'params'];

/** Reads the parameter view as pasted from the console; an empty field is an empty view. */
export function readParameterView(source: unknown): Result<ParameterView> {
	const parsed = readPastedObject(
		'Parameter View',
		typeof source === 'string' ? source.trim() || '{}' : (source ?? {}),
		"Paste the whole parameter view from the platform's console, or leave the field empty.",
	);
	if (!parsed.ok) return parsed;
	const view = unwrap(parsed.value, WRAPPERS)
		.map(specsIn)
		.find(({ size }) => size > 0);
	if (view || Object.keys(parsed.value).length === 0) return ok(view ?? new Map());
	return failInput(
		'\'Parameter View\' is JSON, but contains no "spec" of any parameter',
		"Paste the parameter view from the platform's console here, and the workflow's API-format export into 'Workflow Definition'.",
	);
}

function specsIn(nodes: JsonObject): ParameterView {
	const specs = Object.entries(nodes).flatMap(([nodeId, node]) =>
		isJsonObject(node) ? [[nodeId, readParameters(node)] as const] : [],
	);
	return new Map(specs.filter(([, parameters]) => parameters.size > 0));
}

function readParameters(node: JsonObject): ReadonlyMap<string, ParameterSpec> {
	const group = PARAMETER_GROUPS.map((key) => node[key]).find((candidate) => isJsonObject(candidate)) ?? node;
	const parameters = new Map<string, ParameterSpec>();
	for (const [name, entry] of Object.entries(group)) {
		const spec = isJsonObject(entry) ? readSpec(entry.spec, entry) : undefined;
		if (spec) parameters.set(name, spec);
	}
	return parameters;
}

/** A spec is an object of limits, a list of accepted values, or a pair; the entry may also have the list beside it. */
function readSpec(spec: Json | undefined, entry: JsonObject): ParameterSpec | undefined {
	if (Array.isArray(spec)) return readListSpec(spec, entry);
	return isJsonObject(spec) ? readLimits(spec, entry) : undefined;
}

/** The engine itself writes a pair of type and limits; for an enumerated parameter, the list replaces the type. */
function readListSpec(spec: Json[], entry: JsonObject): ParameterSpec {
	const [type, limits = {}] = spec;
	const isType = Array.isArray(type) || (typeof type === 'string' && (spec.length === 2 || isTypeName(type)));
	if (spec.length > 2 || !isType || !isJsonObject(limits)) return { list: listOf(spec) };
	const read = readLimits(limits, entry);
	return Array.isArray(type)
		? { ...read, list: listOf(type) ?? read.list }
		: { ...read, type: ENGINE_TYPES.find((name) => name === type) };
}

/** `*` is the engine's name for any type, and a comma separates alternative types, so neither is a value. */
function isTypeName(text: string): boolean {
	const names: ReadonlySet<string> = new Set([...ENGINE_TYPES, 'COMBO', '*']);
	return text.split(',').every((name) => names.has(name.trim()));
}

function listOf(values: Json[]): Scalar[] | undefined {
	const list = values.filter((value) => value !== null && typeof value !== 'object');
	return list.length === 1 && list[0] === '*' ? undefined : list;
}

function readLimits(spec: JsonObject, entry: JsonObject): ParameterSpec {
	const list = [spec, entry]
		.flatMap((holder) => LIST_KEYS.map((key) => holder[key]))
		.find((candidate) => Array.isArray(candidate));
	return {
		default: spec.default,
		min: numberOf(spec.min),
		max: numberOf(spec.max),
		list: list && listOf(list),
	};
}

const LISTED_VALUES_SHOWN = 8;

/** A limit beyond 2^53, which seeds often have, is as good as none and would be shown with wrong digits. */
const LARGEST_SHOWN = Number.MAX_SAFE_INTEGER;

/** What a parameter accepts, in words; empty if that is unknown. */
export function describeSpec({ list = [], min, max }: ParameterSpec = {}): string {
	if (list.length > 0) {
		const shown = list.slice(0, LISTED_VALUES_SHOWN).map((value) => excerpt(String(value), 40));
		const more = list.length - shown.length;
		return `one of ${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
	}
	const least = min !== undefined && min >= -LARGEST_SHOWN ? min : undefined;
	const most = max !== undefined && max <= LARGEST_SHOWN ? max : undefined;
	if (least !== undefined && least > LARGEST_SHOWN) return `more than ${LARGEST_SHOWN}`;
	if (most !== undefined && most < -LARGEST_SHOWN) return `less than -${LARGEST_SHOWN}`;
	if (least !== undefined && most !== undefined) return `from ${least} to ${most}`;
	if (least !== undefined) return `${least} or more`;
	return most === undefined ? '' : `${most} or less`;
}
