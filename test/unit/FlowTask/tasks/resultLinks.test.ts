import fc from 'fast-check';

import { safeFileName } from '../../../../nodes/shared/files/fileName';
import {
	isPlainText,
	linkFinder,
	linksOf,
	markName,
	nameInLink,
	namesFor,
	type FileLink,
} from '../../../../nodes/FlowTask/tasks/resultLinks';
import { taskInfo } from '../taskInfo.builder';

const A = 'https://h.example/out/a.png?sig=1';
const B = 'https://h.example/out/b.png?sig=1';
const C = 'https://h.example/out/c.png?sig=1';

/** A task that is done, with these files. */
const finished = (files: Parameters<typeof taskInfo>[1]) => taskInfo('t', { status: 3, ...files });

describe('linksOf', () => {
	const info = finished({ files: { '12': [B, C], '9': [A] }, final_files: [C, A] });

	it('returns the final files in the order of the platform, with the nodes that made them', () => {
		expect(linksOf(info, 'finalFiles')).toEqual([
			{ nodeId: '12', index: 0, url: C },
			{ nodeId: '9', index: 1, url: A },
		]);
	});

	it('returns all files in one order, whatever the order of the nodes', () => {
		const other = finished({ files: { '9': [A], '12': [B, C] }, final_files: [C, A] });
		expect(linksOf(info, 'all').map(({ url }) => url)).toEqual([A, B, C]);
		expect(linksOf(other, 'all')).toEqual(linksOf(info, 'all'));
	});

	it.each(['finalFiles', 'all'] as const)(
		'a link that two nodes list belongs to the first one (%s)',
		(selection) => {
			const twice = finished({ files: { '9': [A], '12': [A] }, final_files: [A] });
			expect(linksOf(twice, selection)).toEqual([{ nodeId: '9', index: 0, url: A }]);
		},
	);

	it('finds the node of a final file with another signature', () => {
		const signed = finished({ files: { '9': [A] }, final_files: [A.replace('sig=1', 'sig=2')] });
		expect(linksOf(signed, 'finalFiles')).toMatchObject([{ nodeId: '9' }]);
	});

	it('distinguishes files that differ only in their query', () => {
		const view = (name: string, sig: number): string =>
			`https://h.example/view?filename=${name}&type=output&sig=${sig}`;
		const queried = finished({
			files: { '9': [view('a.png', 1)], '12': [view('b.png', 1)] },
			final_files: [view('a.png', 1), view('b.png', 1)],
		});
		expect(linksOf(queried, 'finalFiles').map(({ nodeId }) => nodeId)).toEqual(['9', '12']);
		const resigned = finished({
			files: { '9': [view('a.png', 1)], '12': [view('b.png', 1)] },
			final_files: [view('a.png', 2), view('b.png', 2)],
		});
		expect(linksOf(resigned, 'finalFiles').map(({ nodeId }) => nodeId)).toEqual(['9', '12']);
	});

	it('distinguishes files by any part of their links if both lists have the same links', () => {
		const one = 'https://h.example/get?id=1';
		const two = 'https://h.example/get?id=2';
		const linked = finished({ files: { '9': [one], '12': [two] }, final_files: [one, two] });
		expect(linksOf(linked, 'finalFiles').map(({ nodeId }) => nodeId)).toEqual(['9', '12']);
	});

	it('names no node if a new signature makes the files of two nodes indistinguishable', () => {
		const link = (id: number, sig: number): string => `https://h.example/get?id=${id}&sig=${sig}`;
		const files = { '9': [link(1, 1), link(3, 1)], '12': [link(2, 1)] };
		const signed = finished({ files, final_files: [link(1, 2), link(2, 2)] });
		expect(linksOf(signed, 'finalFiles').map(({ nodeId }) => nodeId)).toEqual([null, null]);
		const ofOne = finished({ files: { '9': [link(1, 1)] }, final_files: [link(1, 2)] });
		expect(linksOf(ofOne, 'finalFiles')).toMatchObject([{ nodeId: '9' }]);
	});

	it('treats all files as final if the platform names no final ones', () => {
		expect(linksOf(finished({ files: { '9': [A, B] } }), 'finalFiles')).toHaveLength(2);
	});

	it('treats the final files as all files if the platform names no others', () => {
		expect(linksOf(finished({ final_files: [A] }), 'all')).toEqual([{ nodeId: null, index: 0, url: A }]);
	});

	it('names no node for a final file that no node lists', () => {
		expect(linksOf(finished({ files: { '9': [A] }, final_files: [B] }), 'finalFiles')).toEqual([
			{ nodeId: null, index: 0, url: B },
		]);
	});

	it('returns a link once, even if it is listed twice', () => {
		expect(linksOf(finished({ final_files: [A, A, B] }), 'finalFiles')).toMatchObject([
			{ index: 0, url: A },
			{ index: 1, url: B },
		]);
	});

	it('finds no links for a node that is only called like a property of every object', () => {
		expect(linksOf(info, ['constructor', '__proto__', '9'])).toEqual([{ nodeId: '9', index: 0, url: A }]);
	});

	it('returns nothing if there are no files', () => {
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
		['https://h.example/%E0%A4%A', '%E0%A4%A'],
		['no link', ''],
		['', ''],
	])('finds in %s the name "%s"', (url, name) => {
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
	])('turns %s into %s', (name, marked) => {
		expect(markName(name, '2')).toBe(marked);
	});
});

describe('namesFor', () => {
	const namesOf = (...wanted: Parameters<typeof namesFor>): string[] =>
		namesFor(...wanted).map(({ fileName }) => fileName);

	const links = (...urls: string[]): Parameters<typeof namesFor>[0] =>
		urls.map((url, index) => ({ nodeId: null, index, url }));

	it('uses the name from the server each time it is asked, but never for two files', () => {
		const [first, second] = namesFor(links(A, B), { mark: '3' });
		expect(first?.nameBySaid('cat.png')).toBe('cat_3.png');
		expect(first?.nameBySaid('cat.png')).toBe('cat_3.png');
		expect(second?.nameBySaid('CAT.png')).toBe('CAT_3_f2.png');
		expect(second?.nameBySaid('../../a.png')).toBe('a_3_f2.png');
	});

	it('leaves names unchanged in a run of one task', () => {
		expect(namesOf(links(A, B), {})).toEqual(['a.png', 'b.png']);
	});

	it('distinguishes the files of items, which platforms name alike', () => {
		expect(namesOf(links(A), { mark: '1' })).toEqual(['a_1.png']);
		expect(namesOf(links(A), { mark: '2' })).toEqual(['a_2.png']);
	});

	it('uses the name of the task, with the extension of the link or of the server', () => {
		const [first, second] = namesFor(links(A, B), { mark: '3', stem: 'render v1.2' });
		expect([first?.fileName, second?.fileName]).toEqual(['render v1.2.png', 'render v1.2_f2.png']);
		expect(first?.nameBySaid('cat.webp')).toBe('render v1.2.webp');
		expect(namesOf(links('https://h.example/view'), { stem: 'v1.2' })).toEqual(['v1.2.bin']);
	});

	it('invents a name if the link has none', () => {
		expect(namesOf(links('https://h.example/', 'https://h.example/'), {})).toEqual(['image', 'image_f2']);
	});

	it('never uses a name twice, not even one that equals a marked name', () => {
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
				fc.option(fc.constantFrom('1', '2_v1', 'f2'), { nil: undefined }),
				(paths, mark) => {
					const names = namesOf(links(...paths.map((one) => `https://h.example/${one}`)), { mark });
					expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(paths.length);
				},
			),
			{ numRuns: 500 },
		);
	});

	it('marks a marked name once more, so that many such names take no long search', () => {
		const marked = ['a_f3.png', 'a.png', 'a.png'].map((name) => `https://h.example/${name}`);
		expect(namesOf(links(...marked), {})).toEqual(['a_f3.png', 'a.png', 'a_f3_f3.png']);
	});

	it('keeps long names distinct when they are cut', () => {
		const long = `https://h.example/${'x'.repeat(300)}`;
		const stored = ['1', '2', '30_v12'].flatMap((mark) =>
			namesOf(links(`${long}.png`, `${long}.png?2`), { mark }).map((name) => safeFileName(name, 'png')),
		);
		expect(new Set(stored).size).toBe(6);
	});
});

describe('linksOf for certain nodes', () => {
	it('returns only their files, in the order of the nodes, each node once', () => {
		const info = finished({
			progress_num: 100,
			files: { '9': [A], '12': [B, C] },
			final_files: [A],
		});
		expect(linksOf(info, ['12', '9', '12', 'x'])).toEqual([
			{ nodeId: '12', index: 0, url: B },
			{ nodeId: '12', index: 1, url: C },
			{ nodeId: '9', index: 2, url: A },
		]);
	});

	it('returns no file whose node the platform does not name', () => {
		const info = finished({ progress_num: 100, final_files: [A] });
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
])('for the entry %j, isPlainText is %s', (entry, expected) => {
	expect(isPlainText(entry)).toBe(expected);
});

describe('linkFinder', () => {
	/** Links with a signature, so that the same file has another link each time. */
	const links = (signature: number, ...paths: string[]): FileLink[] =>
		paths.map((path, index) => ({ nodeId: null, index, url: `https://h.example/${path}sig=${signature}` }));

	it.each<[string, before: string[], fresh: string[], found: Array<string | undefined>]>([
		['in the same order', ['a?', 'b?'], ['a?', 'b?'], ['a?', 'b?']],
		['in another order', ['a?', 'b?', 'c?'], ['c?', 'a?', 'b?'], ['a?', 'b?', 'c?']],
		['after another that is listed twice', ['a?', 'b?'], ['b?', 'b?', 'a?'], ['a?', 'b?']],
		['twice', ['a?', 'b?'], ['b?', 'a?', 'a?'], ['a?', 'b?']],
		['after one that vanished', ['a?', 'b?'], ['b?'], [undefined, 'b?']],
		[
			'with numbers',
			['get?id=1&', 'c?', 'get?id=2&'],
			['c?', 'get?id=1&', 'get?id=2&'],
			['get?id=1&', 'c?', 'get?id=2&'],
		],
		[
			'with numbers, of which one vanished',
			['get?id=1&', 'get?id=2&'],
			['get?id=2&'],
			[undefined, undefined],
		],
		['with other paths each time', ['x1?', 'y1?'], ['x2?', 'y2?'], ['x2?', 'y2?']],
		['with other paths, of which one vanished', ['x1?', 'y1?'], ['y2?'], [undefined, undefined]],
		['with another path, next to one that moved', ['a?', 'x1?'], ['x2?', 'a?'], ['a?', undefined]],
		['not at all', ['a?'], [], [undefined]],
	])('finds a file listed %s', (_name, before, fresh, found) => {
		const old = links(1, ...before);
		const sent = found.map((path) => path && `https://h.example/${path}sig=2`);
		const find = linkFinder(old, links(2, ...fresh));
		expect(old.map((link) => find(link)?.url)).toEqual(sent);
	});

	it('reads each link only a few times, however many there are', () => {
		let reads = 0;
		const counted = links(1, ...Array.from({ length: 100 }, (_, index) => `${index}?`)).map((link) => ({
			...link,
			get url() {
				reads++;
				return link.url;
			},
		}));
		const find = linkFinder(counted, counted);
		expect(counted.map((link) => find(link)?.index)).toEqual([...counted.keys()]);
		expect(reads).toBeLessThan(10 * counted.length);
	});
});
