import fc from 'fast-check';

import { safeFileName } from '../../../../nodes/shared/files/fileType';
import {
	isPlainText,
	linksOf,
	markName,
	nameInLink,
	namesFor,
	sameFile,
	type FileLink,
} from '../../../../nodes/FlowTask/tasks/resultLinks';
import { taskInfo } from '../taskInfo.builder';

const A = 'https://h.example/out/a.png?sig=1';
const B = 'https://h.example/out/b.png?sig=1';
const C = 'https://h.example/out/c.png?sig=1';

describe('linksOf', () => {
	const info = taskInfo('t', { status: 3, files: { '12': [B, C], '9': [A] }, final_files: [C, A] });

	it('gives the final files in the order of the platform, with the nodes that made them', () => {
		expect(linksOf(info, 'finalFiles')).toEqual([
			{ nodeId: '12', index: 0, url: C },
			{ nodeId: '9', index: 1, url: A },
		]);
	});

	it('gives all files in one order, whatever order the nodes come in', () => {
		const other = taskInfo('t', { status: 3, files: { '9': [A], '12': [B, C] }, final_files: [C, A] });
		expect(linksOf(info, 'all').map(({ url }) => url)).toEqual([A, B, C]);
		expect(linksOf(other, 'all')).toEqual(linksOf(info, 'all'));
	});

	it('finds the node of a final file that was signed at another moment', () => {
		const signed = taskInfo('t', {
			status: 3,
			files: { '9': [A] },
			final_files: [A.replace('sig=1', 'sig=2')],
		});
		expect(linksOf(signed, 'finalFiles')).toMatchObject([{ nodeId: '9' }]);
	});

	it('tells files apart that differ in their query only', () => {
		const view = (name: string, sig: number): string =>
			`https://h.example/view?filename=${name}&type=output&sig=${sig}`;
		const queried = taskInfo('t', {
			status: 3,
			files: { '9': [view('a.png', 1)], '12': [view('b.png', 1)] },
			final_files: [view('a.png', 1), view('b.png', 1)],
		});
		expect(linksOf(queried, 'finalFiles').map(({ nodeId }) => nodeId)).toEqual(['9', '12']);
		const resigned = taskInfo('t', {
			status: 3,
			files: { '9': [view('a.png', 1)], '12': [view('b.png', 1)] },
			final_files: [view('a.png', 2), view('b.png', 2)],
		});
		expect(linksOf(resigned, 'finalFiles').map(({ nodeId }) => nodeId)).toEqual(['9', '12']);
	});

	it('tells files apart by whatever stands in their links, where these are the same in both places', () => {
		const one = 'https://h.example/get?id=1';
		const two = 'https://h.example/get?id=2';
		const linked = taskInfo('t', { status: 3, files: { '9': [one], '12': [two] }, final_files: [one, two] });
		expect(linksOf(linked, 'finalFiles').map(({ nodeId }) => nodeId)).toEqual(['9', '12']);
	});

	it('names no node where a new signature leaves nothing that tells the files of two nodes apart', () => {
		const link = (id: number, sig: number): string => `https://h.example/get?id=${id}&sig=${sig}`;
		const files = { '9': [link(1, 1), link(3, 1)], '12': [link(2, 1)] };
		const signed = taskInfo('t', { status: 3, files, final_files: [link(1, 2), link(2, 2)] });
		expect(linksOf(signed, 'finalFiles').map(({ nodeId }) => nodeId)).toEqual([null, null]);
		const ofOne = taskInfo('t', { status: 3, files: { '9': [link(1, 1)] }, final_files: [link(1, 2)] });
		expect(linksOf(ofOne, 'finalFiles')).toMatchObject([{ nodeId: '9' }]);
	});

	it('takes all files for final where the platform names no final ones', () => {
		expect(linksOf(taskInfo('t', { status: 3, files: { '9': [A, B] } }), 'finalFiles')).toHaveLength(2);
	});

	it('takes the final files for all where the platform names no others', () => {
		expect(linksOf(taskInfo('t', { status: 3, final_files: [A] }), 'all')).toEqual([
			{ nodeId: null, index: 0, url: A },
		]);
	});

	it('knows no node for a final file that no node lists', () => {
		expect(
			linksOf(taskInfo('t', { status: 3, files: { '9': [A] }, final_files: [B] }), 'finalFiles'),
		).toEqual([{ nodeId: null, index: 0, url: B }]);
	});

	it('gives a link once, though it is listed twice', () => {
		expect(linksOf(taskInfo('t', { status: 3, final_files: [A, A, B] }), 'finalFiles')).toMatchObject([
			{ index: 0, url: A },
			{ index: 1, url: B },
		]);
	});

	it('gives nothing where there is nothing', () => {
		expect(linksOf(taskInfo('t'), 'finalFiles')).toEqual([]);
		expect(linksOf(taskInfo('t'), 'all')).toEqual([]);
	});
});

describe('nameInLink', () => {
	it.each([
		['https://h.example/out/cat.png?x=1', 'cat.png'],
		['https://h.example/out/K%C3%A4tzchen.png', 'Kätzchen.png'],
		['https://h.example/view?filename=cat.png&type=output', 'cat.png'],
		['https://h.example/view/cat.webp?filename=other.png', 'cat.webp'],
		['https://h.example/', ''],
		['https://h.example', ''],
		['https://h.example/%E0%A4%A', ''],
		['no link', ''],
		['', ''],
	])('of %s is "%s"', (url, name) => {
		expect(nameInLink(url)).toBe(name);
	});
});

describe('markName', () => {
	it.each([
		['cat.png', 'cat_2.png'],
		['cat', 'cat_2'],
		['v1.cat.png', 'v1.cat_2.png'],
		['.png', '.png_2'],
		['', '_2'],
	])('marks %s as %s', (name, marked) => {
		expect(markName(name, '2')).toBe(marked);
	});
});

describe('namesFor', () => {
	const namesOf = (...wanted: Parameters<typeof namesFor>): string[] =>
		namesFor(...wanted).map(({ fileName }) => fileName);

	const links = (...urls: string[]): Parameters<typeof namesFor>[0] =>
		urls.map((url, index) => ({ nodeId: null, index, url }));

	it('takes the name that the server gives, as often as it is asked, and never twice', () => {
		const [first, second] = namesFor(links(A, B), { number: 3 });
		expect(first?.nameBySaid('cat.png')).toBe('cat_3.png');
		expect(first?.nameBySaid('cat.png')).toBe('cat_3.png');
		expect(second?.nameBySaid('CAT.png')).toBe('CAT_3_f2.png');
		expect(second?.nameBySaid('../../a.png')).toBe('a_3_f2.png');
	});

	it('leaves names alone in a run of one task', () => {
		expect(namesOf(links(A, B), {})).toEqual(['a.png', 'b.png']);
	});

	it('tells the files of items apart, which platforms name alike', () => {
		expect(namesOf(links(A), { number: 1 })).toEqual(['a_1.png']);
		expect(namesOf(links(A), { number: 2 })).toEqual(['a_2.png']);
	});

	it('takes the name of the task, with the ending of the link or of what the server says', () => {
		const [first, second] = namesFor(links(A, B), { number: 3, stem: 'render v1.2' });
		expect([first?.fileName, second?.fileName]).toEqual(['render v1.2.png', 'render v1.2_f2.png']);
		expect(first?.nameBySaid('cat.webp')).toBe('render v1.2.webp');
		expect(namesOf(links('https://h.example/view'), { stem: 'v1.2' })).toEqual(['v1.2.bin']);
	});

	it('gives a name where the link has none', () => {
		expect(namesOf(links('https://h.example/', 'https://h.example/'), {})).toEqual(['image', 'image_f2']);
	});

	it('never uses a name twice, not even one that a mark would make', () => {
		const path = fc.constantFrom(
			'a.png',
			'A.PNG',
			'a_f2.png',
			'a_f3.png',
			'a_f4.png',
			'a_f2_f3.png',
			'a_1.png',
			'',
		);
		fc.assert(
			fc.property(
				fc.array(path, { maxLength: 12 }),
				fc.option(fc.nat(3), { nil: undefined }),
				(paths, number) => {
					const names = namesOf(links(...paths.map((one) => `https://h.example/${one}`)), { number });
					expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(paths.length);
				},
			),
			{ numRuns: 500 },
		);
	});

	it('keeps names apart that are so long that they are cut', () => {
		const long = `https://h.example/${'x'.repeat(300)}`;
		const stored = [1, 2, 30].flatMap((number) =>
			namesOf(links(`${long}.png`, `${long}.png?2`), { number }).map((name) => safeFileName(name, 'png')),
		);
		expect(new Set(stored).size).toBe(6);
	});
});

describe('linksOf for certain nodes', () => {
	it('gives their files only, in the order of the nodes, each node once', () => {
		const info = taskInfo('t', {
			status: 3,
			progress_num: 100,
			files: {
				'9': ['https://f.example/a.png'],
				'12': ['https://f.example/b.png', 'https://f.example/c.png'],
			},
			final_files: ['https://f.example/a.png'],
		});
		expect(linksOf(info, ['12', '9', '12', 'x'])).toEqual([
			{ nodeId: '12', index: 0, url: 'https://f.example/b.png' },
			{ nodeId: '12', index: 1, url: 'https://f.example/c.png' },
			{ nodeId: '9', index: 2, url: 'https://f.example/a.png' },
		]);
	});

	it('gives no file whose node the platform does not name', () => {
		const info = taskInfo('t', { status: 3, progress_num: 100, final_files: ['https://f.example/a.png'] });
		expect(linksOf(info, ['9'])).toEqual([]);
	});
});

it.each([
	['a cat on a mat', true],
	['cat', true],
	['1: see https://h.example/a.png', true],
	['https://h.example/a b.png', false],
	['/view?filename=a.png', false],
	['file:///etc/passwd', false],
	['a/b.png', false],
])('a text among the files: %j is %s', (entry, expected) => {
	expect(isPlainText(entry)).toBe(expected);
});

describe('sameFile', () => {
	/** Signed at a moment: `a.png` is another link each time. */
	const links = (signature: number, ...paths: string[]): FileLink[] =>
		paths.map((path, index) => ({ nodeId: null, index, url: `https://h.example/${path}sig=${signature}` }));

	it.each<[string, before: string[], fresh: string[], found: Array<string | undefined>]>([
		['in the same order', ['a?', 'b?'], ['a?', 'b?'], ['a?', 'b?']],
		['in another order', ['a?', 'b?', 'c?'], ['c?', 'a?', 'b?'], ['a?', 'b?', 'c?']],
		['behind another that came twice', ['a?', 'b?'], ['b?', 'b?', 'a?'], ['a?', 'b?']],
		['twice', ['a?', 'b?'], ['b?', 'a?', 'a?'], ['a?', 'b?']],
		['beside one that vanished', ['a?', 'b?'], ['b?'], [undefined, 'b?']],
		[
			'by numbers',
			['get?id=1&', 'c?', 'get?id=2&'],
			['c?', 'get?id=1&', 'get?id=2&'],
			['get?id=1&', 'c?', 'get?id=2&'],
		],
		['by numbers, of which one vanished', ['get?id=1&', 'get?id=2&'], ['get?id=2&'], [undefined, undefined]],
		['with other paths each time', ['x1?', 'y1?'], ['x2?', 'y2?'], ['x2?', 'y2?']],
		['with other paths, of which one vanished', ['x1?', 'y1?'], ['y2?'], [undefined, undefined]],
		['with another path beside one that moved', ['a?', 'x1?'], ['x2?', 'a?'], ['a?', undefined]],
		['not at all', ['a?'], [], [undefined]],
	])('finds a file %s', (_name, before, fresh, found) => {
		const old = links(1, ...before);
		const sent = found.map((path) => path && `https://h.example/${path}sig=2`);
		expect(old.map((link) => sameFile(link, old, links(2, ...fresh))?.url)).toEqual(sent);
	});
});
