import type { INodeParameters } from 'n8n-workflow';

import type { JsonObject } from '../../../nodes/shared/text/json';
import { stopwatch, type HarnessRun } from '../harness';
import { sayings, sharedStage } from '../harness/stage';
import { openScriptedChat, QUESTION, writePieces } from './scriptedServer';
import { STREAM_FORMS, type StreamForm } from './streamForms';
import { CONTINUE } from './chat.fixture';

const chat = sharedStage(openScriptedChat);

/** A stream form and the positions at which it is split. */
interface Question {
	readonly form: StreamForm;
	readonly cuts: readonly number[];
}

function sample({ body }: StreamForm): number[][] {
	const length = body.length;
	const every = Array.from({ length: Math.max(0, length - 1) }, (_, index) => index + 1);
	const some = [1, 0.3, 0.5, 0.8].map((part) => Math.floor(part * (length - 1))).filter((cut) => cut > 0);
	return [[], ...some.map((cut) => [cut]), every];
}

/** Sends all questions in one execution, with failures as error items. */
async function ask(questions: readonly Question[], limits: INodeParameters): Promise<HarnessRun> {
	chat.server.answer = async (body, response) => {
		const [message] = body.messages as Array<{ content: string }>;
		const question = questions[Number(message?.content)];
		if (!question) throw new Error('an unknown question');
		const { form, cuts } = question;
		const places = [0, ...cuts, form.body.length];
		const pieces = places.slice(1).map((end, index) => form.body.subarray(places[index], end));
		await writePieces(response, pieces, form.ending, form.contentType);
	};
	return await chat.ask(
		{
			messages: { message: [{ role: 'user', content: '={{ $json.say }}' }] },
			limits: { retries: 0, requestsPerSecond: 0, concurrency: 32, ...limits },
		},
		CONTINUE,
		sayings(...questions.map((_, index) => String(index))),
	);
}

function expectAnswers(questions: readonly Question[], run: HarnessRun): void {
	expect(run.error).toBeUndefined();
	const items = run.items();
	expect(items).toHaveLength(questions.length);
	for (const [index, { form, cuts }] of questions.entries()) {
		const { expected, name } = form;
		const where = { name, cuts: cuts.length > 1 ? 'every byte' : cuts };
		const json = items[index]?.json as JsonObject;
		if ('answer' in expected) {
			expect({ where, error: json.error, details: json.details }).toEqual({ where });
			expect(json).toMatchObject(expected.answer);
		} else {
			expect({ where, ...json }).toEqual({
				where,
				error: expect.stringMatching(expected.error),
				message: expect.stringMatching(/.\.$/),
				details: expect.objectContaining(expected.details ?? { kind: expect.any(String) }),
			});
		}
		expect(items[index]?.pairedItem).toEqual({ item: index });
	}
}

const held = STREAM_FORMS.filter(({ ending }) => ending === 'hold');
const ended = STREAM_FORMS.filter(({ ending }) => ending !== 'hold');

test('reads every form of stream over a real socket with the same result, whole, split or byte by byte', async () => {
	const questions = ended.flatMap((form) => sample(form).map((cuts) => ({ form, cuts })));
	expectAnswers(questions, await ask(questions, {}));
}, 180_000);

test('ends a stream that goes silent, and does not wait for one that is finished', async () => {
	const questions = held.flatMap((form) => sample(form).map((cuts) => ({ form, cuts })));
	const watch = stopwatch();
	expectAnswers(questions, await ask(questions, { idleTimeoutSeconds: 4 }));
	expect(watch.stop()).toBeLessThan(12_000);
});

test('closes a connection on which nothing more arrives', async () => {
	let closed = 0;
	chat.server.answer = (_body, response) => {
		response.on('close', () => closed++);
		response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
		response.write('data: {"choices":[{"delta":{"content":"x"}}]}\n\n');
	};
	const run = await chat.ask({ ...QUESTION, limits: { idleTimeoutSeconds: 3 } });
	expect(run.error?.message).toBe('The answer broke off after 1 characters: the connection went silent');
	expect(run.error?.context).toMatchObject({ content: 'x', itemIndex: 0 });
	while (closed < 1) await new Promise((resolve) => setTimeout(resolve, 10));
});

test.each([
	['a stream', 'data: {"choices":[{"delta":{"content":"{\\"a\\":1}"}}]}\n\ndata: [DONE]\n\n', '{"a":1}'],
	['a JSON body', '{"choices":[{"message":{"content":"{\\"a\\":1}"}}]}', '{"a":1}'],
	['a null reason', '{"choices":[{"message":{"content":"x"},"finish_reason":null}]}', 'x'],
])('warns of an answer without a finish reason: %s', async (_name, body, content) => {
	chat.server.answer = (_asked, response) => {
		const type = body.startsWith('data:') ? 'text/event-stream' : 'application/json';
		response.writeHead(200, { 'content-type': type }).end(body);
	};
	const run = await chat.ask();
	const warning = 'The answer may be incomplete: the platform ended it without a finish reason.';
	expect(run.jsons()).toEqual([expect.objectContaining({ content, finishReason: '', warning })]);
	expect(run.hints()[0]).toContain(warning);
	const asJson = await chat.ask({ ...QUESTION, responseFormat: 'jsonObject' });
	if (content === '{"a":1}') expect(asJson.jsons()[0]).toMatchObject({ content: { a: 1 }, warning });
	else expect(asJson.error?.message).toContain('JSON');
});
