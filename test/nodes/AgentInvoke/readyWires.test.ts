import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { NODE_NAME } from '../harness';
import { openScriptedAgent, OPTIONS, type ScriptedAgent } from './scriptedAgent';
import { CONTINUE } from './agent.fixture';

/** The descriptions that docs/wires/ offers, each against a server that answers as such a deployment does. */
let agent: ScriptedAgent;
beforeAll(async () => {
	agent = await openScriptedAgent();
});
afterAll(async () => {
	await agent.close();
});
beforeEach(() => {
	agent.reset();
});

const described = (name: string) => ({
	wire: 'described',
	description: readFileSync(join(__dirname, '../../../docs/wires', `${name}.json`), 'utf8'),
});
const event = (data: object | string, name = ''): string =>
	`${name && `event: ${name}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;

interface Deployment {
	readonly whole: object;
	readonly stream: string;
	/** The body of a message that goes on with a session. */
	readonly asked: (isStream: boolean) => object;
	readonly refusal: object;
	/** What waits for the result of a tool, and the body that brings it. */
	readonly waiting?: object;
	readonly resumed?: object;
}

const call = { id: 'c1', call_id: 'c1', type: 'function_call', name: 'refund', arguments: '{"order":7}' };

const DEPLOYMENTS: Readonly<Record<string, Deployment>> = {
	dify: {
		whole: { answer: 'Hi there', conversation_id: 's1', metadata: { usage: { total_tokens: 3 } } },
		stream:
			event({ event: 'agent_thought', thought: 'hm' }) +
			event({ event: 'message', answer: 'Hi ', conversation_id: 's1' }) +
			event({ event: 'ping' }) +
			event({ event: 'message', answer: 'there', conversation_id: 's1' }) +
			event({ event: 'message_end', metadata: { usage: { total_tokens: 3 } } }),
		asked: (isStream) => ({
			...{ query: 'hi', inputs: {}, user: 'n8n', conversation_id: 's1' },
			response_mode: isStream ? 'streaming' : 'blocking',
		}),
		refusal: { code: 'invalid_param', message: 'inputs is required', status: 400 },
	},
	coze: {
		whole: {
			...{ code: 0, msg: '' },
			conversation_id: 's1',
			messages: [
				{ type: 'verbose', content: 'x' },
				{ type: 'answer', content: 'Hi there' },
			],
		},
		stream:
			event({ conversation_id: 's1' }, 'conversation.chat.created') +
			event({ type: 'answer', content: 'Hi ', conversation_id: 's1' }, 'conversation.message.delta') +
			event({ type: 'verbose', content: '{}' }, 'conversation.message.completed') +
			event({ type: 'answer', content: 'there' }, 'conversation.message.delta') +
			event({ type: 'answer', content: 'Hi there' }, 'conversation.message.completed') +
			event('"[DONE]"', 'done'),
		asked: (stream) => ({
			additional_messages: [{ role: 'user', content_type: 'text', content: 'hi' }],
			...{ conversation_id: 's1', user_id: 'n8n', stream },
		}),
		refusal: { code: 4000, msg: 'The field is required' },
		waiting: {
			conversation_id: 's1',
			required_action: {
				submit_tool_outputs: {
					tool_calls: [{ id: 'c1', function: { name: 'refund', arguments: '{"order":7}' } }],
				},
			},
		},
		resumed: {
			...{ conversation_id: 's1', stream: false },
			tool_outputs: [{ tool_call_id: 'c1', output: '{"refunded":true}' }],
		},
	},
	responses: {
		whole: {
			id: 's1',
			output: [
				{ type: 'reasoning' },
				{ type: 'message', content: [{ type: 'output_text', text: 'Hi there' }] },
			],
			usage: { total_tokens: 3 },
		},
		stream:
			event({ response: { id: 's1' } }, 'response.created') +
			event({ delta: 'Hi ' }, 'response.output_text.delta') +
			event({ delta: 'there' }, 'response.output_text.delta') +
			event({ response: { id: 's1', usage: { total_tokens: 3 } } }, 'response.completed'),
		asked: (stream) => ({ input: 'hi', previous_response_id: 's1', stream }),
		refusal: { error: { code: 'invalid_request', message: 'input is required' } },
		waiting: { id: 's1', output: [call] },
		resumed: {
			input: [{ type: 'function_call_output', call_id: 'c1', output: '{"refunded":true}' }],
			...{ previous_response_id: 's1', stream: false },
		},
	},
};

describe.each(Object.entries(DEPLOYMENTS))('%s', (name, deployment) => {
	const settings = { ...CONTINUE, account: described(name) };

	test.each([false, true])('an answer, in the session that it goes on with (stream: %s)', async (stream) => {
		agent.answer((response) => {
			if (stream) response.setHeader('content-type', 'text/event-stream');
			response.end(stream ? deployment.stream : JSON.stringify(deployment.whole));
		});
		const run = await agent.ask({ stream, sessionMode: 'explicit', sessionId: 's1' }, settings);
		expect(run.output(NODE_NAME)[0]?.json).toMatchObject({ answer: 'Hi there', session: { id: 's1' } });
		expect(agent.calls).toEqual([deployment.asked(stream)]);
	});

	test('a stream without its end is no answer', async () => {
		const events = deployment.stream.split('\n\n').slice(0, -2);
		agent.answer((response) => {
			response.setHeader('content-type', 'text/event-stream');
			response.end(`${events.join('\n\n')}\n\n`);
		});
		const run = await agent.ask({ stream: true }, settings);
		expect(run.output(NODE_NAME)[0]?.json).toMatchObject({
			error: expect.stringContaining('broke off after 8 characters'),
			details: { mayHaveRun: true, answer: 'Hi there' },
		});
	});

	test("a client error is told with the deployment's own words, and nothing was run", async () => {
		agent.says(JSON.stringify(deployment.refusal), 400);
		const run = await agent.ask({}, settings);
		const { error, details } = run.output(NODE_NAME)[0]?.json ?? {};
		expect(error).toMatch(/^The platform refused the call: .* is required$/);
		expect(details).not.toHaveProperty('mayHaveRun');
	});
});

const WAITING = Object.entries(DEPLOYMENTS).filter(([, { waiting }]) => waiting !== undefined);

test.each(WAITING)('%s: a tool that is waited for, and its result', async (name, deployment) => {
	const settings = { ...CONTINUE, account: described(name) };
	agent.says(JSON.stringify(deployment.waiting));
	const [asked] = (await agent.ask({}, settings)).output(NODE_NAME, 1);
	expect(asked?.json).toMatchObject({
		interrupt: { id: 'c1', kind: 'tool', tool: 'refund', arguments: { order: 7 } },
	});
	agent.says(JSON.stringify(deployment.whole));
	const resume = { operation: 'resume', result: '{ "refunded": true }', options: OPTIONS };
	const run = await agent.ask(resume, settings, [{ json: asked?.json ?? {} }]);
	expect(run.output(NODE_NAME)[0]?.json).toMatchObject({ answer: 'Hi there' });
	expect(agent.calls.at(-1)).toEqual(deployment.resumed);
});
