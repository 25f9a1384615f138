import { isJsonObject, jsonText, type Json, type JsonObject } from '../../shared/text/json';

/** How two values of one field become one; objects are joined field by field. */
interface MergeRule {
	readonly scalars: (known: Json, more: Json) => Json;
	readonly lists: (known: Json[], more: Json[]) => Json[];
}

/** Per kind of field. The rest is dropped, because everything is kept in memory until the answer ends. */
const MOST_CHARS = 16 * 1024 * 1024;

/** Token counts only grow, so the largest is right if they are sent several times. */
const LARGEST: MergeRule = {
	scalars: (known, more) =>
		typeof known === 'number' && typeof more === 'number' ? Math.max(known, more) : more,
	lists: (_known, more) => more,
};

/** A list grows piece by piece, or is sent again with all its earlier elements. */
function mergeLists(known: Json[], more: Json[]): Json[] {
	const isRepeated = (): boolean => known.every((one, at) => jsonText(one) === jsonText(more[at]));
	if (more.length >= known.length && isRepeated()) return [...more];
	for (const one of more) known.push(one);
	return known;
}

/** Text grows piece by piece, too; text that is repeated unchanged is not doubled. */
function mergeTexts(known: Json, more: Json): Json {
	const isText = typeof known === 'string' && typeof more === 'string';
	return isText && known !== more ? known + more : more;
}

/** Joins the fields that a platform adds to the chunks of an answer. */
export class FieldMerger {
	readonly fields: JsonObject = {};
	private readonly rule: MergeRule;
	private chars = 0;

	/**
	 * @param skipped fields that are read elsewhere
	 * @param textsGrow whether text comes in pieces, as within a delta; else the last value counts
	 */
	constructor(
		private readonly skipped: ReadonlySet<string>,
		textsGrow: boolean,
	) {
		this.rule = { scalars: textsGrow ? mergeTexts : (_known, more) => more, lists: mergeLists };
	}

	add(from: JsonObject): void {
		const isOther = (key: string): boolean => !this.skipped.has(key);
		if (!Object.keys(from).some(isOther)) return;
		const own = Object.fromEntries(Object.entries(from).filter(([key]) => isOther(key)));
		this.chars += jsonText(own)?.length ?? Infinity;
		if (this.chars <= MOST_CHARS) mergeInto(this.fields, own, this.rule);
	}
}

export function mergeUsage(into: JsonObject, from: JsonObject): void {
	mergeInto(into, from, LARGEST);
}

function mergeInto(into: JsonObject, from: JsonObject, rule: MergeRule): void {
	for (const [key, more] of Object.entries(from)) {
		const known = Object.hasOwn(into, key) ? into[key] : undefined;
		if (more === null && known !== undefined) continue;
		// A plain assignment to "__proto__" would set the prototype.
		const value = merged(known, more, rule);
		Object.defineProperty(into, key, { value, writable: true, enumerable: true, configurable: true });
	}
}

function merged(known: Json | undefined, more: Json, rule: MergeRule): Json {
	if (isJsonObject(more)) {
		const into = isJsonObject(known) ? known : {};
		mergeInto(into, more, rule);
		return into;
	}
	if (Array.isArray(more)) return Array.isArray(known) ? rule.lists(known, more) : [...more];
	return known === undefined || known === null ? more : rule.scalars(known, more);
}
