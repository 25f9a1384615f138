import fc from 'fast-check';

import {
	holdsEditorFile,
	isEmptyDefinition,
	isLink,
	readDefinition,
	type WorkflowDefinition,
} from '../../../../nodes/shared/workflow/definition';
import { parseJson, type Json } from '../../../../nodes/shared/text/json';
import { hostileJson, hostileSource } from '../../FlowTask/hostileJson';
import { failureOf, valueOf } from '../../results';

const NODE = { class_type: 'KSampler', inputs: { seed: 5, model: ['4', 0] }, _meta: { title: 'Sampler' } };
const EXPORT = { '3': NODE };
const NO_VALUES = { class_type: 'VAEDecode', inputs: {} };
const EDITOR_FILE = { last_node_id: 9, last_link_id: 9, nodes: [{ id: 3 }], links: [], version: 0.4 };

const read = (source: unknown): WorkflowDefinition => valueOf(readDefinition(source));

function refusal(source: unknown): string {
	const failure = failureOf(readDefinition(source));
	expect(failure.kind).toBe('badInput');
	expect(failure.advice).toContain('Export (API)');
	return failure.message;
}

const READ = {
	nodes: [
		{
			nodeId: '3',
			title: 'Sampler',
			classType: 'KSampler',
			inputs: [
				{ name: 'seed', value: 5, isLink: false },
				{ name: 'model', value: ['4', 0], isLink: true },
			],
		},
	],
};

describe('readDefinition', () => {
	it.each<[string, unknown]>([
		['an object', EXPORT],
		['text', JSON.stringify(EXPORT)],
		['text with a byte order mark', `\uFEFF${JSON.stringify(EXPORT)}`],
		['text with white space around', `\n\t ${JSON.stringify(EXPORT, null, 2)} \n`],
		['below "prompt"', { prompt: EXPORT }],
		['below "workflow"', { workflow: EXPORT }],
		['below "output"', { output: EXPORT }],
		['below "data"', { data: EXPORT }],
		['below "input" and "workflow"', { input: { workflow: EXPORT } }],
		['below "input" and "prompt"', JSON.stringify({ input: { prompt: EXPORT } })],
		['below "prompt", as text', { prompt: JSON.stringify(EXPORT) }],
		['below three wrappers', { data: { data: { prompt: EXPORT } } }],
		['next to the editor file', { workflow: EDITOR_FILE, prompt: EXPORT }],
		['in the request of an editor to its engine', { client_id: 'c', prompt: EXPORT, extra_data: {} }],
		['in a request body', { workflow_id: 'w', prompt: EXPORT }],
		['behind a wrapper that is broken text', { prompt: '{"3":', workflow: EXPORT }],
		['in a list of one', JSON.stringify([EXPORT])],
		['as Python writes it', `${JSON.stringify(EXPORT).slice(0, -1)},"is_changed":[NaN, -Infinity]}`],
		['in a code fence', `\n\`\`\`json\n${JSON.stringify(EXPORT)}\n\`\`\`\n`],
		['with spaces before its byte order mark', ` \n\uFEFF${JSON.stringify(EXPORT)}`],
		['below "prompt", as Python\'s text', { prompt: `{"3": ${JSON.stringify(NODE)}, "a": NaN}` }],
		['behind a wrapper that is null', { prompt: null, workflow: EXPORT }],
		['below an unknown key', { body: EXPORT }],
		['in a file of the editor', { ...EDITOR_FILE, extra: { prompt: EXPORT } }],
		['in a file of the editor, below "output"', { ...EDITOR_FILE, output: EXPORT }],
		['that contains the file of the editor', { ...EXPORT, workflow: EDITOR_FILE }],
		[
			'that contains the file of the editor elsewhere',
			{ ...EXPORT, extra_pnginfo: { workflow: EDITOR_FILE } },
		],
		['in the history of an engine', { 'a-b': { prompt: [3, 'a-b', EXPORT, {}, ['9']], outputs: {} } }],
		['in the queue of an engine', { queue_running: [[1, 'a-b', EXPORT, {}, ['9']]], queue_pending: [] }],
		[
			'next to values that are not nodes',
			{ ...EXPORT, extra: { a: 1 }, version: 1, list: [NODE], none: null },
		],
	])('reads an export: %s', (_name, source) => {
		expect(read(source)).toEqual(READ);
	});

	it('prefers nodes to wrappers, even if the ID of a node is the name of a wrapper', () => {
		expect(read({ prompt: NODE, '7': NODE }).nodes.map(({ nodeId }) => nodeId)).toEqual(['7', 'prompt']);
	});

	it.each(['57:43', '538_531', '0', '-1', 'a b', '🦊', '__proto__', 'constructor', 'toString', ''])(
		'keeps the node ID "%s" unchanged',
		(nodeId) => {
			const source = `{${JSON.stringify(nodeId)}: ${JSON.stringify(NODE)}}`;
			expect(read(source).nodes).toEqual([{ ...READ.nodes[0], nodeId }]);
		},
	);

	it.each<[string, object, string]>([
		['no _meta', {}, 'KSampler'],
		['_meta that is null', { _meta: null }, 'KSampler'],
		['_meta that is text', { _meta: 'Sampler' }, 'KSampler'],
		['_meta that is a list', { _meta: ['Sampler'] }, 'KSampler'],
		['an empty title', { _meta: { title: ' \n' } }, 'KSampler'],
		['a title that is a number', { _meta: { title: 7 } }, 'KSampler'],
		['a title that is an object', { _meta: { title: {} } }, 'KSampler'],
		['a title in "meta"', { meta: { title: 'Other' } }, 'Other'],
		['a title on the node', { title: 'Mine' }, 'Mine'],
		['titles everywhere', { _meta: { title: 'A' }, meta: { title: 'B' }, title: 'C' }, 'A'],
		['a class without a name', { class_type: '' }, 'Node 57:43'],
		['a class of spaces', { class_type: '  ' }, 'Node 57:43'],
		['a title over two lines', { title: ' a\n b ' }, 'a b'],
	])('finds a title for a node with %s', (_name, over, title) => {
		const node = { class_type: 'KSampler', inputs: {}, ...over };
		expect(read({ '57:43': node }).nodes).toMatchObject([{ nodeId: '57:43', title, inputs: [] }]);
	});

	it('shortens a title that is too long', () => {
		const [node] = read({ '3': { ...NODE, _meta: { title: 'x'.repeat(10_000) } } }).nodes;
		expect(node?.title).toHaveLength(80);
	});

	it.each([{}, { inputs: {} }, { inputs: null }, { inputs: [] }, { inputs: 'seed' }])(
		'treats a node with %j as one without inputs',
		(over) => {
			expect(read({ '3': { class_type: 'X', ...over } }).nodes).toEqual([
				{ nodeId: '3', title: 'X', classType: 'X', inputs: [] },
			]);
		},
	);

	it('keeps names and values of any kind', () => {
		const inputs = {
			'with space': 1,
			'with.dot': -0.5,
			'🦊': null,
			'a/b': '%date:yyyy%/${x}/{{ $json.a }}',
			'': '',
			list: [1, 2, 3],
			pair: ['a', 'b'],
			object: { a: { b: [] } },
			yes: true,
			constructor: 'c',
			class_type: 'an input of that name',
		};
		const [node] = read({ '3': { class_type: 'X', inputs } }).nodes;
		expect(node?.inputs).toEqual(
			Object.entries(inputs).map(([name, value]) => ({ name, value, isLink: false })),
		);
	});

	it('recognizes links, even to a missing node', () => {
		const [node] = read({ '6': { class_type: 'X', inputs: { text: ['12:3', 0], clip: ['999', 1] } } }).nodes;
		expect(node?.inputs.map(({ isLink: linked }) => linked)).toEqual([true, true]);
	});

	it.each<[string, Json, boolean]>([
		['a link with its node as a number', [4, 0], true],
		['a pair of numbers of which the first is not a node', [5, 0], false],
		['a size', [512, 512], false],
		['a link to a missing node', ['5', 0], true],
		['a pair of texts', ['4', '0'], false],
	])('distinguishes values from links: %s', (_name, value, expected) => {
		const [node] = read({ '3': { class_type: 'X', inputs: { a: value } }, '4': NODE, '512': NODE }).nodes;
		expect(node?.inputs).toEqual([{ name: 'a', value, isLink: expected }]);
	});

	it('keeps the digits of a seed above 2^53', () => {
		const source = '{"3": {"class_type": "KSampler", "inputs": {"seed": 18446744073709551615}}}';
		expect(read(source).nodes[0]?.inputs[0]?.value).toBe('18446744073709551615');
	});

	it('reads 150 nodes with a text of 1 MB', () => {
		const text = 'ä'.repeat(1_000_000);
		const nodes = Array.from({ length: 150 }, (_, index) => [
			`${index}:1`,
			{ class_type: 'X', inputs: { a: index } },
		]);
		const source = JSON.stringify({
			...Object.fromEntries(nodes),
			t: { class_type: 'T', inputs: { text } },
		});
		const read150 = read(source).nodes;
		expect(read150).toHaveLength(151);
		expect(read150.at(-1)?.inputs[0]?.value).toBe(text);
	});

	it.each<[string, unknown]>([
		['as saved', EDITOR_FILE],
		['as text', JSON.stringify(EDITOR_FILE)],
		['without links', { nodes: [], last_node_id: 1 }],
		['of a newer editor', { version: 1, nodes: [] }],
		['with links only', { nodes: [], links: [] }],
		['below "workflow"', { workflow: EDITOR_FILE, extra: 1 }],
		['below two wrappers', { input: { workflow: EDITOR_FILE } }],
		['below "prompt"', { prompt: EDITOR_FILE }],
	])('recognizes an editor file %s', (_name, source) => {
		expect(refusal(source)).toContain('(UI format), not an API-format export');
	});

	it('names a node without "class_type", which was installed nowhere at the export', () => {
		const unknown = { inputs: { text: 'a fox' }, _meta: { title: 'Prompt Magic' } };
		for (const node of [unknown, { ...unknown, class_type: null }]) {
			expect(refusal({ ...EXPORT, '57:43': node })).toBe(
				'\'Workflow Definition\' has a node without "class_type": Prompt Magic, ID 57:43',
			);
		}
		expect(readDefinition({ ...EXPORT, _comment: 'by hand', extra: { ds: {} } }).ok).toBe(true);
	});

	it.each<[string, unknown, string]>([
		['text', 'a red fox', 'is not valid JSON'],
		['a cut file', JSON.stringify(EXPORT).slice(0, -1), 'is not valid JSON'],
		['nothing', undefined, 'is empty'],
		['an empty text', '', 'is empty'],
		['null', null, 'is empty'],
		['null as text', 'null', 'is not a JSON object'],
		['a list of nodes', [EXPORT, EXPORT], 'is not a JSON object'],
		['a list of one node', [NODE], 'contains no workflow nodes'],
		['a trailing comma', '{"3": {"inputs": {},}}', 'is not valid JSON: it has a comma before a closing'],
		['curly quotes', '{“3”: {}}', 'is not valid JSON: it has curly quotes'],
		['a text in JSON', JSON.stringify(JSON.stringify(EXPORT)), 'is not a JSON object'],
		['a number', 7, 'is not a JSON object'],
		['one node', NODE, 'contains no workflow nodes'],
		['an empty object', {}, 'is empty'],
		['changes', { '6': { inputs: { text: 'fox' } } }, 'contains no workflow nodes'],
		['a class that is a number', { '6': { class_type: 7, inputs: {} } }, 'contains no workflow nodes'],
		['too many wrappers', { a: { b: { c: { d: { e: EXPORT } } } } }, 'contains no workflow nodes'],
		['several exports', { one: EXPORT, other: EXPORT }, 'contains several workflows'],
		[
			'a parameter view',
			{ '3': { class_type: 'X', inputs: { seed: { spec: { min: 0 } } } }, '8': NO_VALUES },
			'is a parameter view',
		],
		['nodes that are not a list', { nodes: {}, links: [] }, 'contains no workflow nodes'],
	])('refuses %s', (_name, source, message) => {
		expect(refusal(source)).toContain(message);
	});

	it('finds no export in the prototype of objects', () => {
		expect(readDefinition(Object.create(EXPORT)).ok).toBe(false);
		expect(Object.hasOwn(Object.prototype, 'class_type')).toBe(false);
	});

	it('never throws, and returns a title for each node', () => {
		fc.assert(
			fc.property(fc.oneof(hostileSource(), fc.anything({ withBigInt: true, withMap: true })), (source) => {
				const result = readDefinition(source);
				if (!result.ok) {
					expect(result.failure).toMatchObject({ kind: 'badInput' });
					expect(result.failure.message).not.toBe('');
					return;
				}
				expect(result.value.nodes.length).toBeGreaterThan(0);
				for (const { title } of result.value.nodes) expect(title.trim()).not.toBe('');
			}),
			{ numRuns: 500 },
		);
	});

	it('reads text and object alike', () => {
		fc.assert(
			fc.property(hostileJson(), (value) => {
				const parsed = parseJson(JSON.stringify(value));
				// As a value, null is an empty field.
				if (typeof parsed === 'string' || parsed === null) return;
				const [ofText, ofObject] = [readDefinition(JSON.stringify(value)), readDefinition(parsed)];
				expect(ofText).toEqual(ofObject);
			}),
			{ numRuns: 500 },
		);
	});
});

describe('isEmptyDefinition', () => {
	it.each([undefined, null, '', ' ', '\n', '{}', ' { } ', {}])('is true for %j', (source) => {
		expect(isEmptyDefinition(source)).toBe(true);
	});

	it.each(['{', 'x', 'null', '[]', [], 0, false, '{"a":1}', EXPORT])('is false for %j', (source) => {
		expect(isEmptyDefinition(source)).toBe(false);
	});
});

describe('isLink', () => {
	it.each([[['4', 0]], [['57:43', 12]], [['', 0]], [['999', -1]], [[4, 0]], [[538, 12]]])(
		'is true for %j',
		(value) => {
			expect(isLink(value, () => true)).toBe(true);
		},
	);

	it.each([
		[['4']],
		[['4', 0, 0]],
		[['4', '0']],
		[[512, 512]],
		[[4, -1]],
		[[4.5, 0]],
		[['4', 0.5]],
		[['4', null]],
		[[]],
		['4,0'],
		[null],
		[undefined],
		[{ 0: '4', 1: 0, length: 2 }],
	])('is false for %j', (value) => {
		expect(isLink(value, () => true)).toBe(false);
	});
});

test('recognizes an editor file by a list of nodes together with links or a version', () => {
	expect(holdsEditorFile({ nodes: [], links: [] })).toBe(true);
	expect(holdsEditorFile({ nodes: [], version: null })).toBe(true);
	expect(holdsEditorFile({ nodes: [] })).toBe(false);
	expect(holdsEditorFile({ links: [], version: 1 })).toBe(false);
});
