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
const SHARE_OF_RIVAL_LIMIT = 0.5;
const KB = 1024;
/** The limit for readable code, which reviewers want; minified, the package has less than half this size. */
const SIZE_KB_LIMIT = 970;

/** Loads the files in a process of its own as n8n does at its start, when n8n-workflow is already loaded. */
const PROGRAM = `
	require('n8n-workflow');
	const files = process.argv.slice(1);
	const startedAt = process.hrtime.bigint();
	for (const file of files) require(file);
	console.log(Number(process.hrtime.bigint() - startedAt) / 1e6);
`;

const e2eRoot = join(packageRoot, 'test', 'e2e');
// By its path, because the package does not export it.
const RIVAL = join(e2eRoot, 'node_modules/@n8n/n8n-nodes-langchain/dist/nodes/vendors/OpenAi/OpenAi.node.js');

/** @param cwd the folder whose n8n-workflow is loaded first, which must be that of the files */
async function loadMs(files: readonly string[], cwd: string): Promise<number> {
	const { stdout } = await promisify(execFile)(process.execPath, ['-e', PROGRAM, ...files], { cwd });
	return Number(stdout);
}

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
		const shares: number[] = [];
		for (let run = 1; run <= RUNS; run++) {
			const ownMs = await loadMs(nodeFiles, packageRoot);
			timesMs.push(ownMs);
			shares.push(ownMs / (await loadMs([RIVAL], e2eRoot)));
		}
		const sizes = await Promise.all(
			(await pathsIn('dist/**/*.js')).map(async (path) => (await stat(path)).size),
		);
		return [
			atMost(LOAD_MS_LIMIT, median(timesMs), {
				...{ what: 'require of all node files', kind: 'time', unit: ' ms', runs: timesMs },
			}),
			atMost(SHARE_OF_RIVAL_LIMIT, median(shares), {
				...{ what: "require of all node files ÷ n8n's OpenAI node", kind: 'time', unit: ' ×', runs: shares },
			}),
			atMost(SIZE_KB_LIMIT, sum(sizes) / KB, {
				...{ what: 'JavaScript in dist', kind: 'count', unit: ' KB' },
			}),
		];
	},
};
