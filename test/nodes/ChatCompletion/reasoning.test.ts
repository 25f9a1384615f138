import { REASONING_MODELS } from '../../../nodes/shared/chat/reasoning';
import { sharedStage } from '../harness/stage';
import { model, openChatStage } from './chat.fixture';

const stage = sharedStage(openChatStage);

/** What is sent and whether the model then reasons; or the error if the item is refused before the call. */
type Outcome = { readonly sent: object; readonly reasons: boolean } | string;

/** The models of §3.2 that reason unless they are told not to. */
const ON_BY_DEFAULT = /-thinking$|family_c|k2[.]5|-14b|family_e/;

function outcomeOf({ model: id, control }: (typeof REASONING_MODELS)[number], choice: string): Outcome {
	if (choice === 'default') return { sent: {}, reasons: ON_BY_DEFAULT.test(id) };
	if (control === 'enable_thinking')
		return { sent: { enable_thinking: choice === 'on' }, reasons: choice === 'on' };
	if (control === 'always') return choice === 'on' ? { sent: {}, reasons: true } : 'cannot be switched off';
	return choice === 'on' ? { sent: { thinking: { type: 'enabled' } }, reasons: true } : 'but not off';
}

/** The table of §3.2, with each model name also as providers prefix it. */
const CASES = REASONING_MODELS.flatMap((row) => {
	const id = row.model.replace(/[<>]/g, '');
	return [id, `vendor/${id}`].flatMap((name) =>
		['default', 'on', 'off'].map((reasoning) => ({ name, reasoning, outcome: outcomeOf(row, reasoning) })),
	);
});

test('sends what each model in the table accepts for default, on and off, and refuses the rest before the call', async () => {
	const run = await stage.run(
		CASES.map(({ name, reasoning }) => ({ json: { name, reasoning } })),
		{
			model: { __rl: true, mode: 'id', value: '={{ $json.name }}' },
			messages: {
				message: [{ role: 'user', content: '={{ $json.name + $json.reasoning }} [think: hm] [answer: yes]' }],
			},
			reasoning: '={{ $json.reasoning }}',
			options: { requestsPerSecond: 0, concurrency: 16 },
		},
		{ onError: 'continueRegularOutput' },
	);
	const items = run.items();
	const { chats, requests } = stage.platform.books();
	for (const [index, { name, reasoning, outcome }] of CASES.entries()) {
		const json = items[index]?.json;
		if (typeof outcome === 'string') {
			expect(json).toMatchObject({ error: expect.stringContaining(outcome), details: { kind: 'badInput' } });
			continue;
		}
		expect({ where: name + reasoning, ...json }).toMatchObject({
			where: name + reasoning,
			content: 'yes',
			reasoning: outcome.reasons ? 'hm' : '',
		});
		const body = chats.find(({ body: sent }) =>
			JSON.stringify(sent.messages).includes(`"${name}${reasoning}`),
		)?.body;
		const { enable_thinking, thinking } = body ?? {};
		expect({
			...(enable_thinking !== undefined && { enable_thinking }),
			...(thinking !== undefined && { thinking }),
		}).toEqual(outcome.sent);
	}
	expect(requests.chat).toBe(CASES.filter(({ outcome }) => typeof outcome !== 'string').length);
});

test.each([
	['enable_thinking', 'on', { enable_thinking: true }],
	['enable_thinking', 'off', { enable_thinking: false }],
	['always', 'on', {}],
])('an explicit control overrides the table: %s, %s', async (reasoningControl, reasoning, sent) => {
	await stage.run(
		[{ json: { say: 'x' } }],
		{ ...model('plain-1'), reasoning, reasoningControl },
		{ onError: 'continueRegularOutput' },
	);
	// The platform may refuse the call; it must only have been sent.
	expect(stage.platform.books().requests.chat).toBe(1);
	const [chat] = stage.platform.books().chats;
	if (chat) expect(chat.body).toMatchObject(sent);
});

test.each([
	['plain-1', {}, 'The node does not know how to switch the reasoning of "plain-1" on or off'],
	['family_a-v3.2', { reasoningControl: 'none' }, '"family_a-v3.2" has no reasoning switch'],
	['family_a-v3.2', { reasoningControl: 'thinking', reasoning: 'off' }, 'can be switched on, but not off'],
	[
		'family_a-v3.2',
		{ reasoning: 'default', options: { reasoningSplit: true } },
		"does not support 'Separate Reasoning'",
	],
	["={{ '' }}", { reasoning: 'default' }, 'No model is chosen'],
])('refuses before the call: %s %j', async (id, parameters, said) => {
	const run = await stage.run([{ json: { say: 'x' } }], { ...model(id), reasoning: 'on', ...parameters });
	expect(run.error?.message).toContain(said);
	expect(run.error?.description).toMatch(/\w.*\.$/);
	expect(stage.platform.books().requests.chat).toBe(0);
});

test('reads separated reasoning from its own field', async () => {
	const run = await stage.run([{ json: { say: '[think: hm] [answer: yes]' } }], {
		...model('family_e-m2'),
		options: { reasoningSplit: true },
	});
	expect(run.jsons()[0]).toMatchObject({ content: 'yes', reasoning: 'hm' });
	expect(stage.platform.books().chats[0]?.body).toMatchObject({ reasoning_split: true });
});
