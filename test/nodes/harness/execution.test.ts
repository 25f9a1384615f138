import {
	NodeOperationError,
	type IExecuteFunctions,
	type INodeExecutionData,
	type INodeType,
} from 'n8n-workflow';
import { readFileSync } from 'node:fs';
import { createHarness, singleNode, type Harness } from '.';
import { describedNode } from './stock.nodes';

/* n8n's behavior around a node. The package relies on it, so a new n8n that differs must fail here. */

/** Outputs one error item in each form that a node could use. */
class ErrorItems implements INodeType {
	description = describedNode({ name: 'errorItems' });

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		const details = { taskId: 't-42', status: 4 };
		const error = new NodeOperationError(this.getNode(), 'Task t-42 failed');
		return [
			[
				{ json: { error: 'Task t-42 failed', message: 'Look at it', details }, pairedItem: { item: 0 } },
				{ json: { error: 'Task t-41 failed' }, pairedItem: 0 },
				{ json: { taskId: 't-42' }, error, pairedItem: 0 },
				{ json: { error: 'Task t-42 failed', taskId: 't-42' }, pairedItem: 0 },
				{ json: { taskId: 't-43' }, pairedItem: 0 },
			],
		];
	}
}

/** Throws regardless of "On Error". */
class Thrower implements INodeType {
	description = describedNode({ name: 'thrower' });

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		throw new NodeOperationError(this.getNode(), 'Thrown all the same');
	}
}

let harness: Harness;
beforeAll(async () => {
	harness = await createHarness({ nodes: [ErrorItems, Thrower] });
});
afterAll(async () => await harness.close());

const items = [{ json: { i: 0 } }];

test('an error of Node itself is an Error, but not an instance of another class', () => {
	expect.assertions(3);
	expect(AbortSignal.abort().reason).toBeInstanceOf(Error);
	try {
		readFileSync('/nowhere');
	} catch (error) {
		expect(error).toBeInstanceOf(Error);
		expect(error).not.toBeInstanceOf(TypeError);
	}
});

test('only json with error, message and details reaches the error output unchanged', async () => {
	const outputs = [['Good'], ['Bad']];
	const workflow = singleNode({ type: 'harness.errorItems', onError: 'continueErrorOutput', outputs });
	const run = await harness.run({ workflow, items });
	const details = { taskId: 't-42', status: 4 };

	expect(run.output('Bad').map(({ json }) => json)).toEqual([
		{ i: 0, error: 'Task t-42 failed', message: 'Look at it', details },
		// This item is paired by a number, not by { item }, so n8n does not merge it into the input's json.
		{ error: 'Task t-41 failed' },
		// This item had `error` set: n8n routed it and then replaced its json, so the task ID is gone.
		{ error: 'Task t-42 failed' },
	]);
	expect(run.output('Good').map(({ json }) => json)).toEqual([
		{ error: 'Task t-42 failed', taskId: 't-42' },
		{ taskId: 't-43' },
	]);
});

test('item.error replaces the json even without an error output', async () => {
	const workflow = singleNode({ type: 'harness.errorItems', onError: 'continueRegularOutput' });
	const run = await harness.run({ workflow, items });

	expect(run.jsons()).toContainEqual({ error: 'Task t-42 failed' });
	expect(run.items()).toHaveLength(5);
});

test('a thrown error outputs the input at the first output as if it had succeeded', async () => {
	const outputs = [['Good'], ['Bad']];
	const workflow = singleNode({ type: 'harness.thrower', onError: 'continueErrorOutput', outputs });
	const run = await harness.run({ workflow, items });

	expect(run.status).toBe('success');
	expect(run.output('Good').map(({ json }) => json)).toEqual([{ i: 0 }]);
	expect(run.output('Bad')).toEqual([]);
});
