import type { Json } from '../shared/text/json';
import { pathSteps, readPath } from '../shared/text/jsonPath';

/** Places where a value may stand; the first where it does counts. */
export type Paths = readonly string[];

/** A value, and the path that gave it. */
export interface Found {
	readonly path: string;
	readonly value: Json;
}

/** Reads paths that are separated by commas; a comma inside of brackets belongs to a name. */
export function readPaths(text: string): Paths {
	const paths = text.match(/(?:\[[^\]]*\]|[^,[])+/g) ?? [];
	return paths.map((path) => path.trim()).filter((path) => pathSteps(path).length > 0);
}

/**
 * The first value that is there: neither `null` nor an empty text.
 * @param fits what else it must be
 */
export function findFirst(
	from: Json,
	paths: Paths,
	fits: (value: Json) => boolean = () => true,
): Found | undefined {
	for (const path of paths) {
		const value = readPath(from, path);
		if (value !== undefined && value !== null && value !== '' && fits(value)) return { path, value };
	}
	return undefined;
}

/** The same as text; empty where there is none. */
export function textAt(from: Json, paths: Paths): string {
	return textOf(findFirst(from, paths)?.value);
}

/** The same where only words count, and no object or list. */
export function wordAt(from: Json, paths: Paths): string {
	return textOf(findFirst(from, paths, (value) => isWord(value) && textOf(value).trim() !== '')?.value);
}

export function isWord(value: Json): boolean {
	return typeof value === 'string' || typeof value === 'number';
}

/** Text, or what is written in its place: some deployments number their sessions. */
export function textOf(value: Json | undefined): string {
	if (typeof value === 'string') return value;
	if (typeof value === 'number' || typeof value === 'boolean') return String(value);
	return value === undefined || value === null ? '' : JSON.stringify(value);
}
