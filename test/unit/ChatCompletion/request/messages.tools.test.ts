import {
	messagesFromRows,
	readToolCalls,
	readToolResults,
	type MessageRow,
} from '../../../../nodes/ChatCompletion/request/messages';

const answer = (callId: string, content: string) => ({ role: 'tool', tool_call_id: callId, content });
const call = (id: string, args = '{"order_id":"17"}') => ({
	id,
	type: 'function',
	function: { name: 'get_order', arguments: args },
});

test.each([
	[[{ id: 'c1', name: 'get_order', arguments: { order_id: '17' } }], [call('c1')]],
	[{ id: 'c1', name: 'get_order', arguments: { order_id: '17' } }, [call('c1')]],
	[JSON.stringify([{ id: 'c1', name: 'get_order', arguments: { order_id: '17' } }]), [call('c1')]],
	[[call('c1')], [call('c1')]],
	[[{ id: 7, name: 'get_order' }], [call('7', '{}')]],
	[[{ id: 'c1', name: 'get_order', arguments: 'not JSON' }], [call('c1', 'not JSON')]],
	[[], []],
	['', []],
	[undefined, []],
])('reads the calls of an earlier answer: %j', (given, calls) => {
	expect(readToolCalls(given)).toEqual({ ok: true, value: calls });
});

test.each([
	['[object Object]', 'is not an array of tool calls'],
	[7, 'is not an array of tool calls'],
	[['x'], 'has no tool name in call 1'],
	[[call('c1'), { id: 'c2' }], 'has no tool name in call 2'],
	[[{ id: '', name: 'x' }], 'has no "id" in call 1, so no result can refer to it'],
	[
		'[{"id":"c1","name":"f","arguments":{"id":9007199254740993}}]',
		'contains the number 9007199254740993, which would lose digits',
	],
])('refuses calls that cannot be sent: %j', (given, failure) => {
	expect(readToolCalls(given)).toEqual({ ok: false, failure });
});

test.each([
	['c1', 'sent', [answer('c1', 'sent')]],
	['c1', '', [answer('c1', '')]],
	['c1', { state: 'sent' }, [answer('c1', '{"state":"sent"}')]],
	['c1', new Date(0), [answer('c1', '1970-01-01T00:00:00.000Z')]],
	['c1', ['a', 'b'], [answer('c1', '["a","b"]')]],
	[
		['c1', 2],
		['a', { b: 1 }],
		[answer('c1', 'a'), answer('2', '{"b":1}')],
	],
	[['c1'], 'a', [answer('c1', 'a')]],
	[[], [], []],
	['', '', []],
])('matches results to their calls: %j %j', (callId, content, results) => {
	expect(readToolResults(callId, content)).toEqual({ ok: true, value: results });
});

test.each([
	['', 'sent', "has no 'Call ID'"],
	['c1', null, 'has no result for the call "c1"'],
	[['c1', 'c2'], ['a'], 'has 2 call IDs, but 1 results'],
	[['c1', 'c2'], 'a', 'has 2 call IDs, but 1 results'],
	[['c1', ''], ['a', 'b'], "has an empty 'Call ID' at position 2"],
	[['c1', 'c2'], ['a', null], 'has no result for the call "c2"'],
])('refuses results that do not match their calls: %j %j', (callId, content, failure) => {
	expect(readToolResults(callId, content)).toEqual({ ok: false, failure });
});

const asked: MessageRow = { role: 'user', content: 'Where is order 17?', images: [] };
const calling = (...ids: string[]): MessageRow => ({
	...{ role: 'assistant', content: '', images: [] },
	toolCalls: ids.map((id) => call(id)),
});
const result = (...ids: string[]): MessageRow => ({
	...{ role: 'tool', content: '', images: [] },
	results: ids.map((callId) => answer(callId, `of ${callId}`)),
});

test('a row with several results becomes one message per result', () => {
	expect(messagesFromRows([asked, calling('a', 'b'), result('b', 'a'), asked])).toEqual({
		ok: true,
		value: [
			{ role: 'user', content: 'Where is order 17?' },
			{ role: 'assistant', content: '', tool_calls: [call('a'), call('b')] },
			{ role: 'tool', tool_call_id: 'b', content: 'of b' },
			{ role: 'tool', tool_call_id: 'a', content: 'of a' },
			{ role: 'user', content: 'Where is order 17?' },
		],
	});
});

test.each<[MessageRow[], RegExp]>([
	[[asked, result('a')], /^A tool message answers the call "a", which no assistant message before it made/],
	[
		[asked, calling('a'), result('a', 'a')],
		/^A tool message answers the call "a", .* which has a result already$/,
	],
	[[asked, calling('a', 'b'), result('a')], /^The tool call "b" has no result after it$/],
	[[asked, calling('a'), asked, result('a')], /^The tool call "a" has no result after it$/],
	[[asked, calling('a')], /^The tool call "a" has no result after it$/],
])('refuses mismatched calls and results before anything is billed: %#', (rows, message) => {
	expect(messagesFromRows(rows)).toMatchObject({
		ok: false,
		failure: { kind: 'badInput', message: expect.stringMatching(message) },
	});
});
