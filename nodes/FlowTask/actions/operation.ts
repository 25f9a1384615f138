import type { IExecuteFunctions, INodeExecutionData, INodeProperties } from 'n8n-workflow';

/** One operation: its form fields beside what it does with all input items of a run. */
export interface Operation {
	readonly value: string;
	readonly name: string;
	readonly description: string;
	/** "Verb a thing", as n8n's node creator lists it. */
	readonly action: string;
	readonly fields: readonly INodeProperties[];
	execute(context: IExecuteFunctions): Promise<INodeExecutionData[][]>;
}

export interface Resource {
	readonly value: string;
	readonly name: string;
	readonly operations: readonly Operation[];
}
