import type { Operation } from '../../shared/form/operation';

export type { Operation };

export interface Resource {
	readonly value: string;
	readonly name: string;
	readonly operations: readonly Operation[];
}
