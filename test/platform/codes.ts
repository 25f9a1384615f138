/**
 * The `code` values of the answers. The interface shows only that 0 is success, so all the others are invented; a client
 * must not rely on them.
 */
export const CODES = {
	success: 0,
	badBody: 40001,
	badWorkflowId: 40002,
	badPrompt: 40003,
	fullExport: 40004,
	parameterView: 40005,
	linkOverride: 40006,
	unknownNode: 40007,
	unknownParameter: 40008,
	wrongType: 40009,
	outOfRange: 40010,
	notInList: 40011,
	unknownImage: 40012,
	badTaskIds: 40021,
	badExpirePeriod: 40022,
	fileMissing: 40031,
	fileEmpty: 40032,
	notAnImage: 40033,
	fileTooLarge: 40034,
	unauthorized: 40100,
	foreignWorkflow: 40301,
	unknownWorkflow: 40401,
	unknownPath: 40400,
	tooManyRequests: 42900,
	internal: 50000,
} as const;

/** The answer body of every HTTP call of the workflow service. */
export interface Envelope {
	code: number;
	msg: string;
	data?: unknown;
}

export function success(data: unknown): Envelope {
	return { code: CODES.success, msg: 'Success', data };
}

export function refusal(code: number, msg: string): Envelope {
	return { code, msg, data: null };
}
