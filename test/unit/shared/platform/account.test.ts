import fc from 'fast-check';

import { PROGRESS_PATHS } from '../../../../credentials/platformDefaults';
import { readPlatformAccount } from '../../../../nodes/shared/platform/account';

const KEY = 'sk-Abcdef0123456789';

function read(fields: Record<string, unknown>): ReturnType<typeof readPlatformAccount> {
	return readPlatformAccount({ apiKey: KEY, baseUrl: 'https://platform.example', ...fields });
}

describe('readPlatformAccount', () => {
	it('fills in empty fields', () => {
		expect(read({ wsBaseUrl: '', progressPath: '' })).toEqual({
			ok: true,
			value: {
				baseUrl: 'https://platform.example',
				wsBaseUrl: 'wss://platform.example',
				progressPath: PROGRESS_PATHS[0],
				modelsPath: '',
				fileHosts: [],
				busyTerms: expect.arrayContaining(['429', 'too frequent', 'system busy', 'queue_maxed']) as string[],
				apiKey: KEY,
			},
		});
	});

	it.each([
		['https://platform.example/', 'https://platform.example', 'wss://platform.example'],
		['https://platform.example///', 'https://platform.example', 'wss://platform.example'],
		[' https://platform.example ', 'https://platform.example', 'wss://platform.example'],
		['HTTPS://Platform.Example', 'https://platform.example', 'wss://platform.example'],
		['http://127.0.0.1:8080', 'http://127.0.0.1:8080', 'ws://127.0.0.1:8080'],
		['http://[::1]:8080/', 'http://[::1]:8080', 'ws://[::1]:8080'],
		['https://host.example/gate/way/', 'https://host.example/gate/way', 'wss://host.example/gate/way'],
		['https://host.example/maas', 'https://host.example/maas', 'wss://host.example/maas'],
		['https://h.example/maas/v1x', 'https://h.example/maas/v1x', 'wss://h.example/maas/v1x'],
		['https://http.example/http', 'https://http.example/http', 'wss://http.example/http'],
	])('reads the base URL "%s"', (entered, baseUrl, wsBaseUrl) => {
		expect(read({ baseUrl: entered })).toMatchObject({ ok: true, value: { baseUrl, wsBaseUrl } });
	});

	it('refuses a base URL that no server would accept, before it searches its path', () => {
		const refused = read({ baseUrl: `https://platform.example${'/'.repeat(1_000_000)}x` });
		expect(refused).toMatchObject({ failure: { message: expect.stringContaining('is longer than 2000') } });
	});

	it.each([
		['ws://sockets.example:81/', 'ws://sockets.example:81'],
		['wss://sockets.example/x/', 'wss://sockets.example/x'],
	])('reads the WebSocket base URL "%s"', (entered, wsBaseUrl) => {
		expect(read({ wsBaseUrl: entered })).toMatchObject({ ok: true, value: { wsBaseUrl } });
	});

	it.each([
		['7001, Slow Down，忙\n0', ['7001', 'slow down', '忙']],
		['', []],
	])('reads the busy codes %j', (busyCodes, busyTerms) => {
		expect(read({ busyCodes })).toMatchObject({ ok: true, value: { busyTerms } });
	});

	it('reads the hosts that files may come from', () => {
		expect(read({ fileHosts: '10.0.0.5, MinIO.internal:9000' })).toMatchObject({
			value: { fileHosts: ['10.0.0.5', 'minio.internal:9000'] },
		});
		expect(read({ fileHosts: '10.0.0.0/8' })).toMatchObject({
			failure: { message: '\'File Hosts\' in the credential contains "10.0.0.0/8", which is not a host' },
		});
	});

	it.each([{ wsBaseUrl: 'https://x' }, { fileHosts: '10.0.0.0/8' }])(
		'says how to show the field of %j',
		(fields) => {
			expect(read(fields)).toMatchObject({
				failure: { advice: expect.stringContaining("'Show Expert Fields'") },
			});
		},
	);

	it.each([
		['no base URL', { baseUrl: '' }, 'no Base URL'],
		['a missing base URL', { baseUrl: undefined }, 'no Base URL'],
		['a host alone', { baseUrl: 'platform.example' }, 'not a complete URL'],
		['a host with a port', { baseUrl: 'platform.example:8080' }, 'must start with https:// or http://'],
		['a foreign scheme', { baseUrl: 'ftp://platform.example' }, 'must start with https:// or http://'],
		['a query', { baseUrl: 'https://host.example/a?b=c#d' }, 'contains a "?"'],
		['a page of the console', { baseUrl: 'https://host.example/#/keys' }, 'contains a "#"'],
		['a user and a password', { baseUrl: 'https://user:s3cret@host.example' }, 'a user name or password'],
		['a user in the socket address', { wsBaseUrl: 'wss://user@host.example' }, 'a user name or password'],
		['the base of the chat', { baseUrl: 'https://host.example/maas/v1/' }, 'an API path, "/maas/v1"'],
		['the address of a task', { baseUrl: 'https://h.example/x/api/maas/y' }, 'an API path, "/api/maas"'],
		['the path of progress', { wsBaseUrl: 'wss://host.example/mass/api' }, 'an API path, "/mass/api"'],
		['a socket address as base URL', { baseUrl: 'wss://platform.example' }, 'must start with http'],
		['a script', { baseUrl: 'javascript:alert(1)' }, 'must start with http'],
		['a base URL as socket address', { wsBaseUrl: 'https://platform.example' }, 'must start with ws'],
		['a broken socket address', { wsBaseUrl: 'wss//x' }, 'WebSocket Base URL'],
	])('refuses %s with a message', (_name, fields, said) => {
		expect(read(fields)).toMatchObject({
			ok: false,
			failure: { kind: 'badInput', message: expect.stringContaining(said) },
		});
	});

	it.each([
		['no key', ''],
		['a key that is not text', 7],
		['an agent token', 'agt_Abcdef0123456789'],
		['a channel token', 'wst_Abcdef0123456789'],
		['a foreign key', 'ghp_Abcdef0123456789'],
	])('refuses %s as an error of the credential', (_name, apiKey) => {
		expect(read({ apiKey })).toMatchObject({ ok: false, failure: { kind: 'credential' } });
	});

	it('accepts a key as pasted, and treats it as the secret to hide', () => {
		expect(read({ apiKey: ` "Bearer ${KEY}"\n` })).toMatchObject({ ok: true, value: { apiKey: KEY } });
	});

	it('never throws and never repeats a key, whatever the credential contains', () => {
		const field = fc.oneof(fc.string(), fc.webUrl(), fc.anything());
		fc.assert(
			fc.property(field, field, field, (baseUrl, wsBaseUrl, progressPath) => {
				const result = read({ baseUrl, wsBaseUrl, progressPath });
				if (!result.ok) expect(JSON.stringify(result)).not.toContain(KEY);
				else expect(result.value.baseUrl).toMatch(/^https?:\/\/[^/].*[^/]$/);
			}),
		);
	});
});
