import { body, event, read, wireOf, wireText } from './wires';

/* What the descriptions in docs/wires/ make of answers that the stand-ins for the products do not give. */

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
