// Reads what n8n stores: its Data Tables as a person sees them, and its whole database.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ownDatabase } from './ledger/postgres';
import type { N8nClient } from './runner';

/** A row of a Data Table. */
export type Row = Record<string, unknown>;

const PAGE_ROWS = 100;

/** Reads all rows of a Data Table of the owner's personal project as n8n's own screen does; none without a table. */
export async function dataTableRows(client: N8nClient, tableName: string): Promise<Row[]> {
	const project = await client.call<{ id: string }>('GET', '/rest/projects/personal');
	const tables = `/rest/projects/${project.id}/data-tables`;
	const found = await client.call<{ data: Array<{ id: string; name: string }> }>('GET', tables);
	const table = found.data.find(({ name }) => name === tableName);
	if (table === undefined) return [];
	const rows: Row[] = [];
	for (;;) {
		const page = await client.call<{ count: number; data: Row[] }>(
			'GET',
			`${tables}/${table.id}/rows?take=${PAGE_ROWS}&skip=${rows.length}&sortBy=id:asc`,
		);
		rows.push(...page.data);
		if (page.data.length === 0 || rows.length >= page.count) return rows;
	}
}

/** Finds those of `texts` that n8n's database contains in plain text: PostgreSQL, or SQLite's files without it. */
export async function foundInDatabase(
	postgres: Awaited<ReturnType<typeof ownDatabase>> | undefined,
	userFolder: string,
	texts: readonly string[],
): Promise<string[]> {
	if (postgres) return await postgres.find(texts);
	const folder = join(userFolder, '.n8n');
	const files = readdirSync(folder).filter((file) => file.startsWith('database.sqlite'));
	const contents = files.map((file) => readFileSync(join(folder, file)));
	return texts.filter((text) => contents.some((content) => content.includes(text)));
}
