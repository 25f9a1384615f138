// npm run compat -- 2.35.7: the end-to-end tests that need no browser, Redis or PostgreSQL, in another version of n8n,
// on the oldest Node that both support. The default is the newest published version; test names after the version select tests. "like-3" is the
// n8n of the lock file with the changes announced for n8n 3 switched on, as far as it has them. An address selects an
// n8n that runs elsewhere, with the package installed: see test/e2e/README.md.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { ensureChromium } from '../test/e2e/browser/install.mjs';
import { ensureN8nInstalled, ensureNativeModules, npm } from '../test/e2e/install.mjs';
import { ensureInstalled, ensureNode, isInstalled, packageRoot, withNode24 } from './install.mjs';
import { runJest } from './jest-run.mjs';

/** Tests that need no browser, Redis or PostgreSQL. */
const TESTS = [
	'flowtask',
	'once',
	'ledger',
	'suspend',
	'chat',
	'sessions',
	'wires',
	'bridge',
	'schemas',
	'n8nWords',
];

/** Tests that need Redis and PostgreSQL, or a browser. */
const OF_A_SERVER = ['queue', 'killed', 'chatForm'];

/** Tests that are left out for an n8n that runs elsewhere, and what each would do to it. */
const NOT_ELSEWHERE = {
	ledger: 'installs a package of its own',
	suspend: 'kills n8n and starts it again',
	sessions: 'starts n8n again and searches its database',
	n8nWords: 'reads its files',
};

/** The Node versions that this package supports. */
const OLDEST_NODE = 22;
const NEXT_NODE = 24;

const LIKE_N8N_3 = 'like-3';

const e2eFolder = join(packageRoot, 'test', 'e2e');

try {
	await ensureInstalled({ dir: packageRoot, label: 'n8n-nodes-flowtask' });
	// The tests' own libraries come with the n8n of the lock file.
	await ensureN8nInstalled();
	const wanted = process.argv[2] ?? 'latest';
	if (wanted === LIKE_N8N_3) {
		const title = `n8n ${installedVersion(e2eFolder, 'n8n')} with the settings of n8n 3`;
		console.log(`▶ ${title}`);
		await ensureChromium();
		await test({ FLOWTASK_LIKE_N8N_3: 'true' }, title, [...TESTS, ...OF_A_SERVER]);
	} else if (/^https?:/.test(wanted)) {
		const url = new URL(wanted).origin;
		const { title, session } = await lookAt(url);
		console.log(`▶ ${title}`);
		for (const [name, reason] of Object.entries(NOT_ELSEWHERE))
			console.log(`  left out: ${name}, which ${reason}`);
		console.log('  left out: what n8n says in its log');
		const tests = TESTS.filter((name) => !(name in NOT_ELSEWHERE));
		await test({ FLOWTASK_N8N_URL: url, FLOWTASK_N8N_SESSION: session }, title, tests);
	} else {
		const { version, node } = await findVersion(wanted);
		console.log(`▶ n8n ${version} on Node ${node}`);
		const folder = await install(version, node);
		const title = `n8n ${version}, Node ${installedVersion(folder, 'node')}`;
		await test({ FLOWTASK_N8N_FOLDER: folder }, title, TESTS);
	}
} catch (error) {
	console.error(error instanceof Error ? error.message : error);
	process.exitCode = 1;
}

/**
 * @param {string} wanted A version or a dist-tag of n8n.
 * @returns {Promise<{ version: string, node: number }>}
 */
async function findVersion(wanted) {
	if (/[/:]/.test(wanted)) throw new Error(howToRun(wanted));
	const query = ['view', `n8n@${wanted}`, 'version', 'engines.node', '--json'];
	const { stdout } = await npm(query, packageRoot, withNode24()).catch((error) => {
		if (!String(error).includes('E404')) throw error;
		throw new Error(`npm has no n8n ${wanted}. ${howToRun(`docker.n8n.io/n8nio/n8n:${wanted}`)}`);
	});
	const found = JSON.parse(stdout);
	const { version, 'engines.node': engines } = Array.isArray(found) ? found.at(-1) : found;
	const oldest = Number(/>=\s*(\d+)/.exec(engines)?.[1] ?? NEXT_NODE);
	return { version, node: oldest <= OLDEST_NODE ? OLDEST_NODE : NEXT_NODE };
}

/**
 * The tests do not start containers: their user does, and passes the address.
 *
 * @param {string} image
 * @returns {string}
 */
function howToRun(image) {
	return `To test an image, start it with the package that is to be tested and create its owner:
  docker run --rm --network host -e N8N_SSRF_ALLOWED_IP_RANGES=127.0.0.0/8 \\
    -e N8N_COMMUNITY_PACKAGES_MANAGED_BY_ENV=true -e N8N_COMMUNITY_PACKAGES='[<the line in the notes of the release>]' \\
    ${image}
Then give its address and the owner's login:
  FLOWTASK_N8N_EMAIL=… FLOWTASK_N8N_PASSWORD=… npm run compat -- http://127.0.0.1:5678`;
}

/**
 * Logs in to an n8n that runs elsewhere, and reads which version of this package it has.
 *
 * @param {string} url
 * @returns {Promise<{ title: string, session: string }>} Both versions, and the cookie of the login.
 */
async function lookAt(url) {
	const { FLOWTASK_N8N_EMAIL: emailOrLdapLoginId, FLOWTASK_N8N_PASSWORD: password } = process.env;
	if (!emailOrLdapLoginId || !password) {
		throw new Error(`Set FLOWTASK_N8N_EMAIL and FLOWTASK_N8N_PASSWORD to the login of the owner of ${url}.`);
	}
	/**
	 * @param {string} path
	 * @param {RequestInit} [init]
	 */
	const call = async (path, init) => {
		const response = await fetch(`${url}/rest/${path}`, init).catch((error) => {
			throw new Error(`${url} does not answer: ${error.cause?.message ?? error.message}`);
		});
		const body = await response.text();
		if (!response.ok)
			throw new Error(`${url} answered ${path} with ${response.status}: ${body.slice(0, 500)}`);
		return { data: JSON.parse(body).data, cookies: response.headers.getSetCookie() };
	};
	const body = JSON.stringify({ emailOrLdapLoginId, password });
	const { cookies } = await call('login', {
		method: 'POST',
		headers: { 'content-type': 'application/json' },
		body,
	});
	const session = cookies.map((cookie) => cookie.split(';', 1)[0]).join('; ');
	const headers = { cookie: session };

	const { name, version } = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8'));
	const { data: packages } = await call('community-packages', { headers });
	const found = packages.find(
		(/** @type {{ packageName: string }} */ { packageName }) => packageName === name,
	);
	if (!found) throw new Error(`${url} has no ${name}: install it there first.`);
	if (found.installedVersion !== version) {
		throw new Error(
			`${url} has ${name} ${found.installedVersion}, but these are the tests of ${version}: install that version, or check out the tag v${found.installedVersion}.`,
		);
	}
	const { data: settings } = await call('settings', { headers });
	return { title: `n8n ${settings.versionCli} at ${url}, ${name} ${version}`, session };
}

/**
 * @param {string} version
 * @param {number} node Its major version.
 * @returns {Promise<string>} The folder.
 */
async function install(version, node) {
	const folder = join(packageRoot, '.e2e', `n8n-${version}`);
	mkdirSync(folder, { recursive: true });
	const { overrides } = JSON.parse(readFileSync(join(e2eFolder, 'package.json'), 'utf8'));
	const dependencies = { n8n: version, node: String(node) };
	const manifest = JSON.stringify({ name: 'n8n-of-another-version', private: true, dependencies, overrides });
	writeFileSync(join(folder, 'package.json'), manifest);
	writeFileSync(join(folder, '.npmrc'), readFileSync(join(e2eFolder, '.npmrc')));
	if (!isInstalled(folder)) {
		console.log('n8n: installing (3 to 5 minutes and 2.2 GB, once per version) …');
		await npm(['install', '--no-audit', '--no-fund'], folder, withNode24());
	}
	const nodeFolder = await ensureNode(folder);
	const env = withNode24();
	const path = [join(nodeFolder, 'bin'), env.PATH].join(delimiter);
	await ensureNativeModules({ folder, env: { ...env, PATH: path }, nodeFolder });
	return folder;
}

/**
 * @param {string} folder
 * @param {string} name
 */
function installedVersion(folder, name) {
	return JSON.parse(readFileSync(join(folder, 'node_modules', name, 'package.json'), 'utf8')).version;
}

/**
 * @param {Record<string, string>} settings Which n8n to test in.
 * @param {string} title
 * @param {string[]} tests Unless the command line names others.
 */
async function test(settings, title, tests) {
	const names = process.argv.slice(3);
	const unfit = names.filter((name) => 'FLOWTASK_N8N_URL' in settings && !tests.includes(name));
	if (unfit.length > 0) throw new Error(`Not possible in an n8n that runs elsewhere: ${unfit.join(', ')}.`);
	const files = (names.length > 0 ? names : tests).map((name) => join('test', 'e2e', `${name}.e2e.test.ts`));
	const { passed, failed } = await runJest(
		['--config', 'test/e2e/jest.config.js', '--runTestsByPath', ...files],
		{ ...withNode24(), ...settings },
	);
	console.log(`\n${title}: ${passed} passed, ${failed} failed`);
	process.exitCode = failed === 0 ? 0 : 1;
}
