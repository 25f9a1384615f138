import type { Json } from './json';

/** A step in brackets, with or without quotation marks, or a name between dots. */
const STEP = /\[\s*(?:"([^"]*)"|'([^']*)'|(\d+))\s*\]|([^.[\]\s]+)/g;

export function pathSteps(path: string): string[] {
	const steps = path
		.trim()
		.replace(/^\$\.?/, '')
		.matchAll(STEP);
	return [...steps].map(([, ...forms]) => forms.find((form) => typeof form === 'string') ?? '');
}

/** @returns `undefined` if there is nothing at the path, or the path is empty */
export function readPath(from: Json, path: string): Json | undefined {
	const steps = pathSteps(path);
	if (steps.length === 0) return undefined;
	let value: Json | undefined = from;
	for (const step of steps) {
		if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
		value = Array.isArray(value) ? value[Number(step)] : value[step];
	}
	return value;
}
