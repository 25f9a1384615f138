import type { HarnessRun, ItemInput } from '../harness';
import type { DataTables } from '../harness/dataTables';

export const TABLE = 'flow_agent_turns';
export const RECORDED = { requestsPerSecond: 0, recordTurns: true };
export const MAPPED = { sessionMode: 'mapped', sessionKey: '={{ $json.key }}' };

export const said = (say: string, key = 'anna'): ItemInput => ({ json: { key, say } });

/** The outcome of each item of the first output: its error, or `answered`. */
export const messages = (run: HarnessRun): string[] =>
	run.items().map(({ json }) => (typeof json.error === 'string' ? json.error : 'answered'));

/** The operations on the table of turns so far, without those that remove expired rows. */
export const operationsOn = ({ operations }: DataTables): string[] =>
	operations
		.filter((one) => one.endsWith(TABLE) && !one.startsWith('sweep'))
		.map((one) => one.split(' ')[0]!);

/** Creates a table of the same name with other columns. */
export async function addForeignTable({ executeWorkflow, operations }: DataTables): Promise<void> {
	const parameters = {
		...{ resource: 'table', operation: 'create', tableName: TABLE },
		columns: { column: [{ name: 'mine', type: 'string' }] },
	};
	const nodes = [
		{ type: 'n8n-nodes-base.executeWorkflowTrigger' },
		{ type: 'n8n-nodes-base.dataTable', typeVersion: 1.1, parameters },
	];
	await executeWorkflow({ code: { nodes } } as never, {} as never, { inputData: [{ json: {} }] } as never);
	operations.length = 0;
}
