// Loaded into n8n before its own code. n8n 3 denies a sub-workflow with the caller policy "any", or with an unknown
// one, to every caller: it no longer has the lines that are removed here.
const { readFileSync, realpathSync } = require('node:fs');
const Module = require('node:module');
const { basename, join } = require('node:path');

const REMOVED = /\n +if \(policy === 'any'\)\n +return;/g;
/** Sub-workflows are called by workflows and by agents. */
const PLACES = 2;

const program = realpathSync(process.argv[1] ?? __dirname);
// n8n starts other programs with the same settings, such as its task runner.
if (basename(program) === 'n8n') {
	const folder = join(program, '..', '..', 'dist', 'executions', 'pre-execution-checks');
	const checker = join(folder, 'subworkflow-policy-checker.js');
	const source = readFileSync(checker, 'utf8');
	const places = source.match(REMOVED)?.length ?? 0;
	if (places !== PLACES) {
		throw new Error(
			`n8n's check of callers has changed: ${places} places instead of ${PLACES} in ${checker}`,
		);
	}
	const load = Module._extensions['.js'];
	Module._extensions['.js'] = (module, file) =>
		file === checker ? module._compile(source.replace(REMOVED, ''), file) : load(module, file);
}
