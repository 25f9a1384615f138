import fc from 'fast-check';

import { errorWords } from '../../../../nodes/shared/errors/serviceMessage';
import { parseJson, type Json } from '../../../../nodes/shared/text/json';
import { deeplyNested, hostileJson } from '../../FlowTask/hostileJson';

test.each<[Json, string]>([
	[{ msg: 'no', message: 'other' }, 'no'],
	[{ msg: ' ', message: 'no' }, 'no'],
	[{ error: { message: 'no' } }, 'no'],
	[
		{ detail: [{ loc: ['body', 'workflow_id'], msg: 'field required', type: 'value_error.missing' }] },
		'body.workflow_id: field required',
	],
	[
		{ detail: [{ loc: ['body', 'prompt', 0], msg: 'too long' }, { msg: 'no place' }, 'words', 7, null] },
		'body.prompt.0: too long; no place; words',
	],
	[{ errors: [{ message: 'a' }, { message: 'b' }] }, 'a; b'],
	[{ exception_message: 'CUDA out of memory' }, 'CUDA out of memory'],
	[{ detail: [] }, ''],
	[{ detail: [{ loc: ['body'] }] }, ''],
	[{ code: 7 }, ''],
	[[{ error: { code: 400, message: 'no' } }], 'no'],
	[{ error: { message: 'failed', metadata: { raw: '{"error":{"message":"no"}}' } } }, 'failed: no'],
	[{ message: 'failed', metadata: { raw: ' upstream gone\n', provider_name: 'x' } }, 'failed: upstream gone'],
	[{ message: 'no', metadata: { raw: null, reasons: ['x'] } }, 'no'],
	[['no'], ''],
	['no', ''],
])('finds the message in %j', (error, words) => {
	expect(errorWords(error)).toBe(words);
});

test('reads only the first entries of a long list', () => {
	const detail = Array.from({ length: 1_000 }, () => ({ msg: 'no' }));
	expect(errorWords({ detail })).toBe('no; no; no; no; no');
});

test('hostile errors never cause an exception', () => {
	const deep = parseJson(`{"detail":${deeplyNested('list')}}`) ?? null;
	expect(errorWords(deep)).toBe('');
	fc.assert(
		fc.property(hostileJson(), hostileJson(), (detail, loc) => {
			expect(typeof errorWords({ detail: [{ msg: detail, loc }] })).toBe('string');
		}),
	);
});
