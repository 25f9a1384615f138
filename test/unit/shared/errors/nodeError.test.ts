import { NodeApiError, NodeOperationError, type IExecuteFunctions, type INode } from 'n8n-workflow';

import { throwFirst, toErrorItem, toNodeError } from '../../../../nodes/shared/errors/nodeError';
import type { Failure, FailureKind } from '../../../../nodes/shared/errors/failure';

const NODE: INode = {
	id: 'n1',
	name: 'FlowTask',
	type: 'n8n-nodes-flowtask.flowTask',
	typeVersion: 1,
	position: [0, 0],
	parameters: {},
};

const TOOL: INode = { ...NODE, type: 'n8n-nodes-flowtask.flowTaskTool' };

function failure(message: string, kind: FailureKind = 'taskFailed', details?: Failure['details']): Failure {
	return { kind, message, advice: 'Do this.', ...(details && { details }) };
}

const KINDS: FailureKind[] = [
	'badInput',
	'credential',
	'refused',
	'unreachable',
	'unclear',
	'taskFailed',
	'taskDenied',
	'taskUnknown',
	'timedOut',
	'stalled',
	'notSubmitted',
	'file',
	'cancelled',
];

describe('toNodeError', () => {
	// n8n replaces a message that contains one of these with a text of its own.
	it.each([
		'ECONNREFUSED',
		'ECONNRESET',
		'ENOTFOUND',
		'ETIMEDOUT',
		'ERRADDRINUSE',
		'EADDRNOTAVAIL',
		'ECONNABORTED',
		'EHOSTUNREACH',
		'EAI_AGAIN',
		'ENOENT',
		'EISDIR',
		'ENOTDIR',
		'EACCES',
		'EEXIST',
		'EPERM',
		'GETADDRINFO',
	])('keeps a message that contains %s', (code) => {
		for (const kind of KINDS) {
			const message = `Task t-1 failed on the platform: cannot write (${code})`;
			const error = toNodeError(NODE, failure(message, kind), 3);
			expect(error.message).toBe(message);
			expect(error.description).toBe('Do this.');
			expect(error.messages).toEqual([]);
		}
	});

	it.each([400, 401, 403, 404, 429, 500, 502, 503])('keeps its message with HTTP status %d', (httpStatus) => {
		const error = toNodeError(NODE, failure('A sentence', 'refused', { httpStatus }), 0);
		expect(error.message).toBe('A sentence');
		expect(error).toMatchObject({ httpCode: String(httpStatus), context: { httpStatus, itemIndex: 0 } });
	});

	it.each(['bad gateway', 'UNKNOWN ERROR - check the detailed error for more information', '500'])(
		'keeps the message "%s"',
		(message) => {
			expect(toNodeError(NODE, failure(message), 0).message).toBe(message);
		},
	);

	it('keeps advice that repeats the message', () => {
		expect(toNodeError(NODE, { kind: 'file', message: 'Same', advice: 'Same' }, 0).description).toBe('Same');
	});

	it.each(KINDS)('turns %s into an error of the service or of the node', (kind) => {
		const own = ['badInput', 'timedOut', 'stalled', 'notSubmitted', 'cancelled'].includes(kind);
		const error = toNodeError(NODE, failure('A sentence', kind), 0);
		expect(error).toBeInstanceOf(own ? NodeOperationError : NodeApiError);
	});

	it('names the item, even the first one', () => {
		expect(toNodeError(NODE, failure('A sentence'), 0).context.itemIndex).toBe(0);
		expect(toNodeError(NODE, failure('A sentence', 'badInput'), 7).context.itemIndex).toBe(7);
	});

	it('names no item if the whole run failed', () => {
		expect(toNodeError(NODE, failure('A sentence')).context.itemIndex).toBeUndefined();
		expect(toNodeError(NODE, failure('A sentence', 'badInput')).context.itemIndex).toBeUndefined();
	});

	it.each(['badInput', 'refused'] as const)(
		'has no tags of others in its texts if it is of kind %s',
		(kind) => {
			const { message, description } = toNodeError(NODE, {
				...failure('It said: <a>', kind),
				advice: 'x <b>',
			});
			expect([message, description]).toEqual(['It said: ‹a>', 'x ‹b>']);
		},
	);

	it('has the details and the additions of the caller in its context', () => {
		const error = toNodeError(NODE, failure('A sentence', 'timedOut', { taskId: 't' }), 1, {
			tasks: ['t', 'u'],
		});
		expect(error.context).toMatchObject({ taskId: 't', tasks: ['t', 'u'], itemIndex: 1 });
	});
});

describe('toErrorItem', () => {
	it('has exactly the three keys that n8n routes to the error output, and no error of its own', () => {
		const item = toErrorItem(NODE, failure('A sentence', 'timedOut', { taskId: 't', status: 'queued' }), 4);
		expect(item).toEqual({
			json: {
				error: 'A sentence',
				message: 'Do this.',
				details: { kind: 'timedOut', taskId: 't', status: 'queued' },
			},
			pairedItem: { item: 4 },
		});
		expect(Object.keys(item)).toEqual(['json', 'pairedItem']);
	});

	it.each(KINDS)('has the three keys for %s, even without details', (kind) => {
		const item = toErrorItem(NODE, failure('A sentence', kind), 0);
		expect(Object.keys(item.json).sort()).toEqual(['details', 'error', 'message']);
	});

	it('gives an agent the message and the advice in one text', () => {
		expect(toErrorItem(TOOL, failure('A sentence'), 0).json.message).toBe(
			'A sentence. (For the operator of this workflow, not for the user: Do this.)',
		);
		expect(toErrorItem(TOOL, failure('A sentence.'), 0).json.message).toMatch(/^A sentence\. \(/);
		const bare: Failure = { kind: 'cancelled', message: 'Stopped', advice: '' };
		expect(toErrorItem(TOOL, bare, 0).json).toMatchObject({ error: 'Stopped' });
	});
});

describe('throwFirst', () => {
	const contextOf = (goesOn: boolean) =>
		({
			continueOnFail: () => goesOn,
			getNode: () => NODE,
			getInputData: () => Array.from({ length: 20 }),
		}) as unknown as IExecuteFunctions;
	const failed = [
		{ itemIndex: 0, failure: failure('Not begun', 'notSubmitted') },
		{ itemIndex: 1, failure: failure('Stopped', 'cancelled') },
		{ itemIndex: 2, failure: failure('The cause'), words: 'a red fox' },
		{ itemIndex: 3, failure: failure('Another') },
		{ itemIndex: 8, failure: failure('Another'), words: 'a boat' },
	];
	const thrownBy = (...args: Parameters<typeof throwFirst>): unknown => {
		try {
			throwFirst(...args);
			return undefined;
		} catch (error) {
			return error;
		}
	};

	it('throws the first failure that is not a consequence of another', () => {
		const more = { advice: ['', 'Others went well.'], context: { tasks: ['t'] } };
		expect(thrownBy(contextOf(false), failed, more)).toMatchObject({
			message: 'The cause',
			description:
				'Do this. This is row 3 ("a red fox"). Rows 4 and 9 ("a boat") also failed. Others went well.',
			context: { itemIndex: 2, tasks: ['t'] },
		});
		expect(thrownBy(contextOf(false), failed.slice(0, 2))).toMatchObject({ message: 'Not begun' });
	});
});
