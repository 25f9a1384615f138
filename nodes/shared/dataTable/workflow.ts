import type { INodeParameters, IWorkflowBase } from 'n8n-workflow';

/*
 * n8n lets no node but its own reach Data Tables, so its own node is run, in a workflow made for the purpose.
 *
 * The JSON of that workflow holds no value: n8n evaluates every parameter that starts with "=", and values
 * come from outside. They travel as input items, which are never evaluated.
 */

export interface TableColumn {
	/** Never `id`, `createdAt` or `updatedAt`: these are n8n's own. */
	readonly name: string;
	readonly type: 'string' | 'number' | 'boolean';
}

export interface TableSpec {
	readonly name: string;
	readonly columns: readonly TableColumn[];
}

/** Parameters of a Data Table node. */
export interface RowWork extends INodeParameters {
	operation: string;
}
export interface Work extends RowWork {
	resource: 'row' | 'table';
}

export const INSERT: RowWork = {
	operation: 'insert',
	columns: { mappingMode: 'autoMapInputData', value: {}, schema: [] },
	// One statement for many rows, instead of two a row.
	options: { optimizeBulk: true },
};

/** Each input item says which rows it is about, and what they are to hold. */
export function updating(keyName: string): RowWork {
	return {
		operation: 'update',
		matchType: 'allConditions',
		filters: { conditions: [{ keyName, condition: 'eq', keyValue: `={{ $json.${keyName} }}` }] },
		columns: { mappingMode: 'autoMapInputData', value: {}, schema: [] },
	};
}

/** The values are those of the one input item; here stand their places only. */
export function selection(
	operation: 'get' | 'deleteRows',
	keyName: string,
	condition: 'eq' | 'lt',
	values: readonly unknown[],
): RowWork {
	const conditions = values.map((_, index) => ({
		keyName,
		condition,
		keyValue: `={{ $json.v[${index}] }}`,
	}));
	return {
		operation,
		matchType: 'anyCondition',
		filters: { conditions },
		...(operation === 'get' && { returnAll: true }),
	};
}

export function listing(filterName: string): Work {
	return { resource: 'table', operation: 'list', returnAll: true, options: { filterName } };
}

export function creation({ name, columns }: TableSpec): Work {
	return {
		resource: 'table',
		operation: 'create',
		tableName: name,
		columns: { column: columns.map((column) => ({ ...column })) },
		options: { createIfNotExists: true },
	};
}

/** n8n writes into what it is handed, so it is made anew each time. It runs in the project of the caller. */
export function inlineWorkflow(name: string, parameters: INodeParameters): IWorkflowBase {
	const now = new Date();
	return {
		id: '',
		name,
		active: false,
		activeVersionId: null,
		isArchived: false,
		createdAt: now,
		updatedAt: now,
		nodes: [
			{
				id: 'input',
				name: 'Input',
				type: 'n8n-nodes-base.executeWorkflowTrigger',
				typeVersion: 1.1,
				position: [0, 0],
				parameters: { inputSource: 'passthrough' },
			},
			{
				id: 'table',
				name: 'Table',
				type: 'n8n-nodes-base.dataTable',
				typeVersion: 1.1,
				position: [200, 0],
				parameters,
			},
		],
		connections: { Input: { main: [[{ node: 'Table', type: 'main', index: 0 }]] } },
		settings: {
			executionOrder: 'v1',
			callerPolicy: 'any',
			saveDataSuccessExecution: 'none',
			saveDataErrorExecution: 'none',
			saveExecutionProgress: false,
			saveManualExecutions: false,
		},
	};
}
