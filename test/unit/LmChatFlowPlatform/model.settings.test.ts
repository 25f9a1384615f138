import { modelSettings } from '../../../nodes/LmChatFlowPlatform/model.settings';
import type { ReasoningWish } from '../../../nodes/shared/chat/reasoning';

const WISH: ReasoningWish = {
	model: 'vendor/family_a-v3.2',
	choice: 'default',
	control: 'auto',
	split: false,
};

it.each([
	['on', 'vendor/family_a-v3.2', { enable_thinking: true }],
	['off', 'family_c-4.6', { enable_thinking: false }],
	['on', 'family_d-k2', { thinking: { type: 'enabled' } }],
	['on', 'family_b-14b', {}],
] as const)(
	'switches reasoning %s for %s with the fields of the model',
	(choice, model, additionalParams) => {
		expect(modelSettings({ ...WISH, model, choice }, {})).toMatchObject({
			ok: true,
			value: { additionalParams },
		});
	},
);

it('includes the options, and extra fields in addition to the switch', () => {
	const options = {
		...{ temperature: 0.5, topP: 0.9, maxTokens: 100.7, frequencyPenalty: 1, presencePenalty: -1 },
		...{ maxRetries: 0, timeoutSeconds: 5, includeUsage: false, extraBody: '{"top_k":20}' },
	};
	expect(modelSettings({ ...WISH, choice: 'on' }, options)).toEqual({
		ok: true,
		value: {
			onFailedAttempt: expect.any(Function),
			model: 'vendor/family_a-v3.2',
			additionalParams: { enable_thinking: true, top_k: 20 },
			...{ temperature: 0.5, topP: 0.9, maxTokens: 100, frequencyPenalty: 1, presencePenalty: -1 },
			...{ maxRetries: 0, timeout: 5_000, streamUsage: false },
		},
	});
});

it('prevents another request after a timeout, because the first answer may be billed', () => {
	const settings = modelSettings(WISH, {});
	const ended = settings.ok ? settings.value.onFailedAttempt : undefined;
	const timeout = Object.assign(new Error('Request timed out.'), { name: 'TimeoutError' });
	expect(() => ended?.(timeout)).toThrow(timeout);
	expect(() => ended?.(new Error('503'))).not.toThrow();
});

it.each([
	[{ model: '' }, {}, 'No model is chosen'],
	[
		{ model: 'family_b-14b', choice: 'off' },
		{},
		'"family_b-14b" always reasons; its reasoning cannot be switched off',
	],
	[{}, { extraBody: '{"a":[{"id":9007199254740993}]}' }, "'Extra Body' contains the number 9007199254740993"],
	[
		{},
		{ extraBody: '{"seed":12345678901234567890}' },
		"'Extra Body' contains the number 12345678901234567890",
	],
	[{}, { extraBody: '[1]' }, "'Extra Body' is not a JSON object"],
	[
		{},
		{ extraBody: { messages: [] } },
		'\'Extra Body\' sets "messages", which this node or the agent already sets',
	],
	[{ choice: 'on' }, { extraBody: { enable_thinking: false } }, '\'Extra Body\' sets "enable_thinking"'],
	[{}, { temperature: 3 }, "'Temperature' must be a number from 0 to 2"],
] as const)('refuses %j with %j', (wish, options, message) => {
	expect(modelSettings({ ...WISH, ...wish }, options)).toMatchObject({
		ok: false,
		failure: { message: expect.stringContaining(message) },
	});
});
