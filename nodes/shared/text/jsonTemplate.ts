import { jsonText, type Json } from './json';

export interface Placeholder {
	/** As written in the template, e.g. `$json.items[0].id`. */
	readonly written: string;
	/** The name of the placeholder, e.g. `json`. */
	readonly name: string;
	/** The path after the name, as JMESPath: `"items"[0]."id"`. May be empty. */
	readonly path: string;
	/** The two words of a choice such as `$stream(streaming, blocking)`; otherwise empty. */
	readonly words: readonly string[];
}

/** @returns the value of a placeholder; `undefined` if it is absent */
type Lookup = (placeholder: Placeholder) => Json | undefined;

interface TemplateRules {
	/** Whether a name may be followed by a path; otherwise what follows is text. */
	readonly hasPaths?: boolean;
	/** The name that may be followed by two words, e.g. `stream`. */
	readonly choice?: string;
	/** Whether objects and arrays whose values were all absent are removed, too. */
	readonly dropsEmptied?: boolean;
	/** Whether keys may contain placeholders, too. A key whose value is absent is removed. */
	readonly hasKeys?: boolean;
	/** Names of arrays whose elements are inserted into the array that contains the placeholder. */
	readonly joining?: readonly string[];
}

/** A name in a path. It may contain single hyphens, yet "$from-$to" has two placeholders. */
const NAME = String.raw`[\p{L}\p{N}_]+(?:-[\p{L}\p{N}_]+)*`;
const PATH = String.raw`(?<path>(?:\.(?:${NAME}|"[^"\\]+")|\[\d+\])*)`;
const STEP = new RegExp(String.raw`"[^"]*"|\.(${NAME})`, 'gu');

/** JSON with placeholders in its strings. Inserted values are neither evaluated nor searched again. */
export class JsonTemplates {
	private readonly pattern: RegExp;

	constructor(private readonly rules: TemplateRules) {
		const { hasPaths, choice } = rules;
		const choices = choice ? String.raw`(?<choice>${choice})\((?<words>[^(),]*,[^(),]*)\)|` : '';
		const path = hasPaths ? PATH : '';
		// `$$` stands for a dollar sign, and so does `$` before anything but a letter or `_`, as in a price.
		this.pattern = new RegExp(String.raw`\$(?:\$|${choices}(?<name>[A-Za-z_]\w*)${path})`, 'gu');
	}

	/** All placeholders of a template, for checks before it is used. */
	placeholdersIn(template: Json): Placeholder[] {
		if (typeof template === 'string')
			return this.partsOf(template).filter((part) => typeof part !== 'string');
		if (typeof template !== 'object' || template === null) return [];
		const keys = this.rules.hasKeys && !Array.isArray(template) ? Object.keys(template) : [];
		return [...keys, ...Object.values(template)].flatMap((inner: Json) => this.placeholdersIn(inner));
	}

	/**
	 * Fills in a template. A string that is one placeholder becomes its value, of any type; in a longer string the value
	 * is inserted as text. A string with an absent value is removed, with its key or array element.
	 * @returns `undefined` if nothing is left
	 */
	fill(template: Json, lookup: Lookup): Json | undefined {
		if (typeof template === 'string') return this.fillText(template, lookup);
		if (typeof template !== 'object' || template === null) return template;
		const left = Object.entries(template).flatMap(([key, inner]: [string, Json]): Array<[string, Json]> => {
			const value = this.fill(inner, lookup);
			const name = this.rules.hasKeys && !Array.isArray(template) ? this.fillText(key, lookup) : key;
			if (value === undefined || name === undefined) return [];
			const joins = Array.isArray(template) && Array.isArray(value) && this.isJoining(inner);
			return joins
				? value.map((one) => [key, one])
				: [[typeof name === 'string' ? name : (jsonText(name) ?? key), value]];
		});
		const isEmptied = left.length === 0 && Object.keys(template).length > 0;
		if (isEmptied && this.rules.dropsEmptied) return undefined;
		// `fromEntries` makes "__proto__" a property like any other.
		return Array.isArray(template) ? left.map(([, value]) => value) : Object.fromEntries(left);
	}

	private isJoining(template: Json): boolean {
		const { joining = [] } = this.rules;
		return typeof template === 'string' && joining.some((name) => template === `$${name}`);
	}

	private fillText(text: string, lookup: Lookup): Json | undefined {
		const parts = this.partsOf(text);
		const [only, ...others] = parts;
		if (only !== undefined && typeof only !== 'string' && others.length === 0) return lookup(only);
		let filled = '';
		for (const part of parts) {
			const value = typeof part === 'string' ? part : lookup(part);
			if (value === undefined) return undefined;
			filled += typeof value === 'string' ? value : (jsonText(value) ?? '');
		}
		return filled;
	}

	private partsOf(text: string): Array<string | Placeholder> {
		if (!text.includes('$')) return [text];
		const parts: Array<string | Placeholder> = [];
		let end = 0;
		for (const { 0: written, index, groups = {} } of text.matchAll(this.pattern)) {
			const { choice, path = '' } = groups;
			const words = groups.words?.split(',').map((word) => word.trim()) ?? [];
			const name = choice ?? groups.name;
			if (index > end) parts.push(text.slice(end, index));
			end = index + written.length;
			if (name === undefined) parts.push('$');
			else parts.push({ written, name, path: pathOf(path), words });
		}
		if (end < text.length) parts.push(text.slice(end));
		return parts;
	}
}

/** As JMESPath, which requires quotation marks around names with hyphens or letters beyond ASCII. */
function pathOf(written: string): string {
	const quoted = written.replace(STEP, (part, name?: string) => (name === undefined ? part : `."${name}"`));
	return quoted.replace(/^\./, '');
}
