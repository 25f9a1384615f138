import { isJsonObject, jsonText, type Json, type JsonObject } from '../shared/text/json';

/** How two values of one field become one; objects are joined field by field. */
interface JoinRule {
	readonly scalars: (known: Json, more: Json) => Json;
	readonly lists: (known: Json[], more: Json[]) => Json[];
}

/** Fields of the chunks of one answer, joined: whatever a platform adds to the interface. */
export interface FieldJoiner {
	add(from: JsonObject): void;
	readonly fields: JsonObject;
}

/** Of one kind of fields; more is no longer joined, since all of it is kept until the answer ends. */
const MOST_CHARS = 16 * 1024 * 1024;

/**
 * A list goes on, or comes once more with all that it held before. Of other values the last holds, or texts go on,
 * too, as within a delta.
 *
 * @param skipped fields that are read elsewhere
 * @param textsGoOn a text that comes again as it was is not doubled
 */
export function createFieldJoiner(skipped: ReadonlySet<string>, textsGoOn: boolean): FieldJoiner {
	const rule: JoinRule = {
		scalars: (known, more) =>
			textsGoOn && typeof known === 'string' && typeof more === 'string' && known !== more
				? known + more
				: more,
		lists: (known, more) => {
			if (more.length >= known.length && known.every((one, index) => isSame(one, more[index])))
				return [...more];
			for (const one of more) known.push(one);
			return known;
		},
	};
	const fields: JsonObject = {};
	let chars = 0;
	return {
		fields,
		add: (from) => {
			const others = Object.entries(from).filter(([key]) => !skipped.has(key));
			if (others.length === 0) return;
			const own = Object.fromEntries(others);
			chars += jsonText(own)?.length ?? Infinity;
			if (chars <= MOST_CHARS) joinInto(fields, own, rule);
		},
	};
}

/** Counts only grow, so of usage that is told several times the largest holds; the rest is told last. */
export function mergeUsage(into: JsonObject, from: JsonObject): void {
	joinInto(into, from, {
		scalars: (known, more) =>
			typeof known === 'number' && typeof more === 'number' ? Math.max(known, more) : more,
		lists: (_known, more) => more,
	});
}

function joinInto(into: JsonObject, from: JsonObject, rule: JoinRule): void {
	for (const [key, more] of Object.entries(from)) {
		const known = Object.hasOwn(into, key) ? into[key] : undefined;
		if (more === null && known !== undefined) continue;
		// A plain assignment of "__proto__" would set something else.
		const value = joined(known, more, rule);
		Object.defineProperty(into, key, { value, writable: true, enumerable: true, configurable: true });
	}
}

function joined(known: Json | undefined, more: Json, rule: JoinRule): Json {
	if (isJsonObject(more)) {
		const into = isJsonObject(known) ? known : {};
		joinInto(into, more, rule);
		return into;
	}
	if (Array.isArray(more)) return Array.isArray(known) ? rule.lists(known, more) : [...more];
	return known === undefined || known === null ? more : rule.scalars(known, more);
}

/** Ends at the first difference, so that it costs no more than the smaller of the two. */
function isSame(left: Json, right: Json | undefined): boolean {
	if (left === right) return true;
	if (Array.isArray(left) && Array.isArray(right)) {
		return left.length === right.length && left.every((one, index) => isSame(one, right[index]));
	}
	if (!isJsonObject(left) || !isJsonObject(right)) return false;
	const keys = Object.keys(left);
	return (
		keys.length === Object.keys(right).length &&
		keys.every((key) => Object.hasOwn(right, key) && isSame(left[key] ?? null, right[key]))
	);
}
