// The editor shows the output fields of a node before it has run, if n8n serves a schema.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { serviceStage } from './stage';

const packageRoot = join(__dirname, '..', '..');

const stage = serviceStage('flowtask-schemas-');

// The editor requests no schema of a trigger. For a node without operations, it requests only the one of the version;
// the `output.json` next to it is for n8n's workflow builder.
const asked = globSync('nodes/*/__schema__/**/*.json', { cwd: packageRoot })
	.map((path) => path.replaceAll('\\', '/'))
	.filter((path) => !path.endsWith('/output.json'))
	.sort();

test.each(asked)('n8n serves %s', async (path) => {
	const [, folder = '', rest = ''] = /^nodes\/([^/]+)\/__schema__\/v(.+)$/.exec(path) ?? [];
	const node = folder.charAt(0).toLowerCase() + folder.slice(1);
	const served = await stage.n8n.client.call('GET', `/schemas/n8n-nodes-flowtask.${node}/${rest}`);

	expect(served).toEqual(JSON.parse(readFileSync(join(packageRoot, path), 'utf8')));
});
