import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createHarness, singleNode } from '.';

/* n8n's own loader reads a package from disk, and only its built files. */

const NODE = `exports.Greeter = class {
	description = {
		displayName: 'Greeter', name: 'greeter', group: ['transform'], version: 1, description: 'Says hello',
		defaults: { name: 'Greeter' }, inputs: ['main'], outputs: ['main'],
		credentials: [{ name: 'greeterApi', required: true }],
		properties: [{ displayName: 'Name', name: 'name', type: 'string', default: 'world', required: true }],
	};
	async execute() {
		const { greeting } = await this.getCredentials('greeterApi');
		return [[{ json: { text: greeting + ' ' + this.getNodeParameter('name', 0) } }]];
	}
};`;

const CREDENTIAL = `exports.GreeterApi = class {
	name = 'greeterApi';
	displayName = 'Greeter API';
	properties = [{ displayName: 'Greeting', name: 'greeting', type: 'string', default: 'hello' }];
};`;

let folder: string;

beforeAll(async () => {
	folder = await mkdtemp(path.join(tmpdir(), 'harness-package-'));
	const n8n = { nodes: ['dist/Greeter.node.js'], credentials: ['dist/GreeterApi.credentials.js'] };
	await mkdir(path.join(folder, 'dist'));
	await writeFile(
		path.join(folder, 'package.json'),
		JSON.stringify({ name: 'n8n-nodes-greeter', version: '1.0.0', n8n }),
	);
	await writeFile(path.join(folder, 'dist/GreeterApi.credentials.js'), CREDENTIAL);
});

afterAll(async () => await rm(folder, { recursive: true, force: true }));

test('names the files that package.json lists but the build did not create', async () => {
	await expect(createHarness({ package: folder })).rejects.toThrow('npm run build): dist/Greeter.node.js');
});

test("runs the package's nodes under the names that users see, with its credential types", async () => {
	await writeFile(path.join(folder, 'dist/Greeter.node.js'), NODE);
	const harness = await createHarness({ package: folder });
	expect(harness.packageNodes).toEqual(['n8n-nodes-greeter.greeter']);

	const run = await harness.run({
		workflow: singleNode({ type: 'n8n-nodes-greeter.greeter' }),
		credentials: { greeterApi: {} },
	});
	expect(run.error).toBeUndefined();
	expect(run.output('Node')[0]?.json).toEqual({ text: 'hello world' });

	// n8n checks required parameters before it runs anything.
	const refused = await harness.run({
		workflow: singleNode({ type: 'n8n-nodes-greeter.greeter', parameters: { name: '' } }),
		credentials: { greeterApi: {} },
	});
	expect(refused.status).toBe('error');
	expect(refused.error?.message).toContain('issues');
	await harness.close();
});
