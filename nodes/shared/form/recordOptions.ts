import { defineOptions } from './options';

const MS_PER_DAY = 86_400_000;

export function recordOptions(tableName: string) {
	return defineOptions({
		recordLifetimeDays: {
			displayName: 'Record Lifetime (Days)',
			name: 'recordLifetimeDays',
			type: 'number',
			default: 90,
			typeOptions: { minValue: 0, maxValue: 3_650 },
			description: `How long rows of this workflow stay in the Data Table ${tableName} after their last change. Rows changed in the last 8 days are always kept. 0 means forever.`,
		},
	});
}

export function recordLifetimeMs(days: number): number {
	return days * MS_PER_DAY;
}
