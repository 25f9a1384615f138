import type { TableColumn, TableSpec } from './tableNode';
import { badInput, type Failure } from '../errors/failure';
import { excerpt, isJsonObject, sentence } from '../text/json';
import { redactor } from '../text/redact';
import { textOf } from '../text/textOf';

/** A failure with n8n's own words, which alone show what kind of failure it is. */
export interface TableFailure extends Failure {
	readonly said: string;
}

/** Matches reasons why a second try would fail, too. */
export const NEVER_MADE =
	/unrecognized|disabled|not (?:found|available|installed)|read-only|permission|forbidden|denied|no project|limit/i;

/** The table has been deleted since it was found. */
export const TABLE_GONE = /could not be found in this project|could not find the data table/i;
/** n8n cancelled the sub-execution, because the execution's timeout had passed. */
export const TIMED_OUT = /cancell?ed because it timed out/i;

const OR_RENAME =
	'Or rename the Data Table: a new one is then made, without the keys, sessions and counts of this one.';

/** What n8n says, what it means, and what to do. */
const CAUSES: ReadonlyArray<readonly [RegExp, string, string]> = [
	[
		/size limit/i,
		'is full: the Data Tables of this n8n instance have reached their size limit',
		'Delete rows or tables that are no longer needed, or raise N8N_DATA_TABLES_MAX_SIZE_BYTES.',
	],
	[
		TIMED_OUT,
		"could no longer be used: the workflow's timeout had passed",
		'Raise "Timeout Workflow" in the settings of the workflow, or send it fewer items at a time.',
	],
	[
		/unrecognized node type|module is disabled|proxy is not available|unknown (resource|operation)/i,
		'cannot be used: this n8n instance has no Data Tables, or they are switched off',
		'Update n8n, or remove "data-table" from N8N_DISABLED_MODULES.',
	],
	[
		/read-only|permission|forbidden|not (have|allowed)|denied|not be called/i,
		'cannot be used: n8n does not allow it',
		'Ask your n8n administrator whether workflows in this project may use Data Tables.',
	],
	[
		/could not find any entity|no project|find.*shared ?workflow/i,
		'cannot be used: the workflow belongs to no project yet',
		'Save the workflow and run it again.',
	],
	[
		/unknown column|column\(s\)|does not match column type/i,
		'does not have the expected columns',
		`Restore the columns. ${OR_RENAME}`,
	],
];

/** Whether a read failed because this workflow cannot have Data Tables at all. */
export function hasNoTables(failure: Failure): boolean {
	return 'said' in failure && NEVER_MADE.test(textOf(failure.said));
}

/** The advice of a table's failure, with what to do without Data Tables unless only the time was too short. */
export function orWithout(failure: Failure, remedy: string): string {
	const isLate = 'said' in failure && TIMED_OUT.test(textOf(failure.said));
	return isLate ? failure.advice : `${sentence(failure.advice)} ${remedy}`;
}

/** Redacts database errors, which may contain a row's values. */
const hideTokens = redactor([]);

/** @param said n8n's own words, or ours for what n8n did not report */
export function explainTableFailure({ name }: TableSpec, said: string): TableFailure {
	const cause = CAUSES.find(([pattern]) => pattern.test(said));
	const [, what, advice] = cause ?? [
		undefined,
		'could not be used',
		'Check the Data Table and the database of n8n, then run the node again.',
	];
	const failure = badInput(
		`The Data Table "${name}" ${what}`,
		`${advice} The reason: ${sentence(excerpt(hideTokens(said), 300))}`,
	);
	return { ...failure, said };
}

/** @param columns as n8n lists them */
export function missingColumns(table: TableSpec, columns: unknown): TableColumn[] {
	if (!Array.isArray(columns)) return [];
	const types = new Map<unknown, unknown>(columns.filter(isJsonObject).map(({ name, type }) => [name, type]));
	return table.columns.filter(({ name, type }) => types.get(name) !== type);
}

export function explainMissingColumns({ name }: TableSpec, missing: readonly TableColumn[]): TableFailure {
	const list = missing.map((column) => `${column.name} (${column.type})`).join(', ');
	const advice = `Add these columns: ${list}. ${OR_RENAME}`;
	return { ...badInput(`The Data Table "${name}" does not have the expected columns`, advice), said: '' };
}

/** Everything that an n8n error says. */
export function wordsOf(error: unknown): string {
	if (!(error instanceof Error)) return String(error);
	return 'description' in error ? `${error.message} ${textOf(error.description)}`.trim() : error.message;
}
