import fc from 'fast-check';

import { hostileJson } from '../../unit/FlowTask/hostileJson';
import { STREAM_FORMS } from './streamForms';

/** Texts that no operator should see. */
export const RAW_ERROR =
	/TypeError|RangeError|ReferenceError|is not a function|Cannot (?:read|convert)|is not iterable|bug in the node|has a bug|Invalid URL|call stack|\[object Object\]/;

/** Bodies of answers: some valid, most close to valid, some arbitrary. */
export function hostileBodies(): fc.Arbitrary<Buffer> {
	const odd = fc.oneof(hostileJson(), fc.constantFrom<unknown>(null, '', 0, -1, [], {}, true));
	const maybe = (...values: unknown[]): fc.Arbitrary<unknown> => fc.oneof(fc.constantFrom(...values), odd);
	const part = fc.record(
		{
			content: maybe('text', ['x'], [{ text: 'x' }], null),
			reasoning_content: maybe('hm'),
			reasoning_details: maybe([{ text: 'hm' }]),
			tool_calls: maybe([{ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }]),
			function_call: odd,
			refusal: odd,
			role: odd,
		},
		{ requiredKeys: [] },
	);
	const choice = fc.record(
		{
			index: maybe(0, 1),
			delta: fc.oneof(part, odd),
			message: fc.oneof(part, odd),
			finish_reason: maybe('stop', 'length', null),
			text: odd,
		},
		{ requiredKeys: [] },
	);
	const good = fc.record(
		{ id: odd, model: odd, choices: fc.array(choice, { maxLength: 2 }), usage: maybe({ prompt_tokens: 3 }) },
		{ requiredKeys: ['choices'] },
	);
	const bad = fc.record(
		{
			id: odd,
			model: odd,
			choices: fc.oneof(fc.array(fc.oneof(choice, odd), { maxLength: 3 }), odd),
			usage: maybe({ prompt_tokens: 3, total_tokens: '8' }, { prompt_tokens_details: null }),
			error: odd,
			code: odd,
			msg: odd,
			data: odd,
		},
		{ requiredKeys: ['choices'] },
	);
	const event = fc.oneof({ weight: 5, arbitrary: good }, { weight: 1, arbitrary: bad });
	const stream = fc
		.array(
			fc.oneof(
				event.map((value) => JSON.stringify(value)),
				fc.constantFrom('[DONE]', 'ping', '{', '{"choices":[{"del'),
			),
			{ maxLength: 4 },
		)
		.map((events) => Buffer.from(events.map((data) => `data: ${data}\n\n`).join('')));
	const mutated = fc
		.tuple(
			fc.constantFrom(...STREAM_FORMS),
			fc.array(fc.tuple(fc.nat(2_000), fc.nat(255)), { minLength: 1, maxLength: 4 }),
			fc.nat(600),
		)
		.map(([form, changes, cut]) => {
			const body = Buffer.from(form.body);
			for (const [at, byte] of changes) if (body.length > 0) body[at % body.length] = byte;
			return cut % 3 === 0 ? body.subarray(0, cut) : body;
		});
	return fc.oneof(
		stream,
		mutated,
		event.map((value) => Buffer.from(JSON.stringify(value))),
		odd.map((value) => Buffer.from(JSON.stringify(value))),
		fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
	);
}
