import { describeDialects, descriptionOf } from '../../../nodes/AgentInvoke/dialects/dialectCases';
import type { Plan, RefusalKind } from '../../../nodes/AgentInvoke/dialects/plan';
import { TOKEN } from '../../../nodes/AgentInvoke/dialects/standIn';
import type { WireTurn } from '../../../../nodes/AgentInvoke/wire/request';
import type { AgentReply, WireFailure } from '../../../../nodes/AgentInvoke/wire/conclusion';
import type { Json } from '../../../../nodes/shared/text/json';
import { lucky } from '../../seededRandom';
import { ask, message, type Account, type Asking } from './asking';
import { wireOf } from './wires';

const TEXT = 'Grüße, “you”: 日本語 and 🙂 {"data": "x"}\n\nevent: done';
const FORMS = [
	['in one piece', false],
	['as a stream', true],
] as const;

describeDialects((dialect, server) => {
	const wire = wireOf(descriptionOf(dialect));
	const account = (token = TOKEN): Account => ({
		...{ wire, token, baseUrl: server().baseUrl, invokePath: dialect.invokePath },
	});
	const tell = async (turn: WireTurn, asking: Asking = {}) => await ask(account(), turn, asking);
	const reply = async (turn: WireTurn, asking: Asking = {}): Promise<AgentReply> => {
		const { outcome } = await tell(turn, asking);
		if (!outcome.ok) throw new Error(JSON.stringify(outcome.failure));
		return outcome.value;
	};
	const failure = async (asking: Asking = {}): Promise<WireFailure> => {
		const { outcome } = await tell(message('hi'), asking);
		if (outcome.ok) throw new Error(JSON.stringify(outcome.value));
		return outcome.failure;
	};
	const plan = (one: Plan): void => {
		server().plan = () => one;
	};
	const results = (...given: ReadonlyArray<readonly [id: string, result: Json]>): WireTurn => ({
		kind: 'results',
		results: given.map(([interruptId, result]) => ({ interruptId, result })),
	});

	describe.each(FORMS)('%s', (_form, stream) => {
		test('usage and all characters arrive', async () => {
			plan({ says: TEXT });
			const { outcome, deltas } = await tell(message('count me'), { stream });
			const value = { answer: TEXT, usage: dialect.usage(8, TEXT.length) };
			expect(outcome).toMatchObject({ ok: true, value });
			expect(deltas.join('')).toBe(TEXT);
			expect(deltas.length > 1).toBe(stream || !dialect.answersWhole);
			plan({ says: 'two', preamble: 'One and ' });
			expect(await reply(message('hi'), { stream })).toMatchObject({
				answer: dialect.dropsPreamble ? 'two' : 'One and two',
			});
		});

		const ofTools = Array.from({ length: dialect.mostResults }, (_, index) => index + 1);
		test.each(ofTools)('%i tool call(s) are requested and answered', async (count) => {
			const tools = ['refund', 'notify'].slice(0, count);
			plan({ asks: tools.map((tool) => ({ kind: 'tool', tool, arguments: { order: 7 } })) });
			const { interrupts, sessionId } = await reply(message('go'), { stream });
			expect(interrupts).toMatchObject(
				tools.map((tool) => ({ kind: 'tool', tool, arguments: { order: 7 } })),
			);
			plan({});
			const given = interrupts.map(({ id, tool }) => [id, { done: tool }] as const);
			const outputs = tools.map((tool) => `{"done":"${tool}"}`);
			const done = await reply(results(...given), { sessionId, stream });
			expect(done).toMatchObject({ answer: `given ${outputs.join(', ')}`, interrupts: [] });
			const last = await reply(message('thanks'), { sessionId: done.sessionId, stream });
			expect(last.answer).toBe('2: thanks');
			expect(server().conversations).toMatchObject([
				{ turns: ['go', 'thanks'], results: interrupts.map(({ id }, at) => ({ id, output: outputs[at] })) },
			]);
		});

		test('a question is asked and answered', async () => {
			plan({ asks: [{ kind: 'question', question: 'Which colour?' }] });
			const asked = await reply(message('paint'), { stream });
			const { answer: text, sessionId, interrupts } = asked;
			const [interrupt] = interrupts;
			plan({});
			if (dialect.question === 'text') {
				expect(asked).toMatchObject({ answer: 'Which colour?', interrupts: [] });
				expect(await reply(message('red'), { sessionId, stream })).toMatchObject({ answer: 'given red' });
			} else {
				const isTool = dialect.question === 'tool';
				const wanted = isTool
					? { kind: 'tool', tool: 'ask_user', arguments: { question: 'Which colour?' } }
					: { kind: 'question', tool: '', question: 'Which colour?' };
				expect(text).toBe('');
				expect(interrupts).toMatchObject([wanted]);
				const answer = results([interrupt!.id, 'red']);
				expect(await reply(answer, { sessionId, stream })).toMatchObject({ answer: 'given red' });
			}
			expect(server().conversations).toMatchObject([{ turns: ['paint'], results: [{ output: 'red' }] }]);
		});

		const KINDS: readonly RefusalKind[] = ['busy', 'load', 'forGood'];
		test.each(KINDS)('a refusal (%s) is reported as such', async (refuses) => {
			plan({ refuses });
			expect(await failure({ stream })).toMatchObject(dialect.refusals[refuses]);
			expect(server().conversations).toEqual([]);
		});

		test('an unknown session is reported as such', async () => {
			const { sessionId } = await reply(message('hi'), { stream });
			server().forgetSessions();
			expect(await failure({ sessionId, stream })).toMatchObject(dialect.refusals.sessionUnknown);
		});

		test('an agent that ran and failed has no answer', async () => {
			plan({ fails: 'error', says: 'half an answer' });
			const { code, detail, isWholeIn200 } = dialect.failure;
			const isIn200 = stream || isWholeIn200 || !dialect.answersWhole;
			expect(await failure({ stream })).toMatchObject({
				...{ kind: 'failed', ...(isIn200 && { status: 200 }) },
				detail,
				...(code && { code }),
			});
			plan({ fails: 'incomplete', says: 'half an answer' });
			expect(await failure({ stream })).toMatchObject({ ...(isIn200 && { kind: 'failed', status: 200 }) });
		});
	});

	test('the server refuses what the product would not accept', async () => {
		const { detail, ...malformed } = dialect.refusals.malformed;
		expect(await failure({ body: { stream: false } })).toMatchObject(malformed);
		expect(await failure({ path: '/v9/elsewhere' })).toMatchObject(dialect.refusals.noSuchPath);
		const { outcome } = await ask(account('agt_wrong'), message('hi'));
		expect(outcome).toMatchObject({ ok: false, failure: dialect.refusals.token });
		expect(server().requests.map(({ verdict }) => verdict)).toEqual(['malformed', 'token']);
	});

	test('an answer in a form other than the requested one is still read', async () => {
		plan({ form: 'streamed', says: 'streamed' });
		expect(await reply(message('hi'), { stream: false })).toMatchObject({ answer: 'streamed' });
		plan({ form: 'whole', says: 'whole' });
		const { outcome } = await tell(message('hi'), { stream: true });
		if (dialect.answersWhole) expect(outcome).toMatchObject({ ok: true, value: { answer: 'whole' } });
		// The answer has only begun.
		else expect(outcome).toMatchObject({ ok: false, failure: { kind: 'notAnAnswer' } });
	});

	if (dialect.takesFiles) {
		test('sends the URL of a file', async () => {
			const file = { url: 'https://files.example/a.pdf', name: 'a.pdf', mimeType: 'application/pdf' };
			await reply({ kind: 'message', message: 'read it', files: [file] });
			expect(JSON.stringify(server().requests[0]?.body)).toContain(file.url);
		});
	}

	describe('a stream that is cut off', () => {
		const PLANS: Readonly<Record<string, Plan>> = {
			'an answer': { says: TEXT, preamble: 'First. ' },
			'a tool call': {
				says: 'Wait. ',
				asks: [{ kind: 'tool', tool: 'refund', arguments: { order: 7 } }],
			},
			...(['dify', 'langgraph'].includes(dialect.description) && {
				'an answer that replaces another': { says: TEXT, draft: 'No' },
			}),
		};
		const HOWS = dialect.endsWithBody ? (['broken'] as const) : (['broken', 'ended'] as const);
		const cases = Object.keys(PLANS).flatMap((name) => HOWS.map((how) => [name, how] as const));

		test.each(cases)(
			'in the middle of %s (%s) is not a success unless its end was reached',
			async (name, how) => {
				const whole = PLANS[name] ?? {};
				plan(whole);
				const wanted = await reply(message('hi'), { stream: true });
				const events = server().requests[0]?.answer ?? [];
				const length = Buffer.byteLength(events.join(''));
				const random = lucky(17);
				const anywhere = Array.from({ length: 30 }, () => Math.floor(random() * length));
				const mark = events.findIndex((event) => event.includes(dialect.endMark));
				const endAt = Buffer.byteLength(events.slice(0, mark).join(''));
				let successes = 0;
				for (const afterBytes of [...edgesOf(events), ...anywhere]) {
					plan({ ...whole, cut: { afterBytes, how } });
					const { outcome } = await tell(message('hi'), { stream: true });
					if (!outcome.ok) {
						expect(outcome.failure.kind).not.toBe('refused');
						continue;
					}
					successes++;
					expect(afterBytes).toBeGreaterThan(endAt);
					const { answer, usage, interrupts } = wanted;
					expect(outcome.value).toMatchObject({
						...{ answer, usage },
						interrupts: interrupts.map(({ kind, tool }) => ({ kind, tool })),
					});
				}
				expect(successes > 0).toBe(dialect.endsWithBody !== true);
			},
		);
	});
});

/** Offsets around the end of each line, and before and after the field names. */
function edgesOf(events: readonly string[]): number[] {
	const text = events.join('');
	const edges = [...text.matchAll(/\n|data: ?|event: ?/g)].flatMap(({ 0: { length }, index }) =>
		[index, index + 1, index + length - 1, index + length].map((at) => Buffer.byteLength(text.slice(0, at))),
	);
	return [...new Set(edges)].filter((at) => at < Buffer.byteLength(text));
}
