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
