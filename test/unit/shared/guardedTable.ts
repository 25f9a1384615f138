import type { DataTable } from '../../../nodes/shared/dataTable/table';

/** A table each of whose calls goes through `guard`, which may carry it out late, or never answer. */
export function guardedTable(table: DataTable, guard: <T>(call: () => Promise<T>) => Promise<T>): DataTable {
	return {
		prepare: async () => await guard(async () => await table.prepare()),
		read: async (...all) => await guard(async () => await table.read(...all)),
		updateAlike: async (...all) => await guard(async () => await table.updateAlike(...all)),
		swap: async (...all) => await guard(async () => await table.swap(...all)),
		insertThenRead: async (...all) => await guard(async () => await table.insertThenRead(...all)),
		replace: async (...all) => await guard(async () => await table.replace(...all)),
		remove: async (...all) => await guard(async () => await table.remove(...all)),
	};
}
