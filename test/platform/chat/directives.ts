import { closingBracket } from '../closingBracket';

export type ReasoningPlace = 'content' | 'details' | 'reasoning' | 'tags';

/** How an answer breaks off, and after how many chunks. */
export interface Break {
	readonly kind: 'silent' | 'cut' | 'end' | 'error';
	readonly after: number;
}

export interface ToolOrder {
	readonly name: string;
	/** The arguments as written, so that broken JSON can be ordered, too. */
	readonly args: string;
}

/** The orders for the answer in the text of a message. */
export interface Directives {
	answer?: string;
	think?: string;
	words?: number;
	place?: ReasoningPlace;
	chunks?: number;
	takesMs?: number;
	pauseMs?: number;
	holds: number[];
	breaks: Break[];
	empty?: boolean;
	finish?: string;
	refuse?: { status: number; message: string };
	tools: ToolOrder[];
}

export class BadDirective extends Error {}

const PLACES: readonly ReasoningPlace[] = ['content', 'details', 'reasoning', 'tags'];

function numberIn(value: string): number {
	if (!/^\d+$/.test(value)) throw new BadDirective(`"${value}" is not a whole number`);
	return Number(value);
}

function placeIn(value: string): ReasoningPlace {
	const place = PLACES.find((name) => name === value);
	if (place === undefined) throw new BadDirective(`"${value}" is none of ${PLACES.join(', ')}`);
	return place;
}

function toolIn(value: string): ToolOrder {
	const [, name, args] = /^(\S+)\s*(.*)$/s.exec(value) ?? [];
	if (name === undefined) throw new BadDirective('a tool name is missing');
	return { name, args: args === undefined || args === '' ? '{}' : args };
}

function refusalIn(value: string): { status: number; message: string } {
	const [, status, message] = /^([45]\d\d)\s*(.*)$/s.exec(value) ?? [];
	if (status === undefined) throw new BadDirective('an HTTP status from 400 to 599 comes first');
	return { status: Number(status), message: message === undefined || message === '' ? 'Refused' : message };
}

type Setter = (orders: Directives, value: string) => void;

const breakOff =
	(kind: Break['kind']): Setter =>
	(orders, value) => {
		orders.breaks.push({ kind, after: numberIn(value) });
	};

const SETTERS: ReadonlyMap<string, Setter> = new Map<string, Setter>([
	['answer', (orders, value) => (orders.answer = value)],
	['think', (orders, value) => (orders.think = value)],
	['words', (orders, value) => (orders.words = numberIn(value))],
	['place', (orders, value) => (orders.place = placeIn(value))],
	['chunks', (orders, value) => (orders.chunks = Math.max(1, numberIn(value)))],
	['takes', (orders, value) => (orders.takesMs = numberIn(value))],
	['pause', (orders, value) => (orders.pauseMs = numberIn(value))],
	['hold after', (orders, value) => orders.holds.push(numberIn(value))],
	['silent after', breakOff('silent')],
	['cut after', breakOff('cut')],
	['end after', breakOff('end')],
	['error after', breakOff('error')],
	['empty', (orders) => (orders.empty = true)],
	['finish', (orders, value) => (orders.finish = value)],
	['refuse', (orders, value) => (orders.refuse = refusalIn(value))],
	['tool', (orders, value) => orders.tools.push(toolIn(value))],
]);

export function noDirectives(): Directives {
	return { holds: [], breaks: [], tools: [] };
}

/**
 * Adds the orders of a text, and returns the text without them. Brackets that are not directives stay. Throws
 * BadDirective, so that a test with a mistake in its order fails loudly.
 */
export function readDirectives(text: string, orders: Directives): string {
	let rest = '';
	let at = 0;
	const opening = /\[([a-z]+(?: [a-z]+)?)\s*(?=[:\]])/g;
	for (let match = opening.exec(text); match !== null; match = opening.exec(text)) {
		const set = SETTERS.get(match[1] ?? '');
		const end = closingBracket(text, opening.lastIndex);
		if (set === undefined || end === undefined) continue;
		try {
			set(orders, text.slice(opening.lastIndex, end).replace(/^:/, '').trim());
		} catch (error) {
			if (!(error instanceof BadDirective)) throw error;
			throw new BadDirective(`${text.slice(match.index, end + 1)}: ${error.message}.`);
		}
		rest += text.slice(at, match.index);
		at = end + 1;
		opening.lastIndex = at;
	}
	return (rest + text.slice(at)).replace(/ {2,}/g, ' ').trim();
}
