// What the nodes conclude from n8n's own words is right only while n8n says them: looks for them in n8n's files.
import { readFileSync } from 'node:fs';
import { glob } from 'node:fs/promises';
import { join } from 'node:path';
import { explainTableFailure, TABLE_GONE, TIMED_OUT } from '../../nodes/shared/dataTable/failures';
import { N8N_MODULES } from './runner';

/** Where n8n's Data Tables, its sub-executions and their errors are. */
const SPOKEN_IN = [
	'n8n/dist/modules/data-table/**/*.js',
	'n8n/dist/{errors,executions}/**/*.js',
	'n8n-core/dist/errors/*.js',
	'n8n-workflow/dist/cjs/errors/*.js',
	'n8n-nodes-base/dist/nodes/DataTable/**/*.js',
];
const TEXTS = /'[^'\n]{8,}'|"[^"\n]{8,}"|`[^`]{8,}`/g;

const TABLE = { name: 'runs', columns: [] };
let said: string[];

beforeAll(async () => {
	const files: string[] = [];
	for await (const path of glob(SPOKEN_IN, { cwd: N8N_MODULES })) files.push(join(N8N_MODULES, path));
	said = [...new Set(files.flatMap((file) => readFileSync(file, 'utf8').match(TEXTS) ?? []))];
});

it.each([
	['that a Data Table is gone', TABLE_GONE],
	['that an execution timed out', TIMED_OUT],
])('n8n says %s', (_what, words) => {
	expect(said.filter((text) => words.test(text))).not.toEqual([]);
});

it.each([
	['is full', 'size limit'],
	["could no longer be used: the workflow's timeout", 'timed out'],
	['cannot be used: this n8n instance has no Data Tables', 'nrecognized node type'],
	['cannot be used: n8n does not allow it', 'called by'],
	['does not have the expected columns', 'column'],
])('what the operator reads, "… %s …", follows from words of n8n with "%s"', (explained, words) => {
	const reasons = said.filter((text) => text.includes(words));
	const messages = reasons.map((text) => explainTableFailure(TABLE, text).message);
	expect(messages).toContainEqual(expect.stringContaining(explained));
});
