import { ok } from '../errors/failure';
import { partsOf } from '../time/batcher';
import type { TableResult } from './sharedTable';
import {
	PAGE_ROWS,
	pageOf,
	selection,
	type CellValue,
	type PageStart,
	type RowWork,
	type TableRow,
} from './tableNode';

/** How many values one read asks for: with a few rows per value, the answer usually fits on a page. */
export const VALUES_PER_READ = 300;

type RunWork = (work: RowWork) => TableResult<readonly TableRow[]>;

/**
 * Reads all rows that have one of `values` in a column, ordered by ID: page by page, each from the last ID on. By offset,
 * rows would be skipped or repeated whenever others are added or removed meanwhile.
 */
export async function readPages(
	column: string,
	values: readonly CellValue[],
	run: RunWork,
): TableResult<readonly TableRow[]> {
	const rows = new Map<CellValue, TableRow>();
	for (const part of partsOf([...new Set(values)], VALUES_PER_READ)) {
		const read = await readPart(column, part, run);
		if (!read.ok) return read;
		for (const row of read.value) rows.set(row.id ?? rows.size, row);
	}
	return ok([...rows.values()].sort((a, b) => Number(a.id) - Number(b.id)));
}

async function readPart(
	column: string,
	values: readonly CellValue[],
	run: RunWork,
): TableResult<readonly TableRow[]> {
	const first = await run(selection('get', column, values));
	if (!first.ok) return first;
	const rows = [...first.value];
	let more = pagesAfter(rows, values);
	while (more.length > 0) {
		const page = await run(pageOf(column, more));
		if (!page.ok) return page;
		rows.push(...page.value);
		const rowsOf = Map.groupBy(page.value, (row) => row[column]);
		more = more.flatMap(({ value }) => pagesAfter(rowsOf.get(value) ?? [], [value]));
	}
	return ok(rows);
}

/** Where the next page of each value begins; none if the page just read was not full. */
function pagesAfter(page: readonly TableRow[], values: readonly CellValue[]): PageStart[] {
	const after = page.length < PAGE_ROWS ? undefined : page.at(-1)?.id;
	return after === undefined ? [] : values.map((value) => ({ value, after }));
}
