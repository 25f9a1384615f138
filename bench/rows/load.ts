// Measures what the package costs an n8n that only starts.
import { execFile } from 'node:child_process';
import { glob, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { atMost, median, sum, type Figure } from '../figures';
import type { Row } from '../stage';

const packageRoot = join(__dirname, '..', '..');

const RUNS = 9;
const LOAD_MS_LIMIT = 60;
const KB = 1024;
/** The limit for readable code, which reviewers want; minified, the package has less than half this size. */
const SIZE_KB_LIMIT = 1_000;

/** Loads the files in a process of its own as n8n does at its start, when n8n-workflow is already loaded. */
const PROGRAM = `
	require('n8n-workflow');
	const files = process.argv.slice(1);
	const startedAt = process.hrtime.bigint();
	for (const file of files) require(file);
	console.log(Number(process.hrtime.bigint() - startedAt) / 1e6);
`;

async function pathsIn(pattern: string): Promise<string[]> {
	const paths: string[] = [];
	for await (const path of glob(pattern, { cwd: packageRoot })) paths.push(join(packageRoot, path));
	return paths;
}

export const load: Row = {
	name: 'load',
	isQuick: true,
	async measure(): Promise<Figure[]> {
		const nodeFiles = await pathsIn('dist/**/*.{node,credentials}.js');
		if (nodeFiles.length === 0) throw new Error('dist/ contains no nodes.');
		const timesMs: number[] = [];
		for (let run = 1; run <= RUNS; run++) {
			const { stdout } = await promisify(execFile)(process.execPath, ['-e', PROGRAM, ...nodeFiles], {
				cwd: packageRoot,
			});
			timesMs.push(Number(stdout));
		}
		const sizes = await Promise.all(
			(await pathsIn('dist/**/*.js')).map(async (path) => (await stat(path)).size),
		);
		return [
			atMost(LOAD_MS_LIMIT, median(timesMs), {
				...{ what: 'require of all node files', kind: 'time', unit: ' ms', runs: timesMs },
			}),
			atMost(SIZE_KB_LIMIT, sum(sizes) / KB, {
				...{ what: 'JavaScript in dist', kind: 'count', unit: ' KB' },
			}),
		];
	},
};
