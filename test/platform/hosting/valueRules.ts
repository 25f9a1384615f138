import { CODES } from '../codes';
import { exactInteger } from '../wireJson';
import type { ValueInput } from './nodeClasses';

/** Why a value is refused; `text` follows the name of the parameter. */
export interface ValueProblem {
	readonly code: number;
	readonly text: string;
}

function show(value: unknown): string {
	const text = value === undefined ? 'nothing' : JSON.stringify(value);
	return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

function wrongType(expected: string, value: unknown): ValueProblem {
	return { code: CODES.wrongType, text: `must be ${expected}, got ${show(value)}` };
}

function checkInteger(input: ValueInput & { type: 'integer' }, value: unknown): ValueProblem | undefined {
	const integer = exactInteger(value);
	if (integer === undefined) return wrongType('an integer', value);
	if (integer >= BigInt(input.min) && integer <= BigInt(input.max)) return undefined;
	return { code: CODES.outOfRange, text: `must be from ${input.min} to ${input.max}, got ${integer}` };
}

function checkNumber(input: ValueInput & { type: 'number' }, value: unknown): ValueProblem | undefined {
	const integer = exactInteger(value);
	const number = integer === undefined ? value : Number(integer);
	if (typeof number !== 'number') return wrongType('a number', value);
	if (number >= input.min && number <= input.max) return undefined;
	return { code: CODES.outOfRange, text: `must be from ${input.min} to ${input.max}, got ${show(value)}` };
}

/** Checks whether a value fits its parameter's `spec`, but not whether its image or model exists. */
export function checkValue(input: ValueInput, value: unknown): ValueProblem | undefined {
	switch (input.type) {
		case 'integer':
			return checkInteger(input, value);
		case 'number':
			return checkNumber(input, value);
		case 'list':
			if (typeof value !== 'string') return wrongType('a string', value);
			if (input.list.includes(value)) return undefined;
			return {
				code: CODES.notInList,
				text: `must be one of ${input.list.join(', ')}, got ${show(value)}`,
			};
		case 'text':
		case 'image':
		case 'model':
			return typeof value === 'string' ? undefined : wrongType('a string', value);
	}
}
