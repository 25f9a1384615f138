import { badInput, type Failure } from '../../shared/errors/failure';
import { excerpt } from '../../shared/text/json';
import { readFieldId } from './formFields';

/** The rows of the form as n8n keeps them, beside what it makes of them for one item. */
export interface FormRows {
	/** Row id -> what was entered, expressions as they are. */
	readonly entered: unknown;
	/** Row id -> what the expressions gave, before n8n brings it to the row's type. */
	readonly given: unknown;
	/** What the editor stored of each row: its title and type among others. */
	readonly schema: unknown;
}

/**
 * Refuses rows that have no value for an item: n8n leaves out what an expression did not give and takes an empty
 * text for the number 0, and either pays for an image that nobody asked for.
 */
export function refuseMissingRows({ entered, given, schema }: FormRows): Failure | undefined {
	if (typeof entered !== 'object' || entered === null) return undefined;
	const complaints: string[] = [];
	for (const [id, text] of Object.entries(entered)) {
		const value = member(given, id);
		const isExpression = typeof text === 'string' && text.startsWith('=');
		const isBlank = typeof value === 'string' && !value.trim() && typeOf(schema, id) === 'number';
		if (!isBlank && !(isExpression && isNothing(value))) continue;
		const why = isExpression ? ' (an expression gave nothing)' : '';
		complaints.push(`the value of "${rowTitle(schema, id)}" is missing${why}`);
	}
	if (complaints.length === 0) return undefined;
	return badInput(
		`"Inputs to Change" cannot be sent: ${complaints.join('; ')}`,
		'Correct the expression or enter a value, or remove the row to keep the value with which the workflow was hosted. Nothing was submitted for this item.',
	);
}

/** What n8n said of a row, with the row's title in place of its id, which is nowhere to be seen in the editor. */
export function withRowTitles(said: string, { entered, schema }: FormRows): string {
	if (typeof entered !== 'object' || entered === null) return said;
	return Object.keys(entered).reduce(
		(text, id) => text.replaceAll(`'${id}'`, `"${rowTitle(schema, id)}"`),
		said,
	);
}

/** How a row is called in the editor. */
function rowTitle(schema: unknown, id: string): string {
	const title = member(schemaOf(schema, id), 'displayName');
	if (typeof title === 'string' && title.trim() && title !== id) return excerpt(title, 120);
	const place = readFieldId(id);
	return excerpt(place ? `${place.parameter} of node ${place.nodeId}` : id, 120);
}

function typeOf(schema: unknown, id: string): unknown {
	return member(schemaOf(schema, id), 'type');
}

function schemaOf(schema: unknown, id: string): unknown {
	return Array.isArray(schema) ? schema.find((row: unknown) => member(row, 'id') === id) : undefined;
}

/** As JSON knows no number that is none, it would be sent as nothing, too. */
function isNothing(value: unknown): boolean {
	return value === undefined || value === null || (typeof value === 'number' && !Number.isFinite(value));
}

function member(value: unknown, key: string): unknown {
	return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
		? Reflect.get(value, key)
		: undefined;
}
