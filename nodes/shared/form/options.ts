import { badInput, fail, ok, type Result } from '../errors/failure';

/** A number that a node's form asks for: what it is called there, and what it may be. */
export interface NumberOption {
	readonly label: string;
	readonly min: number;
	readonly max: number;
	/** What holds where the operator left it out; undefined: nothing is said about it at all. */
	readonly fallback?: number;
	/** Whether it is a field of the form itself; else it stands under "Options". */
	readonly isField?: boolean;
}

/**
 * Reads numbers of a form, most of them of its "Options" collection; what an expression made of a number is checked here.
 * @returns a reader by name; it gives undefined where neither the operator nor the node says a number
 */
export function readNumberOptions<Name extends string>(
	given: Readonly<Record<string, unknown>>,
	options: Readonly<Record<Name, NumberOption>>,
): Result<(name: Name) => number | undefined> {
	const complaints: string[] = [];
	const places = new Set<string>();
	const numbers = new Map<string, number | undefined>();
	for (const [name, { label, min, max, fallback, isField }] of Object.entries<NumberOption>(options)) {
		const raw = given[name];
		if (raw === undefined || raw === null || raw === '') {
			numbers.set(name, fallback);
			continue;
		}
		const value = numberIn(raw);
		if (Number.isFinite(value) && value >= min && value <= max) numbers.set(name, value);
		else {
			complaints.push(`"${label}" must be a number from ${min} to ${max}`);
			places.add(isField ? `in the field "${label}"` : 'under "Options"');
		}
	}
	if (complaints.length > 0) {
		const where = [...places].join(' and ');
		return fail(badInput(complaints.join('; '), `Correct it ${where} in the node. Nothing was sent.`));
	}
	return ok((name) => numbers.get(name));
}

/** NaN for what `Number` makes a number of though nobody would: a blank text, a list, true. */
function numberIn(value: unknown): number {
	if (typeof value === 'string') return value.trim() ? Number(value) : NaN;
	return typeof value === 'number' ? value : NaN;
}
