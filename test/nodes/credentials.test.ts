import { createHarness, singleNode, type Harness } from './harness';

/* The error for a missing credential says that it is missing, and does not mention expressions. */

let harness: Harness;
beforeAll(async () => {
	harness = await createHarness();
});
afterAll(async () => {
	await harness.close();
});

const PROMPT = { workflowId: 'wf' };
const MESSAGES = { messages: { message: [{ role: 'user', content: 'x' }] } };

describe.each([
	['flowTask', 'flowPlatformApi', 'FlowPlatform API', { operation: 'submit', ...PROMPT }],
	[
		'chatCompletion',
		'flowPlatformApi',
		'FlowPlatform API',
		{ model: { __rl: true, mode: 'id', value: 'm' }, ...MESSAGES },
	],
	['agentInvoke', 'flowAgentApi', 'FlowAgent API', { message: 'x', sessionMode: 'new' }],
	['agentBridge', 'flowBridgeApi', 'FlowBridge API', { operation: 'send', frame: '{}' }],
])('%s', (node, type, name, parameters) => {
	test.each([
		['deleted', { [type]: { id: 'gone', name: 'Gone' } }, /does not exist/],
		['not selected', {}, /credential/i],
	])('a credential that is %s', async (_name, credentials, said) => {
		const workflow = singleNode({
			type: `n8n-nodes-flowtask.${node}`,
			parameters,
			credentials,
			onError: 'continueRegularOutput',
		});
		const run = await harness.run({ workflow, items: [{ json: {} }], credentials: {} });
		const [item] = run.items();
		expect(item?.json).toMatchObject({
			error: expect.stringContaining(`n8n could not read the node's ${name} credential`),
			message: expect.stringContaining(`Select a ${name} credential in this node`),
			details: { kind: 'credential' },
		});
		expect(item?.json.error).toMatch(said);
		expect(JSON.stringify(item)).not.toMatch(/expression/);
	});
});
