import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { SAMPLE_WORKFLOWS } from '../../platform';
import { sharedClient } from './client';

const client = sharedClient();

test.each<[string, string, object | undefined, number, object | undefined]>([
	[
		'POST',
		'workflows',
		{ export: SAMPLE_WORKFLOWS['two-outputs'], workflowId: 'x' },
		201,
		{ workflowId: 'x' },
	],
	['POST', 'workflows', { export: { nodes: [] } }, 422, { reason: 'notApiExport' }],
	['GET', 'workflows', undefined, 200, expect.arrayContaining([{ workflowId: 'x', owner: 'default' }])],
	['GET', 'workflows/x/parameters', undefined, 200, { 3: { class_type: 'KSampler' } }],
	['GET', 'workflows/nope/parameters', undefined, 404, { message: expect.any(String) }],
	['POST', 'owners', { name: 'ann' }, 201, { apiKey: expect.stringMatching(/^sk-/) }],
	['POST', 'owners', { name: 'ann' }, 400, {}],
	['POST', 'faults', { on: 'upload', kind: '429', times: 2 }, 201, { id: expect.any(Number) }],
	['POST', 'faults', { on: 'submit', kind: 'nonsense' }, 400, {}],
	['POST', 'faults', { on: 'file', kind: 'resetAfter' }, 400, {}],
	['POST', 'faults/campaign', { rate: 7 }, 400, {}],
	['POST', 'faults/campaign', { rate: 0.1, seed: 4 }, 204, undefined],
	['DELETE', 'faults', undefined, 204, undefined],
	['DELETE', 'books', undefined, 204, undefined],
	['GET', 'books', undefined, 200, { paths: [], requests: { other: 0 } }],
])('the admin console answers %s %s', async (method, path, body, status, answer) => {
	const headers = body === undefined ? undefined : { 'content-type': 'application/json' };
	const url = `${client().platform.apiUrl}/admin/${path}`;
	const response = await fetch(url, { method, headers, body: JSON.stringify(body) });
	expect(response.status).toBe(status);
	if (answer !== undefined) expect(await response.json()).toMatchObject(answer);
});

test('the command line starts a platform, prints its address and stops on a signal', async () => {
	const serve = join(__dirname, '../../platform/serve.ts');
	const child = spawn(
		process.execPath,
		[
			...['--import', 'tsx', serve, '--port', '0', '--file-port', '0'],
			...['--api-key', 'sk-demo', '--task-ms', '0'],
		],
		{ stdio: ['ignore', 'pipe', 'inherit'] },
	);
	let text = '';
	for await (const chunk of child.stdout) {
		text += String(chunk);
		if (text.includes('curl')) break;
	}
	expect(text).toContain('sk-demo');
	const apiUrl = /API +(http\S+)/.exec(text)?.[1] ?? '';
	expect(await (await fetch(`${apiUrl}/admin/workflows`)).json()).toHaveLength(3);
	child.kill('SIGTERM');
	const [code] = await once(child, 'exit');
	expect(code).toBe(0);
});
