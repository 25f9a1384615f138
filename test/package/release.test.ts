// The release workflow runs unobserved, so these tests run its steps as they are in the file, and check its rights.
import { execFileSync } from 'node:child_process';
import {
	appendFileSync,
	copyFileSync,
	existsSync,
	mkdtempSync,
	readFileSync,
	rmSync,
	symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { parse } from 'yaml';
import { findFiles, packageRoot, readManifest } from './packageFiles';

interface Step {
	readonly name?: string;
	readonly id?: string;
	readonly uses?: string;
	readonly run?: string;
	readonly with?: Readonly<Record<string, unknown>>;
}

interface Workflow {
	readonly permissions: Readonly<Record<string, string>>;
	readonly jobs: Readonly<
		Record<string, { readonly permissions?: Readonly<Record<string, string>>; readonly steps: Step[] }>
	>;
}

const read = (path: string) => readFileSync(join(packageRoot, path), 'utf8');
const workflowFiles = findFiles(['.github/workflows/*.yml']);
const release: Workflow = parse(read('.github/workflows/publish.yml'));
const { pack, publish } = release.jobs;

describe('all workflows', () => {
	it.each(workflowFiles)(
		'%s pins actions by their commit, keeps no credentials and needs no secret',
		(path) => {
			const text = read(path);
			const used = text.match(/uses: .*/g) ?? [];
			expect(used.filter((line) => !/^uses: [\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(line))).toEqual([]);
			expect(text.match(/persist-credentials: false/g)).toHaveLength(
				text.match(/actions\/checkout@/g)!.length,
			);
			expect(text).not.toMatch(/secrets\.|TOKEN/);
		},
	);

	it('run the same commands as .ci/run', () => {
		expect(read('.github/workflows/ci.yml')).toContain('run: .ci/run\n');
	});

	it("install without running packages' scripts", () => {
		for (const path of ['.npmrc', 'test/e2e/.npmrc']) expect(read(path)).toContain('\nignore-scripts=true\n');
	});
});

describe('the rights of a release', () => {
	it('let the job that runs third-party code only read, and give the one that publishes only an identity', () => {
		expect(release.permissions).toEqual({});
		expect(pack?.permissions).toEqual({ contents: 'read' });
		expect(publish?.permissions).toEqual({ 'id-token': 'write' });
	});

	it('are given only to a job that runs nothing but npm', () => {
		const actions = publish?.steps.flatMap(({ uses }) => uses?.split('@')[0] ?? []);
		expect(actions).toEqual(['actions/setup-node', 'actions/download-artifact']);
		const commands = publish?.steps.flatMap(({ run }) => /^\w+(?= |$)/.exec(run ?? '')?.[0] ?? []);
		expect(commands).toEqual(['grep', 'npm', 'echo']);
		expect(publish?.steps.map(({ run }) => run)).toContain(
			'npm publish ./*.tgz --ignore-scripts --provenance --access public',
		);
	});
});

describe('the steps of a release', () => {
	const { name, version } = readManifest();
	const folder = mkdtempSync(join(tmpdir(), 'flowtask-release-'));
	const output = join(folder, 'output');
	let entry = '';

	/** Runs a step of the workflow as GitHub does. */
	function runStep(steps: readonly Step[] | undefined, which: string, env: NodeJS.ProcessEnv, cwd = folder) {
		const step = steps?.find(({ name: title, id }) => title === which || id === which);
		execFileSync('bash', ['-e', '-o', 'pipefail', '-c', step?.run ?? 'false'], {
			cwd,
			env: { ...process.env, ...env },
			stdio: ['ignore', 'ignore', 'pipe'],
		});
	}

	beforeAll(() => {
		for (const path of ['scripts', 'package.json']) symlinkSync(join(packageRoot, path), join(folder, path));
		runStep(pack?.steps, 'pack', { GITHUB_OUTPUT: output });
		entry = readFileSync(output, 'utf8')
			.trim()
			.replace(/^entry=/, '');
	}, 120_000);
	afterAll(() => rmSync(folder, { recursive: true, force: true }));

	it('check first that the tag is the version', () => {
		runStep(pack?.steps, 'The tag is the version', { GITHUB_REF_NAME: `v${version}` });
		const mistaken = { GITHUB_REF_NAME: 'v0.0.0' };
		expect(() => runStep(pack?.steps, 'The tag is the version', mistaken)).toThrow();
	});

	it('pass on one file, and the entry for N8N_COMMUNITY_PACKAGES with its checksum', () => {
		const upload = pack?.steps.find(({ uses }) => uses?.startsWith('actions/upload-artifact@'));
		const download = publish?.steps.find(({ uses }) => uses?.startsWith('actions/download-artifact@'));
		expect(findFiles([String(upload?.with?.path)], folder)).toHaveLength(1);
		expect(download?.with?.name).toBe(upload?.with?.name);
		const checksum = expect.stringMatching(/^sha512-[\w+/]{86}==$/);
		expect(JSON.parse(entry)).toEqual({ name, version, checksum });
	});

	it('publish no other file', () => {
		const [tarball = ''] = findFiles(['release/*.tgz'], folder);
		const arrived = mkdtempSync(join(folder, 'arrived-'));
		const copy = join(arrived, basename(tarball));
		copyFileSync(join(folder, tarball), copy);
		const check = () => runStep(publish?.steps, 'It is the file that was tested', { ENTRY: entry }, arrived);
		check();
		appendFileSync(copy, '\n');
		expect(check).toThrow();
	});
});

it('docs/verification.md names evidence that exists', () => {
	const rows =
		read('docs/verification.md')
			.match(/^\|.*\|$/gm)
			?.slice(2) ?? [];
	const named = rows.map(
		(row) =>
			row
				.split(' | ')
				.at(-1)
				?.match(/[\w./-]+(?=`)/g) ?? [],
	);
	expect(named.filter((files) => files.length === 0)).toEqual([]);
	const files = named.flat();
	expect(files.filter((file) => !existsSync(join(packageRoot, file)))).toEqual([]);
});
