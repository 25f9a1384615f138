import type { INodeParameters } from 'n8n-workflow';

import { TURN_TABLE } from '../../nodes/AgentInvoke/turnLog/turnLog';
import { SESSION_TABLE } from '../../nodes/AgentInvoke/sessions/sessionRows';
import { TASK_TABLE } from '../../nodes/FlowTask/taskLog/taskRows';
import { LEDGER_TABLE } from '../../nodes/shared/idempotency/rows';
import type { TableSpec } from '../../nodes/shared/dataTable/table';
import { until } from '../until';
import { openAgentStage, type AgentStage } from './AgentInvoke/agent.fixture';
import { openStage, prompts, type Stage } from './FlowTask/flowTask.fixture';
import { createDataTables, harnessWorkflowId, type DataTables } from './harness/dataTables';

const DAY_MS = 86_400_000;
const ago = (days: number): string => new Date(Date.now() - days * DAY_MS).toISOString();

let agents: AgentStage;
let tasks: Stage;
let tables: DataTables;
beforeAll(async () => {
	agents = await openAgentStage();
	tasks = await openStage();
});
afterAll(async () => {
	await agents.close();
	await tasks.close();
});
beforeEach(() => {
	tables = createDataTables();
});

/** Creates a table with rows of these ages in days. */
function seed(table: TableSpec, days: readonly number[]): void {
	const hasEnd = table.columns.some(({ name }) => name === 'expiresAtMs');
	tables.seed(
		table,
		days.map((age) => ({
			workflowId: harnessWorkflowId(),
			executionId: `of ${age} days`,
			updatedAt: ago(age),
			...(hasEnd && { expiresAtMs: Date.now() - (age - 50) * DAY_MS }),
		})),
	);
}

const left = ({ name }: TableSpec): unknown[] =>
	tables
		.rows(name)
		.flatMap(({ executionId }) => (String(executionId).startsWith('of ') ? [executionId] : []));

async function ask(options: Record<string, string | number | boolean>): Promise<void> {
	const run = await agents.run(
		[{ json: { key: 'anna', say: 'hello' } }],
		{ sessionMode: 'mapped', sessionKey: '={{ $json.key }}', options },
		{ executeWorkflow: tables.executeWorkflow },
	);
	expect(run.error).toBeUndefined();
}

async function paint(parameters: INodeParameters): Promise<void> {
	const run = await tasks.harness.run({
		workflow: tasks.workflow(parameters),
		items: prompts(1),
		credentials: tasks.credentials,
		executeWorkflow: tables.executeWorkflow,
	});
	expect(run.error).toBeUndefined();
}

test.each([
	['turns', TURN_TABLE, async () => await ask({ recordTurns: true }), [89]],
	[
		'turns with the option',
		TURN_TABLE,
		async () => await ask({ recordTurns: true, recordLifetimeDays: 30 }),
		[],
	],
	['tasks', TASK_TABLE, async () => await paint({ options: { recordTasks: 'always' } }), [89]],
	[
		'tasks with the option',
		TASK_TABLE,
		async () => await paint({ options: { recordTasks: 'always', recordLifetimeDays: 0 } }),
		[89, 91],
	],
	['keys of tasks', LEDGER_TABLE, async () => await paint({ limits: { idempotencyKey: 'k' } }), []],
	['keys of questions', LEDGER_TABLE, async () => await ask({ idempotencyKey: 'k' }), []],
] as const)('expired %s are removed when new ones are written', async (_, table, work, days) => {
	seed(table, [89, 91]);
	await work();
	const expected = days.map((age) => `of ${age} days`);
	await until(() => left(table).length === expected.length);
	expect(left(table)).toEqual(expected);
});

test('expired sessions are removed when new ones are written, even if the execution that opened them died', async () => {
	const expiresAtMs = Date.now() - DAY_MS;
	tables.seed(SESSION_TABLE, [
		{ sessionKey: 'over', owner: 'free', expiresAtMs, updatedAt: ago(2) },
		{ sessionKey: 'opener died', owner: 'somebody', expiresAtMs, updatedAt: ago(2) },
		{ sessionKey: 'opener lives', owner: 'somebody', expiresAtMs, updatedAt: ago(0) },
		{ sessionKey: 'counts', owner: 'free', expiresAtMs: Date.now() + DAY_MS, updatedAt: ago(2) },
	]);
	await ask({});
	const keys = (): unknown[] => tables.rows(SESSION_TABLE.name).map(({ sessionKey }) => sessionKey);
	await until(() => keys().length === 3);
	expect(keys()).toEqual(['opener lives', 'counts', 'anna']);
});
