import { countTokens, tokenParts } from '../../../../nodes/shared/usage/budgetMessages';
import { wireRequest } from '../../../../nodes/AgentInvoke/wire/request';
import { valueOf } from '../../results';
import { body, event, read, wireOf, wireText } from './wires';

/* What the descriptions in docs/wires/ make of answers that the stand-ins for the products do not give. */

const a2a = wireOf(wireText('a2a'));
const adk = wireOf(wireText('adk'));
const coze = wireOf(wireText('coze'));
const dify = wireOf(wireText('dify'));
const langgraph = wireOf(wireText('langgraph'));
const mastra = wireOf(wireText('mastra'));
const responses = wireOf(wireText('responses'));

describe('a ready description reads', () => {
	const chunk = (text: string) => ({ type: 'AIMessageChunk', content: [{ type: 'text', text, index: 0 }] });
	const end = event('null', 'end');

	const update = (...messages: object[]) => event({ model: { messages } }, 'updates');
	const asking = (...interrupts: object[]) => event({ __interrupt__: interrupts }, 'updates');

	test("LangGraph's messages of several parts, from both of its servers", () => {
		for (const type of ['AIMessageChunk', 'ai']) {
			const pieces = ['He', 'llo'].map((text) =>
				event([{ ...chunk(text), type }, { thread_id: 't' }], 'messages'),
			);
			expect(read(langgraph, pieces)).toMatchObject({ failure: { kind: 'brokeOff', text: 'Hello' } });
			const tool = { type: 'tool', content: 'found' };
			const whole = update(tool, { ...chunk('Hello!'), type: 'ai' });
			const value = { answer: 'Hello!', sessionId: 't' };
			expect(read(langgraph, [...pieces, whole, end])).toMatchObject({ value });
		}
	});

	const piece = (content: string) => event([{ type: 'ai', content }, { thread_id: 't' }], 'messages');
	const said = (content: string, more: object = {}) => ({ type: 'ai', content, ...more });

	test('only what becomes a message of the state of LangGraph, in any form', () => {
		const classified = [piece('CATEGORY 3'), event({ triage: { topic: 'CATEGORY 3' } }, 'updates')];
		const forms = [{ role: 'assistant' }, { role: 'ai' }, { type: 'AIMessageChunk' }];
		for (const message of [said('Hello'), ...forms.map((form) => ({ ...form, content: 'Hello' }))])
			expect(read(langgraph, [...classified, update(message)])).toMatchObject({ value: { answer: 'Hello' } });
		const alone = event({ model: { messages: said('Hello') } }, 'updates');
		expect(read(langgraph, [alone])).toMatchObject({ value: { answer: 'Hello' } });
		expect(read(langgraph, classified)).toMatchObject({ failure: { kind: 'brokeOff' } });
	});

	test('no answer of LangGraph that ends between two models, or between a tool and its result', () => {
		const first = update(said('Let me look.', { tool_calls: [{ name: 'look', args: {} }] }));
		const found = event({ tools: { messages: [{ type: 'tool', content: 'found' }] } }, 'updates');
		const last = update(said('It is 7.'));
		for (const begun of [[first], [first, found], [first, found, piece('It')], [last, piece('Then')]])
			expect(read(langgraph, begun)).toMatchObject({ failure: { kind: 'brokeOff' } });
		expect(read(langgraph, [first, found, last])).toMatchObject({ value: { answer: 'It is 7.' } });
		const saved = event({ save: { visits: 2 } }, 'updates');
		const shortened = event(
			{ shorten: { messages: [{ type: 'remove', content: '', id: 'm1' }] } },
			'updates',
		);
		for (const more of [saved, shortened])
			expect(read(langgraph, [last, more])).toMatchObject({ value: { answer: 'It is 7.' } });
		const broken = read(langgraph, [last], { broken: 'the connection was reset' });
		expect(broken).toMatchObject({ failure: { kind: 'brokeOff' } });
	});

	test('how an answer of LangGraph ended, whatever it is about', () => {
		const cut = update(said('The thread was not fo', { response_metadata: { finish_reason: 'length' } }));
		const hint = expect.stringContaining('cut off');
		expect(read(langgraph, [cut])).toMatchObject({ value: { reason: 'length', hint } });
		const whole = update(said('The thread was not found: Too many knots'));
		expect(read(langgraph, [whole])).toMatchObject({ value: { reason: '', hint: '' } });
		const failed = body({ detail: "can't start new thread" });
		expect(read(langgraph, [failed], { status: 500 })).toMatchObject({ failure: { kind: 'failed' } });
	});

	test('no earlier answer of LangGraph as that of a Resume to which nothing happens', () => {
		const begun = event({ run_id: 'r' }, 'metadata');
		const state = event({ messages: [{ type: 'ai', content: 'An earlier answer' }] }, 'values');
		expect(read(langgraph, [begun, state])).toMatchObject({ failure: { kind: 'notAnAnswer', text: '' } });
	});

	test("each of LangGraph's open questions, which are answered by their IDs", () => {
		const both = [asking({ id: 'i1', value: 'One?' }), asking({ id: 'i2', value: 'Two?' })];
		expect(read(langgraph, both)).toMatchObject({ value: { interrupts: [{ id: 'i1' }, { id: 'i2' }] } });
		const turn = { kind: 'results', results: [{ interruptId: 'i2', result: { ok: true } }] } as const;
		const request = valueOf(wireRequest(langgraph, turn, { sessionId: 't', stream: true, uuid: 'u' }));
		expect(request).toMatchObject({
			path: '/threads/t/runs/stream',
			body: { command: { resume: { i2: { ok: true } } } },
		});
	});

	test.each<[unknown, string, string, unknown]>([
		['Sure?', '', 'Sure?', {}],
		[42, '', '42', {}],
		[{ prompt: 'Sure?' }, '', 'Sure?', { prompt: 'Sure?' }],
		[{ question: 'Sure?' }, '', 'Sure?', { question: 'Sure?' }],
		[{ actions: [{ name: 'a' }] }, '', '{"actions":[{"name":"a"}]}', { actions: [{ name: 'a' }] }],
		// What the agent has said is then the question.
		[null, '', '', {}],
		[{ action_requests: [{ name: 'pay', args: { n: 7 } }] }, 'pay', '', { n: 7 }],
		[[{ action_request: { action: 'pay', args: { n: 7 } } }], 'pay', '', { n: 7 }],
	])('an interrupt of LangGraph with the value %j', (value, tool, question, given) => {
		expect(read(langgraph, [asking({ id: 'i', value })])).toMatchObject({
			value: { interrupts: [{ id: 'i', tool, question, arguments: given }] },
		});
	});

	test('several requests of LangGraph in one interrupt with all that they ask', () => {
		const value = { action_requests: ['pay', 'ship'].map((name) => ({ name, args: {} })) };
		expect(read(langgraph, [asking({ id: 'i', value })])).toMatchObject({
			value: { interrupts: [{ id: 'i', tool: 'pay', arguments: value }] },
		});
	});

	test('that a thread of LangGraph is busy, from plain text', () => {
		const text = 'Thread is already running a task. Wait for it to finish.';
		expect(read(langgraph, [{ data: text, isWholeBody: true }], { status: 422 })).toMatchObject({
			failure: { kind: 'refused', meaning: 'busy' },
		});
	});

	test("a model's refusal in the form of Responses", () => {
		const content = [{ type: 'refusal', refusal: 'I cannot.' }];
		const whole = body({ id: 's', status: 'completed', output: [{ type: 'message', content }] });
		expect(read(responses, [whole])).toMatchObject({ value: { answer: 'I cannot.' } });
		const pieces = ['I ', 'cannot.'].map((delta) => event({ delta }, 'response.refusal.delta'));
		const completed = event({ response: { id: 's', status: 'completed' } }, 'response.completed');
		expect(read(responses, [...pieces, completed])).toMatchObject({ value: { answer: 'I cannot.' } });
	});

	/** Both forms of A2A: the events that mean the same, as their servers send them. */
	const forms = [
		{
			wire: a2a,
			state: (state: string, words = '') =>
				event({
					result: {
						kind: 'status-update',
						taskId: 't',
						contextId: 'c',
						status: { state, ...(words && { message: { parts: [{ kind: 'text', text: words }] } }) },
					},
				}),
			task: (state: string, more = {}) =>
				event({ result: { kind: 'task', id: 't', contextId: 'c', status: { state }, ...more } }),
			artifact: (artifactId: string, text: string, append?: boolean) => ({
				result: {
					kind: 'artifact-update',
					append,
					artifact: { artifactId, parts: [{ kind: 'text', text }] },
				},
			}),
			parts: (text: string) => ({ artifacts: [{ parts: [{ kind: 'text', text }] }] }),
			named: (name: string) => name,
		},
		{
			wire: wireOf(wireText('a2a-1')),
			state: (state: string, words = '') =>
				event({
					result: {
						statusUpdate: {
							taskId: 't',
							contextId: 'c',
							status: { state, ...(words && { message: { parts: [{ text: words }] } }) },
						},
					},
				}),
			task: (state: string, more = {}) =>
				event({ result: { task: { id: 't', contextId: 'c', status: { state }, ...more } } }),
			artifact: (artifactId: string, text: string, append?: boolean) => ({
				result: { artifactUpdate: { append, artifact: { artifactId, parts: [{ text }] } } },
			}),
			parts: (text: string) => ({ artifacts: [{ parts: [{ text }] }] }),
			named: (name: string) => `TASK_STATE_${name.toUpperCase().replace('-', '_')}`,
		},
	];

	test.each(forms)('the artifacts of A2A, in their order, and what updates append or replace', (form) => {
		const { wire, state, artifact, named } = form;
		const done = state(named('completed'));
		const of = (...events: object[]) => read(wire, [...events.map((one) => event(one)), done]);
		for (const append of [undefined, false])
			expect(
				of(artifact('a', 'It '), artifact('a', 'It is'), artifact('a', 'It is 2', append)),
			).toMatchObject({ value: { answer: 'It is 2' } });
		const two = of(artifact('a', 'It'), artifact('b', '!'), artifact('a', ' is 2', true));
		expect(two).toMatchObject({ value: { answer: 'It is 2!' } });
	});

	test.each(forms)(
		'an answer of A2A that comes only in the last event',
		({ wire, state, task, parts, named }) => {
			const working = state(named('working'), 'I am thinking');
			const last = { value: { answer: 'Done', sessionId: 'c' } };
			expect(read(wire, [working, task(named('completed'), parts('Done'))])).toMatchObject(last);
			expect(read(wire, [working, state(named('completed'), 'Done')])).toMatchObject(last);
		},
	);

	test.each(forms)(
		'all that a question of A2A says in data, under whatever names',
		({ wire, task, named }) => {
			const asks = (data: object) => {
				const status = { state: named('input-required'), message: { parts: [{ kind: 'data', data }] } };
				return read(wire, [{ ...task('', { status }), isWholeBody: true }]);
			};
			const interrupts = (given: object, tool = '') => [{ id: 't', tool, arguments: given }];
			expect(asks({ name: 'pay', args: { n: 7 } })).toMatchObject({
				value: { interrupts: interrupts({ n: 7 }, 'pay') },
			});
			const own = { function: 'pay', parameters: { n: 7 } };
			expect(asks(own)).toMatchObject({ value: { interrupts: interrupts(own) } });
		},
	);

	test('that a task of A2A 0.3 was over, and not another failure with the same code', () => {
		const refused = (message: string) => body({ error: { code: -32600, message } });
		expect(
			read(a2a, [refused('Task t is in a terminal state (completed) and cannot be modified.')]),
		).toMatchObject({
			failure: { kind: 'refused', code: 'interrupt_not_found', meaning: 'rejected' },
		});
		expect(read(a2a, [refused('Invalid request')])).toMatchObject({
			failure: { kind: 'refused', code: '-32600' },
		});
	});

	test.each(forms)('a question of A2A, whether or not its event is marked as the last', (form) => {
		const { wire, state, named } = form;
		expect(read(wire, [state(named('working')), state(named('input-required'), 'Size?')])).toMatchObject({
			value: { interrupts: [{ id: 't', question: 'Size?' }], sessionId: 'c' },
		});
	});

	test.each(forms)('that a resumed stream of A2A has answered the question it begins with', (form) => {
		const { wire, state, task, artifact, named } = form;
		const events = [task(named('input-required')), state(named('working')), event(artifact('a', 'Red'))];
		expect(read(wire, [...events, state(named('completed'))])).toMatchObject({
			value: { answer: 'Red', interrupts: [] },
		});
	});

	test('that a task of A2A 1.0 was over, and not another failure with the same code', () => {
		const wire = wireOf(wireText('a2a-1'));
		const failed = (message: string) =>
			read(wire, [body({ jsonrpc: '2.0', id: 'u', error: { code: -32_004, message } })]);
		expect(failed('Task t is in a terminal state (3) and cannot be modified.')).toMatchObject({
			failure: { kind: 'refused', meaning: 'rejected' },
		});
		for (const words of ["Received statusUpdate before initial 'Message'/'Task' event.", ''])
			expect(failed(words)).toMatchObject({ failure: { kind: 'failed' } });
	});

	test('answers of Responses and Coze that come only in the last event', () => {
		const output = [{ type: 'message', content: [{ type: 'output_text', text: 'Hi' }] }];
		const completed = event({ response: { id: 's', status: 'completed', output } }, 'response.completed');
		expect(read(responses, [completed])).toMatchObject({ value: { answer: 'Hi', sessionId: 's' } });
		const message = { id: 'm', type: 'answer', content: 'Hi', conversation_id: 's' };
		const whole = event(message, 'conversation.message.completed');
		const done = event('[DONE]', 'done');
		expect(read(coze, [whole, done])).toMatchObject({ value: { answer: 'Hi', sessionId: 's' } });
		const piece = event({ ...message, content: 'Hi' }, 'conversation.message.delta');
		expect(read(coze, [piece, whole, done])).toMatchObject({ value: { answer: 'Hi' } });
	});

	test('an unknown conversation of Dify, also as an event', () => {
		const error = { event: 'error', status: 404, code: 'not_found', message: 'Conversation Not Exists.' };
		expect(read(dify, [event({ ...error, conversation_id: 's' })])).toMatchObject({
			failure: { kind: 'refused', meaning: 'sessionUnknown' },
		});
	});

	test('a task of A2A only once it is over, also if its text is in its status', () => {
		const text = (words: string) => ({ parts: [{ kind: 'text', text: words }] });
		const task = (state: string, more = {}) =>
			read(a2a, [body({ result: { kind: 'task', status: { state, message: text('Done') }, ...more } })]);
		expect(task('completed')).toMatchObject({ value: { answer: 'Done' } });
		expect(task('completed', { artifacts: [text('It is 2')] })).toMatchObject({
			value: { answer: 'It is 2' },
		});
		for (const state of ['submitted', 'working', 'unknown']) {
			expect(task(state)).toMatchObject({ failure: { entry: 'answer.text' } });
			const begun = task(state, { artifacts: [text('It')] });
			expect(begun).toMatchObject({ failure: { entry: 'answer.incomplete' } });
		}
	});

	test.each(['mcp_approval_request', 'custom_tool_call', 'computer_call'])(
		'that an agent with the API of Responses waits for a result of the kind %s',
		(type) => {
			const output = [{ type: 'message', content: [{ type: 'output_text', text: 'Wait.' }] }, { type }];
			const response = { id: 's', status: 'completed', output };
			const failure = { kind: 'failed', why: expect.stringContaining('it waits for an approval') };
			expect(read(responses, [body(response)])).toMatchObject({ failure });
			const completed = event({ response }, 'response.completed');
			expect(read(responses, [completed])).toMatchObject({ failure });
		},
	);

	test('a refusal of Responses in a stream, which numbers its events', () => {
		const error = { type: 'error', code: 'rate_limit_exceeded', message: 'Slow down', param: null };
		expect(read(responses, [event({ ...error, sequence_number: 1 }, 'error')])).toMatchObject({
			failure: { kind: 'refused', meaning: 'notRun' },
		});
	});

	test("no reason in Coze's code of a success", () => {
		const begun = body({ code: 0, msg: '', data: { conversation_id: 's', status: 'in_progress' } });
		expect(read(coze, [begun])).toMatchObject({ failure: { kind: 'notAnAnswer', code: '' } });
	});

	test('a text of Dify that replaces what it has said', () => {
		const pieces = [
			{ event: 'message', answer: 'Hx', conversation_id: 's' },
			{ event: 'message_replace', answer: 'Hi' },
			{ event: 'message_end' },
		];
		expect(
			read(
				dify,
				pieces.map((piece) => event(piece)),
			),
		).toMatchObject({
			value: { answer: 'Hi', sessionId: 's' },
		});
	});

	test('that a workflow of Dify waits for a form', () => {
		const events = ['human_input_required', 'workflow_paused'].map((name) => event({ event: name }));
		expect(read(dify, events)).toMatchObject({
			failure: { kind: 'failed', why: expect.stringContaining('a form that only Dify') },
		});
	});
});

/* Recorded from @mastra/hono 1.7.9 and @google/adk 2.0.0, shortened. */

describe('the description of Mastra', () => {
	const told = (type: string, payload: object = {}) => event({ type, runId: 'run', from: 'AGENT', payload });
	const pieces = ['Turn ', '2'].map((text) => told('text-delta', { id: 'txt-0', text }));
	const finish = told('finish', { stepResult: { reason: 'stop' }, output: { usage: { totalTokens: 7 } } });
	const done = event('[DONE]');

	test('makes the ID of a new session, and keeps it', () => {
		const turn = { kind: 'message', message: 'Hi', files: [] } as const;
		const sent = valueOf(wireRequest(mastra, turn, { sessionId: '', stream: true, uuid: 'u' }));
		expect(sent.body).toEqual({
			messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
			memory: { thread: 'u', resource: 'n8n' },
		});
	});

	test('reads the pieces of an answer, and needs the end', () => {
		const value = { answer: 'Turn 2', usage: { totalTokens: 7 } };
		expect(read(mastra, [told('start'), ...pieces, told('text-end'), finish, done])).toMatchObject({ value });
		expect(read(mastra, pieces)).toMatchObject({ failure: { kind: 'brokeOff', text: 'Turn 2' } });
	});

	test('reads a tool that waits for approval, which is answered by the IDs of the run and the call', () => {
		const call = { toolCallId: 'call_1', toolName: 'pay', args: { amount: 7 } };
		const asked = [told('tool-call', call), told('tool-call-approval', call), done];
		const interrupt = { id: 'run call_1', tool: 'pay', arguments: { amount: 7 } };
		expect(read(mastra, asked)).toMatchObject({ value: { interrupts: [interrupt] } });
		const turn = {
			kind: 'results',
			results: [{ interruptId: 'run call_1', result: { approved: true } }],
		} as const;
		expect(valueOf(wireRequest(mastra, turn, { sessionId: 's', stream: true, uuid: 'u' }))).toMatchObject({
			path: '/api/agents/mine-1/resume-stream',
			body: { runId: 'run', toolCallId: 'call_1', resumeData: { approved: true }, memory: { thread: 's' } },
		});
	});

	test.each([
		'Agent "A" resumeStream() could not find a suspended run for runId "r".',
		'Agent "A" resumeStream() cannot resume tool call "c" because it is not suspended.',
	])('reads that an interrupt has been answered: %s', (error) => {
		expect(read(mastra, [body({ error })], { status: 500 })).toMatchObject({
			failure: { kind: 'refused', code: 'interrupt_not_found' },
		});
	});

	test('reads that an answer was cut off by its length', () => {
		const cut = told('finish', { stepResult: { reason: 'length' }, output: {} });
		expect(read(mastra, [...pieces, cut, done])).toMatchObject({
			value: { reason: 'length', hint: expect.stringContaining('cut off') },
		});
	});

	test('reads a failure, although the stream ends as usual', () => {
		const failed = told('error', { error: { message: 'model broke', name: 'AI_APICallError' } });
		expect(read(mastra, [...pieces, failed, finish, done])).toMatchObject({
			failure: { kind: 'failed', why: expect.stringContaining('model broke') },
		});
	});
});

describe('the description of ADK', () => {
	const told = (parts: object[], more: object = {}) =>
		event({
			invocationId: 'e-1',
			author: 'helper',
			longRunningToolIds: [],
			content: { role: 'model', parts },
			...more,
		});
	const pieces = ['Turn ', '2: '].map((text) => told([{ text }], { partial: true }));
	const whole = told([{ text: 'Turn 2: two' }], { usageMetadata: { totalTokenCount: 7 } });

	test('reads the usage under names that a budget of tokens knows', () => {
		const counts = { promptTokenCount: 3, candidatesTokenCount: 4, totalTokenCount: 7 };
		const answer = read(adk, [told([{ text: 'Hi' }], { usageMetadata: counts })]);
		const usage = answer.ok ? answer.value.usage : undefined;
		expect(tokenParts(usage)).toEqual({ input: 3, output: 4 });
		expect(countTokens(usage)).toBe(7);
	});

	test('reads an answer with and without pieces, and needs the whole at the end', () => {
		const value = { answer: 'Turn 2: two', usage: { total_tokens: 7 } };
		expect(read(adk, [...pieces, whole])).toMatchObject({ value });
		expect(read(adk, [whole])).toMatchObject({ value });
		expect(read(adk, pieces)).toMatchObject({ failure: { kind: 'brokeOff', text: 'Turn 2: ' } });
	});

	test('reads the last of several answers of a turn, and no thoughts', () => {
		const call = told([{ functionCall: { id: 'c', name: 'look', args: {} } }]);
		const first = told([{ text: 'I look it up.' }]);
		const last = told([{ text: 'Hm.', thought: true }, { text: 'Found.' }]);
		expect(read(adk, [first, call, last])).toMatchObject({ value: { answer: 'Found.' } });
	});

	test('needs an end of each agent that answers, and reads the last, also in pieces', () => {
		const piece = (text: string) => told([{ text }], { partial: true });
		const draft = [piece('A dra'), piece('ft.'), told([{ text: 'A draft.' }])];
		const final = [piece('The '), piece('text.'), told([{ text: 'The text.' }])];
		expect(read(adk, [...draft, ...final])).toMatchObject({ value: { answer: 'The text.' } });
		for (const begun of [[piece('The ')], [told([{ functionCall: { id: 'c', name: 'look', args: {} } }])]])
			expect(read(adk, [...draft, ...begun])).toMatchObject({ failure: { kind: 'brokeOff' } });
		const late = read(adk, draft, { broken: 'the editor took too long' });
		expect(late).toMatchObject({ failure: { kind: 'brokeOff', text: 'A draft.' } });
	});

	test('reads the last text of a loop that a tool ends', () => {
		const left = { id: 'c', name: 'exit_loop' };
		const leaves = told([{ functionCall: { ...left, args: {} } }]);
		const response = { functionResponse: { ...left, response: {} } };
		const ended = told([response], { actions: { escalate: true, skipSummarization: true } });
		const draft = told([{ text: 'A draft.' }], { actions: {} });
		expect(read(adk, [draft, leaves, ended])).toMatchObject({ value: { answer: 'A draft.' } });
		for (const begun of [
			[draft, leaves],
			[draft, leaves, told([response], { actions: { escalate: false } })],
		])
			expect(read(adk, begun)).toMatchObject({ failure: { kind: 'brokeOff' } });
		expect(read(adk, [leaves, ended])).toMatchObject({ failure: { why: 'the answer is empty' } });
		const checked = event({ author: 'checker', actions: { escalate: true } });
		expect(read(adk, [draft, checked])).toMatchObject({ value: { answer: 'A draft.' } });
		const said = told([{ text: 'Good.' }], { actions: { escalate: true } });
		expect(read(adk, [draft, said])).toMatchObject({ value: { answer: 'Good.' } });
	});

	test('reads that an answer was cut off by its length', () => {
		expect(read(adk, [told([{ text: 'A dra' }], { finishReason: 'MAX_TOKENS' })])).toMatchObject({
			value: { reason: 'MAX_TOKENS', hint: expect.stringContaining('cut off') },
		});
	});

	test('reads a tool that takes long as an interrupt, which is answered by its ID and name', () => {
		const functionCall = { id: 'call-1', name: 'pay', args: { amount: 7 } };
		const asked = [told([{ functionCall }], { longRunningToolIds: ['call-1'] })];
		const interrupt = { id: 'call-1', tool: 'pay', arguments: { amount: 7 } };
		expect(read(adk, asked)).toMatchObject({ value: { interrupts: [interrupt] } });
	});

	test('reads an interrupt after which the agent tells what its tool answered', () => {
		const functionCall = { id: 'adk-1', name: 'adk_request_confirmation', args: {} };
		const asked = told([{ functionCall }], { longRunningToolIds: ['adk-1'] });
		const response = { error: 'This tool call requires confirmation, please approve or reject.' };
		const answered = told([{ functionResponse: { id: 'call-1', name: 'pay', response } }]);
		const interrupts = [{ id: 'adk-1', tool: 'adk_request_confirmation' }];
		expect(read(adk, [asked, answered])).toMatchObject({ value: { interrupts } });
		const piece = told([{ text: 'It is' }], { partial: true });
		expect(read(adk, [asked, answered, piece])).toMatchObject({ failure: { kind: 'brokeOff', interrupts } });
		const last = told([{ text: 'It is asked.' }]);
		const value = { answer: 'It is asked.', interrupts };
		expect(read(adk, [asked, answered, piece, last])).toMatchObject({ value });
	});

	test.each(['error', 'detail'])('reads from %j that a session is unknown', (name) => {
		const refused = body({ [name]: 'Session not found: s' });
		expect(read(adk, [refused], { status: 404 })).toMatchObject({
			failure: { kind: 'refused', meaning: 'sessionUnknown' },
		});
	});

	test('takes a body that its server could not read for one that no agent saw', () => {
		const loc = ['body', 'newMessage', 'parts', 0, 'functionResponse', 'response'];
		const refused = body({ detail: [{ type: 'dict_type', loc, msg: 'Input should be a valid dictionary' }] });
		expect(read(adk, [refused], { status: 422 })).toMatchObject({
			failure: { kind: 'refused', meaning: 'rejected', why: expect.stringContaining('valid dictionary') },
		});
	});

	test('reads a failure', () => {
		const failed = event({ author: 'helper', errorCode: 'UNKNOWN_ERROR', errorMessage: 'model broke' });
		expect(read(adk, [failed])).toMatchObject({
			failure: { kind: 'failed', why: expect.stringContaining('model broke') },
		});
	});
});
