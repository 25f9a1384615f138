import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { join } from 'node:path';

const ROOT = join(__dirname, '..', '..');

test('the demo makes eight different pictures, and a page that shows them with their prompts', async () => {
	const { stdout } = await promisify(execFile)(
		process.execPath,
		['--import', 'tsx', join(ROOT, 'test/demo/demo.ts')],
		{ cwd: ROOT },
	);
	expect(stdout).toContain('8 of 8 pictures, 8 of them different.');
	const [address = ''] = /file:\S+/.exec(stdout) ?? [];
	const page = await readFile(fileURLToPath(address), 'utf8');
	expect(page.match(/<img src="data:image\/png;base64,/g)).toHaveLength(8);
	expect(page).toContain('a red fox asleep in fresh snow');
});
