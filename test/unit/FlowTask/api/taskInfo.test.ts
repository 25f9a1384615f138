import fc from 'fast-check';

import {
	isFinal,
	decodeLink,
	MOST_FILES,
	readTaskInfo,
	readTaskInfos,
} from '../../../../nodes/FlowTask/api/taskInfo';

const WHOLE = {
	flow_task_id: 't-1',
	status: 3,
	queue_size: 4,
	current_position: 2,
	errMsg: '',
	files: { '9': ['https://h.example/a.png'], '12': ['https://h.example/b.png', 'https://h.example/c.png'] },
	final_files: ['https://h.example/c.png'],
	progress_num: 100,
};

describe('readTaskInfo', () => {
	it('reads all documented fields and keeps the original element', () => {
		expect(readTaskInfo(WHOLE)).toEqual({
			taskId: 't-1',
			state: 'succeeded',
			statusCode: 3,
			progress: 100,
			queueSize: 4,
			position: 2,
			errorMessage: '',
			files: new Map(Object.entries(WHOLE.files)),
			finalFiles: WHOLE.final_files,
			filesLeftOut: 0,
			raw: WHOLE,
		});
	});

	it.each([
		['null', null, {}],
		['missing', undefined, {}],
		['text', 'none', {}],
		['a node without files', { '9': null }, { '9': [] }],
		['a node with one link instead of a list', { '9': 'https://h/a.png' }, { '9': ['https://h/a.png'] }],
		['links among other values', { '9': [1, 'https://h/a.png', null, {}] }, { '9': ['https://h/a.png'] }],
		['empty links', { '9': ['', ' ', 'https://h/a.png'] }, { '9': ['https://h/a.png'] }],
	])('reads files that are %s', (_name, files, expected) => {
		expect(readTaskInfo({ flow_task_id: 't', status: 3, files })?.files).toEqual(
			new Map(Object.entries(expected)),
		);
	});

	it.each([
		['half way', 2, 50, false],
		['at 99', 2, 99, false],
		['without progress', 2, null, false],
		['at 100', 2, 100, true],
		['at 100 as text', 2, '100', true],
		['that is done at 100', 3, 100, true],
		['that is done, without progress', 3, undefined, true],
		['that is done at 99', 3, 99, true],
		['that failed half way', 4, 50, false],
	])('reads the final files of a task %s or not', (_name, status, progress_num, read) => {
		const final_files = ['https://h/a.png'];
		const info = readTaskInfo({ flow_task_id: 't', status, progress_num, final_files });
		expect(info?.finalFiles).toEqual(read ? final_files : []);
	});

	it.each([
		['null', null, ''],
		['an empty object', {}, ''],
		['an object', { code: 1 }, '{"code":1}'],
		['an exception', { exception_message: 'CUDA out of memory', node_id: '3' }, 'CUDA out of memory'],
		['a list', ['no such model', { message: 'steps: too many' }], 'no such model; steps: too many'],
		['an empty list', [], ''],
		['a list without messages', [7], '[7]'],
		['text', 'out of memory', 'out of memory'],
	])('reads an error text that is %s', (_name, errMsg, expected) => {
		expect(readTaskInfo({ flow_task_id: 't', errMsg })?.errorMessage).toBe(expected);
	});

	it('reads a numeric ID as text', () => {
		expect(readTaskInfo({ flow_task_id: 77 })?.taskId).toBe('77');
	});

	it.each([
		undefined,
		null,
		'x',
		7,
		[],
		[WHOLE],
		{},
		{ flow_task_id: '' },
		{ flow_task_id: null },
		{ status: 3 },
	])('does not accept %j as a task info', (value) => {
		expect(readTaskInfo(value)).toBeUndefined();
	});

	it('never lets a key of files reach a prototype', () => {
		const parsed: unknown = JSON.parse(
			'{"flow_task_id":"t","files":{"__proto__":["https://h/x"],"constructor":["https://h/y"],"9":["https://h/z"]}}',
		);
		const info = readTaskInfo(parsed);
		expect(info?.files).toEqual(new Map([['9', ['https://h/z']]]));
	});

	it('never throws and always returns lists of texts, whatever it reads', () => {
		const field = fc.oneof(fc.jsonValue(), fc.anything());
		const hostile = fc.record(
			{
				flow_task_id: fc.oneof(fc.string(), fc.integer(), field),
				status: field,
				queue_size: field,
				current_position: field,
				errMsg: field,
				files: fc.oneof(field, fc.dictionary(fc.string(), fc.oneof(fc.array(fc.string()), field))),
				final_files: fc.oneof(field, fc.array(fc.string())),
				progress_num: field,
			},
			{ requiredKeys: [] },
		);
		fc.assert(
			fc.property(fc.oneof(hostile, fc.anything()), (value) => {
				const info = readTaskInfo(value);
				if (!info) return;
				const links = [...[...info.files.values()].flat(), ...info.finalFiles];
				expect(links.every((link) => typeof link === 'string' && link !== '')).toBe(true);
				expect(typeof info.errorMessage).toBe('string');
				for (const count of [info.statusCode, info.progress, info.position, info.queueSize]) {
					expect(count === null || Number.isFinite(count)).toBe(true);
				}
			}),
			{ numRuns: 1_000 },
		);
	});
});

describe('readTaskInfos', () => {
	it('leaves out what is not a task info', () => {
		expect(readTaskInfos({ flow_task_info: [WHOLE, null, {}, 'x', { flow_task_id: 2 }] })).toMatchObject([
			{ taskId: 't-1' },
			{ taskId: '2' },
		]);
	});

	it.each([
		['an empty list', { flow_task_info: [] }, []],
		['a list that is null', { flow_task_info: null }, []],
		['one object as a list of one', { flow_task_info: WHOLE }, [readTaskInfo(WHOLE)]],
		['no list', {}, undefined],
		['an object that is not a task info in place of a list', { flow_task_info: {} }, undefined],
		['no data', undefined, undefined],
		['data that is null', null, []],
		['data that is a list', [], undefined],
	])('reads %s', (_name, data, expected) => {
		expect(readTaskInfos(data)).toEqual(expected);
	});
});

describe('decodeLink', () => {
	it.each([
		['a valid link', 'https://h/a.png?x=1&y=2', 'https://h/a.png?x=1&y=2'],
		['the literal escape', String.raw`https://h/a?x=1\u0026y=2\u0026z=3`, 'https://h/a?x=1&y=2&z=3'],
		['other literal escapes', String.raw`https://h/\u4f60\u003D\u003d`, 'https://h/你=='],
		['a pair of escapes for one character', String.raw`https://h/\ud83d\ude00`, 'https://h/😀'],
		['a link encoded as a whole', 'https%3A%2F%2Fh%2Fa.png%3Fx%3D1%26y%3D2', 'https://h/a.png?x=1&y=2'],
		['the same in lower case', 'http%3a%2f%2fh%2fa', 'http://h/a'],
		['both', String.raw`https%3A%2F%2Fh%2Fa%3Fx%3D1\u0026y%3D2`, 'https://h/a?x=1&y=2'],
		[
			'a link that was escaped first and then encoded as a whole',
			'https%3A%2F%2Fh%2Ff.png%3Fa%3D1%5Cu0026b%3D2%5cu003d',
			'https://h/f.png?a=1&b=2=',
		],
		['the escape, encoded', 'https://h/f.png?a=1%5Cu0026b=2%5cu0026c', 'https://h/f.png?a=1&b=2&c'],
		['no other encoded escape', 'https://h/f.png?a=%5Cu4f60', 'https://h/f.png?a=%5Cu4f60'],
		['a signed link that is encoded in part', 'https://h/a%2Fb?sig=x%2By%3D', 'https://h/a%2Fb?sig=x%2By%3D'],
		['a link with a link in its query', 'https://h/?u=https%3A%2F%2Fx', 'https://h/?u=https%3A%2F%2Fx'],
		['a complete encoding that contains another', 'https%3A%2F%2Fh%2Fa%253D', 'https://h/a%3D'],
		[
			'a link that is encoded only at its start',
			'https%3A%2F%2Fh/a%2Fb?u=http://x',
			'https%3A%2F%2Fh/a%2Fb?u=http://x',
		],
		['a complete encoding that is invalid', 'https%3A%2F%2Fh%2F%E0%A4%A', 'https%3A%2F%2Fh%2F%E0%A4%A'],
		['an escape that is cut off', String.raw`https://h/a\u002`, String.raw`https://h/a\u002`],
		['spaces around it', ' https://h/a \n', 'https://h/a'],
		['a path alone', '/view?filename=a%20b.png', '/view?filename=a%20b.png'],
		['nothing', '', ''],
	])('decodes %s', (_name, link, expected) => {
		expect(decodeLink(link)).toBe(expected);
	});

	it('restores every link that the service escaped or encoded', () => {
		fc.assert(
			fc.property(fc.webUrl({ withQueryParameters: true, withFragments: true }), (url) => {
				expect(decodeLink(url)).toBe(url);
				expect(decodeLink(url.replaceAll('&', String.raw`\u0026`))).toBe(url);
				expect(decodeLink(encodeURIComponent(url))).toBe(url);
				expect(decodeLink(encodeURIComponent(url.replaceAll('&', String.raw`\u0026`)))).toBe(url);
			}),
		);
	});

	it('never throws', () => {
		fc.assert(
			fc.property(
				fc.oneof(
					fc.string(),
					fc.string().map((text) => `https%3A%2F%2F${text}`),
				),
				(link) => {
					expect(typeof decodeLink(link)).toBe('string');
				},
			),
		);
	});
});

describe('readTaskInfo, with oversized reports', () => {
	const links = (count: number, name = 'a'): string[] =>
		Array.from({ length: count }, (_, index) => `https://h/${name}${index}.png`);

	it('keeps a thousand links of a task, and counts those that it leaves out', () => {
		const info = readTaskInfo({
			flow_task_id: 't',
			status: 3,
			files: { '9': links(800, 'a'), '12': links(800, 'b'), '13': links(5, 'c') },
			final_files: links(1_500),
		});
		expect([...(info?.files.values() ?? [])].map((urls) => urls.length)).toEqual([800, 200, 0]);
		expect(info?.finalFiles).toEqual(links(MOST_FILES));
		expect(info?.filesLeftOut).toBe(605);
	});

	it('leaves out links that no server accepts, and surplus output nodes', () => {
		const long = `https://h/${'x'.repeat(20_000)}`;
		const nodes = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`n${index}`, []]));
		const info = readTaskInfo({
			flow_task_id: 't',
			status: 3,
			files: { ...nodes, ['n'.repeat(5_000_000)]: links(2) },
			final_files: [long, ...links(1)],
		});
		expect(info?.finalFiles).toEqual(links(1));
		expect(info?.files.size).toBe(MOST_FILES);
		expect(info?.filesLeftOut).toBe(2);
	});

	it('refuses an ID that is megabytes long', () => {
		const megabytes = 'e'.repeat(5_000_000);
		expect(readTaskInfo({ flow_task_id: megabytes })).toBeUndefined();
		expect(readTaskInfos({ flow_task_info: [{ flow_task_id: megabytes }, WHOLE] })).toHaveLength(1);
	});
});

describe('the state of a task', () => {
	const stateOf = (status: number | null) => readTaskInfo({ flow_task_id: 't', status })?.state;

	it.each([
		[1, 'queued', false],
		[2, 'generating', false],
		[3, 'succeeded', true],
		[4, 'failed', true],
		[5, 'denied', true],
		[0, 'unknown', false],
		[6, 'unknown', false],
		[-1, 'unknown', false],
		[3.5, 'unknown', false],
		[NaN, 'unknown', false],
		[null, 'unknown', false],
	] as const)('reads %p as %s, final: %s', (status, state, final) => {
		expect(stateOf(status)).toBe(state);
		expect(isFinal(state)).toBe(final);
	});

	it('never ends a task because of an undocumented number', () => {
		fc.assert(
			fc.property(fc.double(), (status) => {
				const state = stateOf(status);
				if (![3, 4, 5].includes(status)) expect(state && isFinal(state)).toBe(false);
			}),
		);
	});
});
