// npm run identity: refuses while package.json contains placeholders for the address and the author, or another file
// differs from it. With --write, copies both from package.json into the files that state them.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** @typedef {{ author: { name: string, email: string }, repository: { url: string } }} Manifest */

/** What package.json says until somebody publishes the package. */
const PLACEHOLDERS = {
	'author.name': 'n8n-nodes-flowtask contributors',
	'author.email': 'flowtask@users.noreply.github.com',
	'repository.url': 'git+https://github.com/flowtask/n8n-nodes-flowtask.git',
};

const ADDRESS = /https:\/\/github\.com\/[\w.-]+\/[\w-]+(?=#|\/|"|')/g;
const STATED_IN = /^(package\.json|credentials\/\w+\.credentials\.ts|nodes\/\w+\/\w+\.node\.json)$/;

/**
 * Finds the files that state the address or the author, and what they should contain.
 *
 * @param {string} folder
 * @param {Manifest} manifest
 */
function statements(folder, { author, repository }) {
	const address = repository.url.replace(/^git\+|\.git$/g, '');
	const found = ['package.json', ...filesIn(folder, 'credentials'), ...filesIn(folder, 'nodes')];
	const stated = found
		.filter((path) => STATED_IN.test(path))
		.map((path) => {
			const text = readFileSync(join(folder, path), 'utf8');
			return { path, text, wanted: text.replaceAll(ADDRESS, address) };
		});
	const licence = readFileSync(join(folder, 'LICENSE'), 'utf8');
	const wanted = licence.replace(/^(Copyright \(c\) ).*$/m, `$1${author.name}`);
	return [...stated, { path: 'LICENSE', text: licence, wanted }];
}

/**
 * @param {string} folder
 * @param {string} within
 */
function filesIn(folder, within) {
	const paths = readdirSync(join(folder, within), { recursive: true, encoding: 'utf8' });
	return paths.map((path) => `${within}/${path.replaceAll('\\', '/')}`);
}

/** @param {Manifest} manifest */
function placeholdersIn({ author, repository }) {
	const said = { 'author.name': author.name, 'author.email': author.email, 'repository.url': repository.url };
	return Object.keys(PLACEHOLDERS).filter((field) => said[field] === PLACEHOLDERS[field]);
}

/** @param {string} why */
function refuse(why) {
	console.error(`This package cannot be published yet. ${why}`);
	process.exitCode = 1;
}

const folder = process.cwd();
/** @type {Manifest} */
const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
const differing = statements(folder, manifest).filter(({ text, wanted }) => text !== wanted);
const toFillIn = placeholdersIn(manifest);
if (process.argv.includes('--write')) {
	for (const { path, wanted } of differing) writeFileSync(join(folder, path), wanted);
} else if (differing.length > 0) {
	const paths = differing.map(({ path }) => path).join(', ');
	refuse(`Another address or author than in package.json: ${paths}. Run "npm run identity -- --write".`);
} else if (toFillIn.length > 0) {
	const fields = toFillIn.join(', ');
	refuse(`Placeholders in package.json: ${fields}. Fill them in, then run "npm run identity -- --write".`);
}
