import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createHarness, singleNode, stopwatch, type Harness } from '.';
import { Download, ErrorItems, Flaky, FunctionApi, GenericApi, Request, Thrower } from './sample.nodes';

const PICTURE = Buffer.alloc(300_000, 7);

const seen: Array<{ method?: string; url?: string; authorization?: string }> = [];

function answer(request: IncomingMessage, response: ServerResponse): void {
	const { method, url, headers } = request;
	seen.push({ method, url, authorization: headers.authorization });
	if (url === '/picture') response.writeHead(200, { 'content-type': 'image/png' }).end(PICTURE);
	else if (url === '/reset') request.socket.destroy();
	else if (url === '/hang') request.socket.once('close', () => hungUp());
	else if (url === '/refused') response.writeHead(401).end('{}');
	else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ url }));
}

let hungUp = () => {};

const server = createServer(answer);
let harness: Harness;
let baseUrl: string;

beforeAll(async () => {
	await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
	baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
	harness = await createHarness({
		package: false,
		nodes: [Request, Download, Flaky, ErrorItems, Thrower],
		credentialTypes: [FunctionApi, GenericApi],
	});
});

afterAll(async () => {
	await harness.close();
	server.closeAllConnections();
	await new Promise((resolve) => server.close(resolve));
});

beforeEach(() => seen.splice(0));

describe('requests', () => {
	const request = (credential: string, path: string) =>
		singleNode({ type: 'harness.request', parameters: { credential, method: 'GET', path } });

	test.each(['functionApi', 'genericApi'])('%s signs a request sent over a real socket', async (type) => {
		const run = await harness.run({
			workflow: request(type, '={{ "/tasks/" + $json.id }}'),
			items: [{ json: { id: 1 } }, { json: { id: 2 } }],
			credentials: { [type]: { apiKey: 'sk-secret', baseUrl } },
		});

		expect(run.error).toBeUndefined();
		expect(run.status).toBe('success');
		expect(run.output('Node')).toEqual([
			{ json: { url: '/tasks/1' }, pairedItem: 0 },
			{ json: { url: '/tasks/2' }, pairedItem: 1 },
		]);
		expect(seen.map(({ authorization }) => authorization)).toEqual(['Bearer sk-secret', 'Bearer sk-secret']);
	});

	test('an authenticate function may refuse: its message is the error, and nothing is sent', async () => {
		const run = await harness.run({
			workflow: request('functionApi', '/tasks'),
			credentials: { functionApi: { apiKey: 'wst_1', baseUrl } },
		});

		expect(run.status).toBe('error');
		expect(run.error).toMatchObject({ name: 'NodeApiError' });
		expect(JSON.stringify(run.error)).toContain('This is no key of Function API');
		expect(seen).toEqual([]);
	});

	test('a missing field gets the default of the credential type', async () => {
		const run = await harness.run({
			workflow: request('functionApi', '/tasks'),
			credentials: { functionApi: { apiKey: 'sk-secret' } },
		});

		expect(JSON.stringify(run.error)).toContain('default.invalid');
	});

	test('a network error keeps its code', async () => {
		const run = await harness.run({
			workflow: request('functionApi', '/reset'),
			credentials: { functionApi: { apiKey: 'sk-secret', baseUrl } },
		});

		expect(run.error).toMatchObject({ name: 'NodeApiError', httpCode: 'ECONNRESET' });
	});

	test('n8n repeats a request that was answered with 401', async () => {
		const run = await harness.run({
			workflow: request('functionApi', '/refused'),
			credentials: { functionApi: { apiKey: 'sk-secret', baseUrl } },
		});

		expect(run.error).toMatchObject({ httpCode: '401' });
		expect(seen).toHaveLength(2);
	});

	test('a cancel closes the socket of a request in flight', async () => {
		const closed = new Promise<void>((resolve) => (hungUp = resolve));
		const live = await harness.start({
			workflow: request('functionApi', '/hang'),
			credentials: { functionApi: { apiKey: 'sk-secret', baseUrl } },
		});
		while (seen.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
		const sinceCancel = stopwatch();
		live.cancel();
		await closed;
		const run = await live.done;

		expect(sinceCancel.stop()).toBeLessThan(1000);
		expect(run.status).toBe('canceled');
		expect(run.runs('Node')).toEqual([]);
	});

	test('a missing credential is an error of the node', async () => {
		const run = await harness.run({ workflow: request('functionApi', '/tasks') });

		expect(run.error?.message).toContain('credential');
		expect(seen).toEqual([]);
	});
});
