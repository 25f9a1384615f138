import { fail, ok, type Result } from '../../shared/errors/failure';

/** An escape, a class, the opening of a group, a quantifier (a range as group 1) or a character. */
const PIECE =
	/\\(?:[pPu]\{[^}]*\}|.)|\[(?:\\.|[^\]\\])*\]|\(\?(?:[:=!]|<[=!]|<\w+>)|\{\d+(,\d*)?\}\??|[*+]\??|\?\??|[^()|]/gsu;
/** A list such as `(?:-[a-z]+)*`, with a separator before each element. It can be read in one way if no element contains it. */
const LIST = /\((?:\?:)?(\\?[-_.,:;/@ ])(\[(?:\\.|[^\]\\])*\]|\\[wds])[+*]\)[+*]/gu;
/** A group without groups in it. */
const GROUP = /\(([^()]*)\)([#*?]?)/;

/**
 * How long a pattern may take, because JavaScript cannot stop it: `^(\w+\s?)+$` would take years for thirty words. Each
 * repeat can end anywhere in a text, so the steps are at most `factor * (length + 1) ** degree`, unless repeats are nested.
 * @returns a clause if the pattern is invalid or may take longer
 */
export function patternWork(pattern: string): Result<{ degree: number; factor: number }, string> {
	try {
		new RegExp(pattern, 'u').test('');
	} catch (error) {
		return fail(error instanceof Error ? error.message : 'it cannot be read');
	}
	let shape = pattern
		.replace(LIST, (all, separator: string, element: string) =>
			new RegExp(element, 'u').test(separator.slice(-1)) ? all : 'x*',
		)
		.replace(PIECE, (piece, range?: string) => {
			if (piece.startsWith('(')) return '(';
			if (/^\\[1-9k]/.test(piece)) return '\\';
			if (piece.startsWith('{')) return range === undefined ? '#' : '*';
			return /^[*+?]/.exec(piece)?.[0].replace('+', '*') ?? 'x';
		});
	if (shape.includes('\\')) return fail('it refers back to a group');
	const isAnchored = pattern.startsWith('^') && !shape.includes('|');
	const degree = shape.split('*').length - Number(isAnchored);
	let choices = shape.split('?').length - 1;
	for (let group = GROUP.exec(shape); group; group = GROUP.exec(shape)) {
		const [all, inner = '', quantifier = ''] = group;
		const isVariable = /[*?|]/.test(inner);
		if (isVariable && /[#*]/.test(quantifier)) return fail('it repeats a group with repeats or alternatives');
		if (inner.includes('|')) choices++;
		shape = shape.replace(all, isVariable || /[*?]/.test(quantifier) ? 'x?' : 'x');
	}
	return ok({ degree, factor: 2 ** choices });
}
