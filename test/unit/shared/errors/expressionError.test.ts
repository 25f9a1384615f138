import fc from 'fast-check';
import { ExpressionError, NodeApiError, NodeOperationError, type INode } from 'n8n-workflow';

import { asNodeError } from '../../../../nodes/shared/errors/nodeError';
import { badInput, fail, ok } from '../../../../nodes/shared/errors/failure';
import { explainExpressionError, readItem } from '../../../../nodes/shared/errors/expressionError';

const NODE: INode = {
	...{ id: '1', name: 'FlowTask', type: 'flowTask', typeVersion: 1 },
	...{ position: [0, 0], parameters: {} },
};

function thrown(error: unknown): () => never {
	return () => {
		throw error;
	};
}

describe('readItem', () => {
	it('passes on the result, even a failure', () => {
		expect(readItem(() => ok(7))).toEqual(ok(7));
		const failure = badInput('No', 'Do');
		expect(readItem(() => fail(failure))).toEqual(fail(failure));
	});

	it("turns what n8n throws into the item's failure", () => {
		expect(readItem(thrown(new ExpressionError('Node "A" has not run')))).toMatchObject({
			ok: false,
			failure: {
				kind: 'badInput',
				message: 'n8n could not read the fields for this item: Node "A" has not run',
				advice: expect.stringContaining('Nothing was sent for this item.'),
			},
		});
	});

	it('never throws, whatever is thrown', () => {
		fc.assert(
			fc.property(fc.anything({ withBigInt: true, withNullPrototype: true }), (error) => {
				expect(readItem(thrown(error))).toMatchObject({ ok: false, failure: { kind: 'badInput' } });
			}),
		);
	});
});

describe('explainExpressionError', () => {
	it('names the parameter and keeps the description', () => {
		const error = new ExpressionError('No path back', {
			...{ parameter: 'workflowId', description: 'The node <strong>is</strong> not connected.' },
		});
		expect(explainExpressionError(error)).toEqual({
			kind: 'badInput',
			message: "n8n could not read 'workflowId' for this item: No path back",
			advice:
				"The node is not connected. Check the expressions in the node's fields. Nothing was sent for this item.",
		});
	});

	it.each([
		[
			'Invalid expression',
			'No path back to referenced node',
			'No path back to referenced node ("Elsewhere")',
		],
		["Referenced node doesn't exist", undefined, 'Referenced node doesn\'t exist ("Elsewhere")'],
		[
			"Node 'Elsewhere' hasn't been executed",
			'Consider {{nodeName}}',
			"Node 'Elsewhere' hasn't been executed",
		],
	])(
		'says of "%s" what n8n says only in its context, and which node it is about',
		(said, template, words) => {
			const error = new ExpressionError(said, { messageTemplate: template, nodeCause: 'Elsewhere' });
			expect(explainExpressionError(error).message).toBe(
				`n8n could not read the fields for this item: ${words}`,
			);
		},
	);

	it.each<[string, unknown]>([
		['nothing', undefined],
		['text', 'oops'],
		['an object', { message: 'oops' }],
		['an error without a message', new Error('')],
	])('says that no reason was given for %s', (_name, error) => {
		expect(explainExpressionError(error).message).toBe(
			'n8n could not read the fields for this item: no reason was given',
		);
	});

	it.each<[string, object]>([
		['a context that is null', { context: null }],
		['a context that is text', { context: 'parameter' }],
		['a context without a parameter', { context: {} }],
		['a parameter that is not text', { context: { parameter: 7 } }],
		['a description that is not text', { context: {}, description: { a: 1 } }],
	])('tolerates %s', (_name, over) => {
		expect(explainExpressionError(Object.assign(new Error('x'), over))).toEqual({
			kind: 'badInput',
			message: 'n8n could not read the fields for this item: x',
			advice: "Check the expressions in the node's fields. Nothing was sent for this item.",
		});
	});

	it('shortens the message and the description', () => {
		const error = Object.assign(new Error('m'.repeat(9_999)), { description: 'd'.repeat(9_999) });
		expect(explainExpressionError(error).message.length).toBeLessThan(400);
		expect(explainExpressionError(error).advice.length).toBeLessThan(500);
	});

	it.each([new TypeError('a is not a function'), new RangeError('stack'), new ReferenceError('b')])(
		"does not blame the workflow for the node's own error: %s",
		(error) => {
			const { message, advice } = explainExpressionError(error);
			expect(message).toContain(error.message);
			expect(message).not.toContain('could not read');
			expect(advice).toContain('Your workflow is not the cause');
		},
	);
});

describe('asNodeError', () => {
	it('passes on the errors of the node itself', () => {
		for (const error of [new NodeOperationError(NODE, 'a'), new NodeApiError(NODE, { message: 'b' })])
			expect(asNodeError(NODE, error)).toBe(error);
	});

	it('says what to do about any other error', () => {
		const error = asNodeError(NODE, new Error('Broken'));
		expect(error).toBeInstanceOf(NodeOperationError);
		expect(error.message).toContain('Broken');
		expect(error.description).toContain('Check the expressions');
		expect(error.node).toBe(NODE);
		expect(asNodeError(NODE, null).message).toContain('no reason was given');
	});
});
