import type { IExecuteFunctions, INode } from 'n8n-workflow';

import { pollAndSleep } from '../../../../../nodes/FlowTask/actions/task/wait.suspended';

const NODE: INode = {
	...{ id: '1', name: 'Wait', type: 'flowTask', typeVersion: 1 },
	...{ position: [0, 0], parameters: {} },
};
const LED_BACK = { connectionsBySourceNode: { Wait: { main: [[{ node: 'Wait' }]] } } };

/** Waits in an n8n whose contexts have only these undocumented parts. @returns the error, and the hints */
async function waitIn(internals: object, settings: Partial<INode> = {}) {
	const hints: string[] = [];
	const context = {
		getNode: () => ({ ...NODE, ...settings }),
		getChildNodes: () => [],
		continueOnFail: () => false,
		addExecutionHints: ({ message }: { message: string }) => void hints.push(message),
		...internals,
	};
	const waiting = pollAndSleep(context as unknown as IExecuteFunctions, [], async () => [[]]);
	const error: unknown = await waiting.catch((thrown: unknown) => thrown);
	return { message: error instanceof Error ? error.message : '', hints };
}

test("an n8n that hides the connections is told from one in which 'Check Again' is not connected", async () => {
	const hidden = await waitIn({});
	expect(hidden.message).not.toContain('Check Again');
	expect(hidden.hints).toEqual([
		expect.stringContaining('This version of n8n does not show how nodes are connected.'),
	]);
	const unwired = await waitIn({ workflow: { connectionsBySourceNode: {} } });
	expect(unwired).toEqual({ message: expect.stringContaining("'Check Again' is not connected"), hints: [] });
});

test('with "Always Output Data", an n8n that hides the node from itself is refused before anything is sent', async () => {
	const always = { alwaysOutputData: true };
	const { message } = await waitIn({ workflow: LED_BACK }, always);
	expect(message).toContain('In this version of n8n the node cannot switch off "Always Output Data"');
	expect((await waitIn({ workflow: LED_BACK, node: {} }, always)).message).not.toContain('Always Output');
	expect((await waitIn({ workflow: LED_BACK })).message).not.toContain('Always Output');
});
