import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { CODES, SAMPLE_WORKFLOWS, startPlatform } from '../../platform';
import type { LocalPlatform } from '../../platform';
import { Client, field } from './client';

describe('the admin console', () => {
	let platform: LocalPlatform;

	beforeAll(async () => {
		platform = await startPlatform({ taskMs: 0 });
	});

	afterAll(async () => {
		await platform.close();
	});

	async function admin(method: string, path: string, body?: unknown): Promise<Response> {
		const headers = body === undefined ? undefined : { 'content-type': 'application/json' };
		return fetch(`${platform.apiUrl}/admin/${path}`, { method, headers, body: JSON.stringify(body) });
	}

	test('hosts workflows and shows their parameters', async () => {
		const hosted = await admin('POST', 'workflows', {
			export: SAMPLE_WORKFLOWS['text-to-image'],
			workflowId: 'first',
		});
		expect(hosted.status).toBe(201);
		expect(await hosted.json()).toEqual({ workflowId: 'first' });
		expect(await (await admin('GET', 'workflows')).json()).toEqual([
			{ workflowId: 'first', owner: 'default' },
		]);
		const view = await (await admin('GET', 'workflows/first/parameters')).text();
		expect(view).toContain('"max":18446744073709551615');
		expect((await admin('GET', 'workflows/nope/parameters')).status).toBe(404);
		const refused = await admin('POST', 'workflows', { export: { nodes: [] } });
		expect(refused.status).toBe(422);
		expect(await refused.json()).toMatchObject({ reason: 'notApiExport', message: expect.any(String) });
	});

	test('creates owners', async () => {
		const made: unknown = await (await admin('POST', 'owners', { name: 'ann' })).json();
		const apiKey = String(field(made, 'apiKey'));
		expect(apiKey).toMatch(/^sk-/);
		expect((await admin('POST', 'owners', { name: 'ann' })).status).toBe(400);
		const client = new Client(platform, apiKey);
		expect(await client.submit({}, 'first')).toMatchObject({ code: CODES.foreignWorkflow });
	});

	test('adds and removes faults', async () => {
		const rule = { on: 'submit', kind: '429', times: 2 };
		expect((await admin('POST', 'faults', rule)).status).toBe(201);
		const client = new Client(platform);
		expect((await client.call('prompt', {})).status).toBe(429);
		expect((await admin('POST', 'faults', { on: 'submit', kind: 'nonsense' })).status).toBe(400);
		expect((await admin('POST', 'faults', { on: 'file', kind: 'resetAfter' })).status).toBe(400);
		expect((await admin('POST', 'faults/campaign', { rate: 0.1, seed: 4 })).status).toBe(204);
		expect((await admin('POST', 'faults/campaign', { rate: 7 })).status).toBe(400);
		expect((await admin('DELETE', 'faults')).status).toBe(204);
		expect((await client.call('prompt', {})).status).toBe(200);
	});

	test('shows the books, which do not include the console itself', async () => {
		await admin('DELETE', 'books');
		const books = await (await admin('GET', 'books')).json();
		expect(books).toEqual(platform.books());
		expect(books).toMatchObject({ paths: [], requests: { other: 0 } });
	});
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
