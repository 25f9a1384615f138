import { TURN_TABLE } from '../../nodes/AgentInvoke/turnLog/turnLog';
import { SESSION_TABLE } from '../../nodes/AgentInvoke/sessions/sessionRows';
import { TASK_TABLE } from '../../nodes/FlowTask/taskLog/taskRows';
import { LEDGER_TABLE } from '../../nodes/shared/effects/ledgerRows';
import type { TableSpec } from '../../nodes/shared/dataTable/table';
import { until } from '../until';
import { harnessWorkflowId } from './harness/dataTables';
import { sharedStage, type PlatformStage } from './harness/stage';
import { openAgentStage } from './AgentInvoke/agent.fixture';
import { openStage } from './FlowTask/flowTask.fixture';

const DAY_MS = 86_400_000;
const ago = (days: number): string => new Date(Date.now() - days * DAY_MS).toISOString();

const agents = sharedStage(openAgentStage);
const tasks = sharedStage(openStage);

/** Creates a table with rows of these ages in days. */
function seed({ tables }: PlatformStage, table: TableSpec, days: readonly number[]): void {
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

const left = ({ tables }: PlatformStage, { name }: TableSpec): unknown[] =>
	tables.rows(name).flatMap(({ executionId }) => /^of .*/.exec(String(executionId)) ?? []);

const MAPPED = { sessionMode: 'mapped', sessionKey: 'anna' };
const PAINT = { options: { recordTasks: 'always' } };

test.each([
	['turns', agents, TURN_TABLE, { ...MAPPED, options: { recordTurns: true } }, [89]],
	[
		...(['turns with the option', agents, TURN_TABLE] as const),
		{ ...MAPPED, options: { recordTurns: true, recordLifetimeDays: 30 } },
		[],
	],
	['tasks', tasks, TASK_TABLE, PAINT, [89]],
	[
		...(['tasks with the option', tasks, TASK_TABLE] as const),
		{ options: { ...PAINT.options, recordLifetimeDays: 0 } },
		[89, 91],
	],
	['keys of tasks', tasks, LEDGER_TABLE, { limits: { idempotencyKey: 'k' } }, []],
	['keys of questions', agents, LEDGER_TABLE, { ...MAPPED, options: { idempotencyKey: 'k' } }, []],
] as const)('expired %s are removed when new ones are written', async (_, stage, table, parameters, days) => {
	seed(stage, table, [89, 91]);
	const run = await stage.run([{ json: { say: 'hello', prompt: 'a cat' } }], parameters);
	expect(run.error).toBeUndefined();
	const expected = days.map((age) => `of ${age} days`);
	await until(() => left(stage, table).length === expected.length);
	expect(left(stage, table)).toEqual(expected);
});

test('expired sessions are removed when new ones are written, even if the execution that opened them died', async () => {
	const expiresAtMs = Date.now() - DAY_MS;
	agents.tables.seed(SESSION_TABLE, [
		{ sessionKey: 'over', owner: 'free', expiresAtMs, updatedAt: ago(2) },
		{ sessionKey: 'opener died', owner: 'somebody', expiresAtMs, updatedAt: ago(2) },
		{ sessionKey: 'opener lives', owner: 'somebody', expiresAtMs, updatedAt: ago(0) },
		{ sessionKey: 'counts', owner: 'free', expiresAtMs: Date.now() + DAY_MS, updatedAt: ago(2) },
	]);
	await agents.run([{ json: { say: 'hello' } }], MAPPED);
	const keys = (): unknown[] => agents.tables.rows(SESSION_TABLE.name).map(({ sessionKey }) => sessionKey);
	await until(() => keys().length === 3);
	expect(keys()).toEqual(['opener lives', 'counts', 'anna']);
});
