import { readWords } from '../../../nodes/AgentInvoke/codes';
import { findFirst, readPaths, wordAt } from '../../../nodes/AgentInvoke/paths';

test.each([
	['session_busy', 'session_busy', 'usual'],
	['sessionBusy', 'session_busy', 'usual'],
	['SESSION-BUSY', 'session_busy', 'usual'],
	['session busy', 'session_busy', 'usual'],
	['QUEUE_FULL', 'session_busy, queueFull', 'own'],
	['session_busy now', 'session_busy', undefined],
	['a.b', 'a*b', 'own'],
	['a+b', 'a+b', 'own'],
	['aab', 'a+b', undefined],
	['ab', 'a*b', 'own'],
	['aXbXc', 'a*b*c', 'own'],
	['aXcXb', 'a*b*c', undefined],
	['a', 'a*a', undefined],
	['tool_failed', '*fail*', 'own'],
	['', '*', undefined],
	['x', '', undefined],
	['423', '423', 'own'],
])('%j in %j is %s', (word, list, known) => {
	expect(readWords(list, 'session_busy').find(word)).toBe(known);
});

test('many stars in a long word take no time', () => {
	const startedMs = performance.now();
	const list = readWords(`${'*a'.repeat(200)}*b`, '');
	expect(list.has('a'.repeat(1_000_000))).toBe(false);
	expect(performance.now() - startedMs).toBeLessThan(500);
});

test('paths are alternatives, and the first that is there counts', () => {
	const paths = readPaths('a.b, ["x,y"] , c[0].d,, ');
	expect(paths).toEqual(['a.b', '["x,y"]', 'c[0].d']);
	expect(findFirst({ a: { b: null }, 'x,y': '', c: [{ d: 0 }] }, paths)).toEqual({
		path: 'c[0].d',
		value: 0,
	});
	expect(findFirst({}, paths)).toBeUndefined();
	expect(wordAt({ a: { b: {} }, 'x,y': '  ', c: [{ d: 7 }] }, paths)).toBe('7');
	expect(findFirst({ a: 1 }, readPaths('constructor, __proto__, toString'))).toBeUndefined();
});
