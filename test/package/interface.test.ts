import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findFiles, packageRoot } from './packageFiles';

/** The text of docs/interface.md, to whose section numbers the source code refers. */
const page = readFileSync(join(packageRoot, 'docs/interface.md'), 'utf8');
const sections = page.split(/^(?=#{2,3} \d)/m).slice(1);
const numberOf = (section: string): string => /\d+(?:\.\d+)?/.exec(section)?.[0] ?? '';
const filesIn = (text: string): string[] =>
	[...text.matchAll(/`((?:nodes|credentials|test)\/[^`]+)`/g)].map(([, file = '']) => file);

it('has a section for each § in the source code', () => {
	const known = new Set(sections.map(numberOf));
	const references = findFiles(['{nodes,credentials}/**/*.ts']).flatMap((path) =>
		[...readFileSync(path, 'utf8').matchAll(/§(\d+(?:\.\d+)*)/g)].map(([, number = '']) => ({
			path,
			number,
		})),
	);
	expect(references.length).toBeGreaterThan(50);
	expect(references.filter(({ number }) => !known.has(number))).toEqual([]);
});

it('has a numbered rule for each "§4.1, rule 4" in the source code', () => {
	const rules = findFiles(['{nodes,credentials}/**/*.ts']).flatMap((path) =>
		[...readFileSync(path, 'utf8').matchAll(/§(\d+(?:\.\d+)?), rule (\d+)/g)].map(([, number, rule]) => ({
			path,
			number,
			rule,
		})),
	);
	expect(rules.length).toBeGreaterThan(2);
	const isLost = ({ number, rule }: { number?: string | undefined; rule?: string | undefined }): boolean => {
		const section = sections.find((one) => numberOf(one) === number) ?? '';
		return !new RegExp(`^${rule}\\. `, 'm').test(section);
	};
	expect(rules.filter(isLost)).toEqual([]);
});

it('names files that exist', () => {
	const files = filesIn(page);
	expect(files.length).toBeGreaterThan(40);
	expect(files.filter((file) => !existsSync(join(packageRoot, file)))).toEqual([]);
});

it('names a file in each section that the package implements', () => {
	const without = sections.filter((section) => filesIn(section).length === 0).map(numberOf);
	// These are headings above others, and what the platform does not offer.
	expect(without).toEqual(['1', '2', '3', '5', '6', '6.3', '7', '8']);
});
