// A node that carries out on the ledger and its Data Table what its input orders, independently of FlowTask's own use of
// them. It is bundled and installed as a package of its own.
import { NodeConnectionTypes } from 'n8n-workflow';
import type { IDataObject, IExecuteFunctions, INodeExecutionData, INodeType } from 'n8n-workflow';
import { systemClock } from '../../../nodes/shared/time/clock';
import { openTable } from '../../../nodes/shared/dataTable/table';
import type {
	CellValue,
	DataTable,
	InlineWorkflows,
	RowSwap,
	TableRow,
} from '../../../nodes/shared/dataTable/table';
import type { RowCondition } from '../../../nodes/shared/dataTable/tableNode';
import type { Result } from '../../../nodes/shared/errors/failure';
import { TableLedger } from '../../../nodes/shared/effects/ledger';
import { LIVENESS } from '../../../nodes/shared/dataTable/claims';
import { LEDGER_TABLE } from '../../../nodes/shared/effects/ledgerRows';

type ClaimOrder = { does: 'claim'; keys: string[]; holdMs: number };

/** The body of the call that starts the workflow. */
export type Order = { tableName?: string } & (
	| { does: 'read' | 'remove'; column: string; values: CellValue[] }
	| { does: 'insert'; rows: TableRow[]; over?: RowCondition[] }
	| { does: 'swap'; swaps: RowSwap[] }
	| { does: 'insertThenRead'; rows: TableRow[] }
	| ClaimOrder
);

export interface ClaimReport {
	key: string;
	kind: string;
	reference?: string;
}

export class LedgerDriver implements INodeType {
	description: INodeType['description'] = {
		displayName: 'Ledger Driver',
		name: 'ledgerDriver',
		group: ['transform'],
		version: 1,
		description: 'Part of a test',
		defaults: { name: 'Driver' },
		inputs: [NodeConnectionTypes.Main],
		outputs: [NodeConnectionTypes.Main],
		properties: [],
	};

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		const order = this.getInputData()[0]?.json.body as unknown as Order;
		// n8n's types exist twice here: those of test/e2e, and those of the package.
		const inline = this as unknown as InlineWorkflows;
		const spec = { ...LEDGER_TABLE, name: order.tableName ?? LEDGER_TABLE.name };
		const over = order.does === 'insert' ? order.over : undefined;
		const table = openTable(inline, spec, over && (() => over));
		const startedMs = Date.now();
		const result = await obey(order, table, this);
		return [[{ json: { result, ms: Date.now() - startedMs } as unknown as IDataObject }]];
	}
}

async function obey(order: Order, table: DataTable, context: IExecuteFunctions): Promise<Result<unknown>> {
	switch (order.does) {
		case 'read':
			return await table.read(order.column, order.values);
		case 'remove':
			return await table.remove(order.column, order.values);
		case 'insert':
			return await table.replace(order.rows, []);
		case 'swap':
			return await table.swap(order.swaps);
		case 'insertThenRead':
			return await table.insertThenRead(order.rows);
		case 'claim':
			return await claimAll(order, table, context);
	}
}

/** Claims all keys at once and, after a while, "makes" the tasks of those that it gets. */
async function claimAll(
	{ keys, holdMs }: ClaimOrder,
	table: DataTable,
	context: IExecuteFunctions,
): Promise<Result<ClaimReport[]>> {
	const executionId = context.getExecutionId();
	const workflowId = String(context.getWorkflow().id);
	const ledger = new TableLedger(
		{
			scope: `test ${workflowId} ${context.getNode().id}`,
			...{ workflowId, executionId, ttlMs: 3_600_000, sendAgain: false },
			deadlineMs: Date.now() + 120_000,
		},
		{
			table,
			clock: systemClock,
			random: Math.random,
			signal: new AbortController().signal,
			liveness: LIVENESS,
		},
	);
	const reports = await Promise.all(
		keys.map(async (key): Promise<ClaimReport> => {
			const answer = await ledger.claim({ key, payloadHash: 'same' });
			if (!answer.ok) return { key, kind: answer.failure.message };
			if (answer.value.kind === 'exists') return { key, kind: 'exists', reference: answer.value.reference };
			if (answer.value.kind !== 'mine') return { key, kind: answer.value.kind };
			await systemClock.sleep(holdMs);
			const reference = `execution ${executionId} made ${key}`;
			answer.value.held.sent(reference);
			return { key, kind: 'mine', reference };
		}),
	);
	const flushed = await ledger.flush();
	return flushed.ok ? { ok: true, value: reports } : flushed;
}
