import { body, event, read, wireOf, wireText } from './wires';

/* What the descriptions in docs/wires/ make of answers that the stand-ins for the products do not give. */

const a2a = wireOf(wireText('a2a'));
const coze = wireOf(wireText('coze'));
const dify = wireOf(wireText('dify'));
const langgraph = wireOf(wireText('langgraph'));
const responses = wireOf(wireText('responses'));

describe('a ready description reads', () => {
	const chunk = (text: string) => ({ type: 'AIMessageChunk', content: [{ type: 'text', text, index: 0 }] });
	const end = event('null', 'end');

	test("LangGraph's messages of several parts", () => {
		const pieces = ['He', 'llo'].map((text) => event([chunk(text), { thread_id: 't' }], 'messages'));
		expect(read(langgraph, [...pieces, end])).toMatchObject({ value: { answer: 'Hello', sessionId: 't' } });
		const messages = [
			{ type: 'human', content: 'hi' },
			{ ...chunk('Hello!'), type: 'ai' },
		];
		expect(read(langgraph, [...pieces, event({ messages }, 'values'), end])).toMatchObject({
			value: { answer: 'Hello!' },
		});
	});

	test("LangGraph's thread before the agent has said anything, if the server names it", () => {
		const begun = event({ run_id: 'r', thread_id: 't' }, 'metadata');
		const waiting = event({ __interrupt__: [{ id: 'i', value: 'Sure?' }] }, 'values');
		expect(read(langgraph, [begun, waiting, end])).toMatchObject({ value: { sessionId: 't' } });
	});

	test.each<[unknown, string, unknown]>([
		['Sure?', 'Sure?', {}],
		[{ question: 'Sure?' }, 'Sure?', { question: 'Sure?' }],
		[{ actions: [{ name: 'a' }] }, '{"actions":[{"name":"a"}]}', { actions: [{ name: 'a' }] }],
		// What the agent has said is then the question.
		[null, '', {}],
	])('an interrupt of LangGraph with the value %j', (value, question, given) => {
		const waiting = event({ __interrupt__: [{ id: 'i', value }] }, 'values');
		expect(read(langgraph, [waiting, end])).toMatchObject({
			value: { interrupts: [{ id: 'i', kind: 'question', question, arguments: given }] },
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

	test("what A2A's updates append to an artifact, or replace it with", () => {
		const parts = (text: string) => ({ parts: [{ kind: 'text', text }] });
		const update = (text: string, append?: boolean) =>
			event({ result: { kind: 'artifact-update', append, artifact: { artifactId: 'a', ...parts(text) } } });
		const final = event({ result: { kind: 'status-update', final: true, status: { state: 'completed' } } });
		for (const append of [undefined, false])
			expect(read(a2a, [update('It '), update('It is'), update('It is 2', append), final])).toMatchObject({
				value: { answer: 'It is 2' },
			});
		expect(read(a2a, [update('It'), update(' is 2', true), final])).toMatchObject({
			value: { answer: 'It is 2' },
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
