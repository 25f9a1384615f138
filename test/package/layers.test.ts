import { existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path/posix';
import { breaches, circles, importsOf, ROOMS } from './layers';
import { findFiles } from './packageFiles';

/** How many files a reader can survey at a glance. */
const MOST_FILES = 12;

it('imports run downwards only', () => {
	const files = findFiles(['{nodes,credentials}/**/*.ts']);
	expect(files.length).toBeGreaterThan(0);
	expect(files.flatMap((path) => breaches(path, readFileSync(path, 'utf8')))).toEqual([]);
});

it('imports form no cycle, types included', () => {
	const files = findFiles(['{nodes,credentials}/**/*.ts']);
	expect(circles(new Map(files.map((path) => [path, readFileSync(path, 'utf8')])))).toEqual([]);
});

it('no folder contains too many files', () => {
	const byFolder = Map.groupBy(findFiles(['{nodes,credentials}/**/*.ts']), (path) => dirname(path));
	const crowded = [...byFolder].filter(([, files]) => files.length > MOST_FILES);
	expect(crowded.map(([folder]) => folder)).toEqual([]);
});

it.each(['CONTRIBUTING.md', 'docs/developers.md'])('%s names files that exist', (page) => {
	const named = [...readFileSync(page, 'utf8').matchAll(/`((?:nodes|credentials|test)\/[\w/.]+\.ts)`/g)];
	expect(named.length).toBeGreaterThan(5);
	expect(named.map(([, file = '']) => file).filter((file) => !existsSync(file))).toEqual([]);
});

it('CONTRIBUTING.md lists the rooms in their order', () => {
	const rows = readFileSync('CONTRIBUTING.md', 'utf8').split('\n');
	const documented = rows.flatMap((row) => {
		const [folder = '', ...rooms] = [...row.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
		return row.startsWith('| `nodes/') ? [[folder, rooms] as const] : [];
	});
	expect(Object.fromEntries(documented)).toEqual(ROOMS);
});

describe('the check itself', () => {
	it.each([
		['sideways', 'nodes/A/task.engine.ts', "import { x } from '../B/agent.api'", "another node's folder"],
		[
			'up to actions',
			'nodes/A/task.engine.ts',
			"import { x } from './actions/router'",
			'must not import action',
		],
		['up to a node', 'nodes/A/actions/router.ts', "import { A } from '../A.node'", 'must not import node'],
		[
			'out of shared',
			'nodes/shared/run/items.ts',
			"import type { T } from '../../A/task.api'",
			'must not import protocol',
		],
		[
			'out of the product',
			'nodes/shared/run/items.ts',
			"import { x } from '../../../test/x'",
			'not a module',
		],
		['n8n in a protocol module', 'nodes/A/a.ts', "import { sleep } from 'n8n-workflow'", 'only types'],
		['an unlisted package', 'nodes/A/a.ts', "import axios from 'axios'", 'not in the table'],
		['a hidden require', 'nodes/A/a.ts', "const fs = require('fs')", 'not in the table'],
		['a file in no layer', 'nodes/A/lib/x.ts', '', 'belongs to no layer'],
		['a shared file in no room', 'nodes/shared/x.ts', '', 'belongs to no layer'],
		[
			'up to a room',
			'nodes/shared/text/json.ts',
			"import type { X } from '../errors/failure'",
			'stands above',
		],
		[
			'up within a node',
			'nodes/FlowTask/workflow/seeds.ts',
			"import { x } from '../tasks/watch'",
			'stands above',
		],
		[
			'up to a file of the node',
			'nodes/ChatCompletion/request/body.ts',
			"import { x } from '../api'",
			'stands above',
		],
		[
			'up from a file of the node',
			'nodes/ChatCompletion/failures.ts',
			"import { x } from './api'",
			'stands above',
		],
		['a file next to the rooms', 'nodes/ChatCompletion/x.ts', '', 'belongs to no layer'],
	])('catches %s', (_name, path, source, reason) => {
		expect(breaches(path, source)).toEqual([expect.stringContaining(reason)]);
	});

	it('finds cycles', () => {
		const sources = new Map([
			['nodes/A/a.ts', "import type { B } from './b'"],
			['nodes/A/b.ts', "import { c } from './c'"],
			['nodes/A/c.ts', "import { b } from './b'; import { d } from './d'"],
			['nodes/A/d.ts', ''],
		]);
		expect(circles(sources)).toEqual([['nodes/A/b.ts', 'nodes/A/c.ts', 'nodes/A/b.ts']]);
	});

	it('sees every form of import', () => {
		const source = `
			import a from './a'; import type { B } from './b'; export { c } from './c'; export type { D } from './d';
			import './e'; type F = import('./f').F; const g = import('./g'); const h = require('./h');`;
		expect(importsOf(source).map(({ from, isTypeOnly }) => `${from}${isTypeOnly ? ' (type)' : ''}`)).toEqual([
			...['./a', './b (type)', './c', './d (type)', './e', './f (type)', './g', './h'],
		]);
	});
});
