// npm run dev: builds the nodes into an n8n of their own, again after each change, and starts that n8n, which reloads
// them. With a folder (npm run dev -- <N8N_USER_FOLDER>), only builds into the n8n that a person runs with that folder.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { killEveryN8n, RELOADING, startN8n } from './runner';

const packageRoot = join(__dirname, '..', '..');
const PORT = 5678;

/** Builds into n8n's folder for custom nodes, as `n8n-node dev` does, but without linking this whole repository. */
async function buildInto(userFolder: string): Promise<void> {
	const installed = join(userFolder, '.n8n', 'custom', 'node_modules', 'n8n-nodes-flowtask');
	await mkdir(installed, { recursive: true });
	await copyFile(join(packageRoot, 'package.json'), join(installed, 'package.json'));
	const env = { ...process.env, FLOWTASK_DIST: join(installed, 'dist') };
	const build = spawn('gulp', ['--silent', 'bundle'], { cwd: packageRoot, env, stdio: 'inherit' });
	const [code] = (await once(build, 'close')) as [number | null];
	if (code !== 0) throw new Error('The nodes could not be built.');
	spawn('gulp', ['--silent', 'watch'], { cwd: packageRoot, env, stdio: 'inherit' });
}

async function main(): Promise<void> {
	const [given] = process.argv.slice(2);
	const userFolder = resolve(given ?? join(packageRoot, '.dev'));
	await buildInto(userFolder);
	if (given !== undefined) {
		console.log(
			`Start your n8n with N8N_USER_FOLDER=${userFolder} and N8N_DEV_RELOAD=true. Ctrl-C ends the builds.`,
		);
		return;
	}
	console.log('Starting n8n …');
	const n8n = await startN8n({ userFolder, port: PORT, env: RELOADING });
	console.log(`
n8n is open at ${n8n.url}
  e-mail    ${n8n.login.email}
  password  ${n8n.login.password}
It reloads the nodes after each change of the code. npm run platform starts a platform for them. Ctrl-C ends n8n.`);
	await n8n.ended;
}

process.on('exit', () => void killEveryN8n());
main().catch((error: unknown) => {
	console.error(error instanceof Error ? error.message : error);
	process.exit(1);
});
