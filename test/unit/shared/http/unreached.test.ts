import { explainUnreached, originOf } from '../../../../nodes/shared/http/unreached';

test.each([
	['ECONNREFUSED', 'nothing answers there'],
	['ENOTFOUND', 'no host with this name'],
	['EAI_AGAIN', 'could not be resolved'],
	['EPROTO', 'does not speak TLS'],
	['ETIMEDOUT', 'did not answer in time'],
	['CERT_HAS_EXPIRED', 'certificate was rejected'],
])('explains %s, with what to do', (code, said) => {
	const { message, advice } = explainUnreached(code, 'h.example:81', 'ws');
	expect(message).toContain(`h.example:81 could not be reached: `);
	expect(message).toContain(said);
	expect(message).toContain(`(${code})`);
	expect(advice).toContain("'WebSocket Base URL' in the credential");
	expect(explainUnreached(code, 'h.example', 'http').advice).toContain(" 'Base URL' in the credential");
});

test('an unknown code is reported with the host', () => {
	expect(explainUnreached('EWEIRD', 'h.example', 'http').message).toBe(
		'h.example could not be reached (EWEIRD)',
	);
});

describe('originOf', () => {
	it.each([
		['https://host.example/path?x=1', 'https://host.example'],
		['https://user:secret@host.example:8443/p', 'https://host.example:8443'],
		['/relative/path?token=1', '/relative/path'],
		['host.example/path?token=1', 'host.example/path'],
		[`/${'p'.repeat(200)}`, `/${'p'.repeat(200)}`],
		['', 'an unknown address'],
		['?token=1', 'an unknown address'],
	])('turns "%s" into "%s"', (url, origin) => {
		expect(originOf(url)).toBe(origin);
	});
});
