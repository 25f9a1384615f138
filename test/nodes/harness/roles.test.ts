import { createHarness, type Harness, type WorkflowJson } from '.';
import { Adder, Ticker } from './sample.nodes';

/* Nodes in their other roles: as the trigger of an active workflow and as a tool of an agent. */

let harness: Harness;

beforeAll(async () => {
	harness = await createHarness({ package: false, nodes: [Adder, Ticker] });
});

afterAll(async () => await harness.close());

describe('a trigger', () => {
	const workflow: WorkflowJson = {
		nodes: [
			{ name: 'Ticker', type: 'harness.ticker' },
			{ name: 'After', type: 'harness.noOp' },
		],
		connections: { Ticker: { main: [[{ node: 'After', type: 'main', index: 0 }]] } },
	};

	test('starts an execution per emit in an active workflow, skips a known key, and is closed by emitError', async () => {
		const active = await harness.activate({ workflow });
		const error = await active.waitForFatalError();

		expect(error?.message).toBe('The other side hung up');
		expect(active.runs.map((run) => run.output('After')[0]?.json)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
		expect(active.runs.map(({ status }) => status)).toEqual(['success', 'success', 'success']);
		const lines = active.logs.filter(({ level }) => level === 'info').map(({ message }) => message);
		expect(lines).toEqual(['Listening', 'Closed']);
	});

	test('outputs one event in a manual run and is closed', async () => {
		const run = await harness.run({ workflow, mode: 'manual' });

		expect(run.status).toBe('success');
		expect(run.output('After')[0]?.json).toEqual({ n: 1 });
		expect(run.logs.map(({ message }) => message)).toContain('Closed');
	});
});

describe('a tool', () => {
	const agent = (parameters: Record<string, string>, args: string): WorkflowJson => ({
		nodes: [
			{ name: 'Start', type: 'harness.trigger' },
			{ name: 'Agent', type: 'harness.agent', parameters: { args } },
			{ name: 'Adder', type: 'harness.adderTool', parameters },
		],
		connections: {
			Start: { main: [[{ node: 'Agent', type: 'main', index: 0 }]] },
			Adder: { ai_tool: [[{ node: 'Agent', type: 'ai_tool', index: 0 }]] },
		},
	});
	const fromModel = { a: "={{ $fromAI('a', 'first', 'string') }}", b: '2' };

	test('gets $fromAI values from the model, and answers with the JSON of the first output', async () => {
		const run = await harness.run({ workflow: agent(fromModel, '{ "a": "40" }') });

		expect(run.error).toBeUndefined();
		expect(run.output('Agent')[0]?.json).toEqual({
			tool: 'Adder',
			description: 'Adds two numbers',
			answer: '[{"sum":42,"as":"harness.adderTool"}]',
		});
		expect(run.runs('Adder')[0]?.data?.ai_tool?.[0]?.[0]?.json).toEqual({
			response: [{ sum: 42, as: 'harness.adderTool' }],
		});
	});

	test('reports an error to the agent with its description in the message', async () => {
		const run = await harness.run({ workflow: agent(fromModel, '{ "a": "many" }') });

		expect(run.status).toBe('error');
		expect(run.error?.message).toBe('No numbers\n\nDetails: Give digits');
	});

	test('must be a node that is usable as a tool', async () => {
		const workflow = agent({}, '{}');
		const nodes = workflow.nodes.map((node) =>
			node.name === 'Adder' ? { ...node, type: 'harness.setTool' } : node,
		);

		await expect(harness.run({ workflow: { ...workflow, nodes } })).rejects.toThrow(
			'cannot be used as a tool',
		);
	});
});
