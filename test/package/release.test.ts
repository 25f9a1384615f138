// The release workflow runs unobserved, so these tests run its steps as they are in the file, and check its rights.
import { execFileSync, spawnSync } from 'node:child_process';
import {
	appendFileSync,
	copyFileSync,
	cpSync,
	existsSync,
	mkdtempSync,
	readFileSync,
	rmSync,
	symlinkSync,
	writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { parse } from 'yaml';
import { describedNode, findFiles, packageRoot, readManifest } from './packageFiles';

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
		for (const path of ['.npmrc', 'test/e2e/.npmrc', 'test/e2e/nodeCli/.npmrc'])
			expect(read(path)).toContain('\nignore-scripts=true\n');
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

describe('the address and the author', () => {
	const STATED_IN = ['package.json', 'LICENSE', 'credentials', 'nodes'];
	const PLACEHOLDERS = ['author.name', 'author.email', 'repository.url'];
	const copy = mkdtempSync(join(tmpdir(), 'flowtask-identity-'));
	const check = (...options: string[]) =>
		spawnSync(process.execPath, [join(packageRoot, 'scripts/identity.mjs'), ...options], {
			cwd: copy,
			encoding: 'utf8',
		});
	const manifest = () => JSON.parse(readFileSync(join(copy, 'package.json'), 'utf8'));
	const publishedBy = (name: string, email: string, address: string) => {
		const repository = { type: 'git', url: `git+${address}.git` };
		const filledIn = { ...manifest(), author: { name, email }, repository };
		writeFileSync(join(copy, 'package.json'), JSON.stringify(filledIn, null, 2));
	};

	beforeAll(() => {
		for (const path of STATED_IN) cpSync(join(packageRoot, path), join(copy, path), { recursive: true });
	});
	afterAll(() => rmSync(copy, { recursive: true, force: true }));

	it('are the same in every file of this repository', () => {
		expect(check().stderr).not.toContain('Another address');
	});

	it('are copied from package.json into every file that states them', () => {
		publishedBy('Ada', 'ada@example.com', 'https://github.com/ada/n8n-nodes-flowtask');
		expect(check()).toMatchObject({ status: 1, stderr: expect.stringContaining('nodes/FlowTask/FlowTask') });
		expect(check('--write').status).toBe(0);
		expect(check()).toMatchObject({ status: 0, stderr: '' });
		const read = (path: string) => readFileSync(join(copy, path), 'utf8');
		const stated = findFiles(['package.json', 'credentials/*.credentials.ts', 'nodes/*/*.node.json'], copy);
		expect(stated).toHaveLength(10);
		for (const path of stated) expect(read(path)).toContain('https://github.com/ada/n8n-nodes-flowtask');
		const files = findFiles(['package.json', 'LICENSE', '{nodes,credentials}/**/*.{ts,json}'], copy);
		expect(files.filter((path) => /github\.com\/(?!ada\/)|contributors/.test(read(path)))).toEqual([]);
		expect(manifest().bugs.url).toBe('https://github.com/ada/n8n-nodes-flowtask/issues');
		expect(read('LICENSE')).toContain('(c) Ada\n');
	});

	it('keep a release back while they are placeholders', () => {
		const placeholder = 'n8n-nodes-flowtask';
		const email = 'flowtask@users.noreply.github.com';
		publishedBy(`${placeholder} contributors`, email, `https://github.com/flowtask/${placeholder}`);
		check('--write');
		const { status, stderr } = check();
		expect(status).toBe(1);
		expect(stderr).toContain(PLACEHOLDERS.join(', '));
		const step = pack?.steps.findIndex(({ run }) => run === 'node scripts/identity.mjs') ?? -1;
		expect(step).toBeGreaterThan(0);
		expect(step).toBeLessThan(pack!.steps.findIndex(({ run }) => run === 'npm test'));
		const { scripts } = readManifest();
		for (const name of ['release', 'prepublishOnly']) {
			expect(scripts[name]).toMatch(/^npm run identity( |$)/);
		}
	});
});

it('docs/verification.md names evidence that exists, and CONTRIBUTING files', () => {
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
	const files = [
		...named.flat(),
		...(read('CONTRIBUTING.md').match(/(?<=`)(?:nodes|test)\/[\w./-]+\.\w+(?=`)/g) ?? []),
	];
	expect(files.filter((file) => !existsSync(join(packageRoot, file)))).toEqual([]);
});

it.each(findFiles(['.github/ISSUE_TEMPLATE/{bug,feature}.yml']))(
	'%s is a form that GitHub accepts',
	(path) => {
		const { name, description, body } = parse(read(path));
		expect([name, description].map((text) => typeof text)).toEqual(['string', 'string']);
		const kinds = ['markdown', 'dropdown', 'input', 'textarea'];
		for (const { type, id, attributes } of body) {
			expect(kinds).toContain(type);
			if (type === 'markdown') expect(attributes.value).not.toBe('');
			else expect([typeof id, typeof attributes.label]).toEqual(['string', 'string']);
		}
		const shown = readManifest().n8n.nodes.map((node) => describedNode(node).displayName);
		const choice = body.find(({ id }: { id?: string }) => id === 'node');
		if (choice) expect([...choice.attributes.options].sort()).toEqual(shown.sort());
	},
);
