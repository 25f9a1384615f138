import type { IExecuteFunctions } from 'n8n-workflow';

import { LIVENESS } from '../dataTable/claims';
import { UNTIL_EXPIRY } from '../dataTable/lifetime';
import { openTable } from '../dataTable/table';
import type { IdempotencyOptions } from '../form/sharedFields';
import type { RunFrame } from '../run/frame';
import { KeyedQueue } from '../time/keyedQueue';
import { TableLedger, type ClaimQueue, type LedgerSettings } from './ledger';
import { LEDGER_TABLE } from './ledgerRows';

const NOT_WRITTEN =
	'Some results could not be written to the Data Table flow_task_ledger. A later execution with the same idempotency keys may fail, because their outcome is unknown.';

/** The queues that all runs of this n8n process share. */
const QUEUE: ClaimQueue = new KeyedQueue();

/**
 * Opens the ledger of a node run, if the option "Idempotency Key" is added.
 * @param operation keeps keys apart: the same key may stand for a task and for a question to an agent
 */
export function openLedger(
	context: IExecuteFunctions,
	{ clock, signal, writeLast }: RunFrame,
	operation: 'task' | 'agent',
	idempotency: IdempotencyOptions | undefined,
	settings: Pick<LedgerSettings, 'sendAgain' | 'deadlineMs' | 'claimsAtOnce'>,
): TableLedger | undefined {
	if (!idempotency) return undefined;
	const workflowId = context.getWorkflow().id ?? '';
	// Two nodes with the same key each do their own work, unless the operator chose the whole project as the scope.
	const scope =
		idempotency.scope === 'project' ? operation : `${operation} ${workflowId} ${context.getNode().id}`;
	const ledger = new TableLedger(
		{ ...settings, scope, workflowId, executionId: context.getExecutionId(), ttlMs: idempotency.ttlMs },
		{
			table: openTable(context, LEDGER_TABLE, UNTIL_EXPIRY),
			clock,
			random: Math.random,
			signal,
			liveness: LIVENESS,
			// Workflows that were never saved cannot be told apart, so their runs share no queue.
			...(workflowId && { queue: QUEUE }),
		},
	);
	writeLast(async () => await ledger.flush(), NOT_WRITTEN);
	return ledger;
}
