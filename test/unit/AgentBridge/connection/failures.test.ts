import { explainEnd, type Peer } from '../../../../nodes/AgentBridge/connection/failures';
import type { SocketEnd } from '../../../../nodes/shared/http/webSocket';
import { redactor } from '../../../../nodes/shared/text/redact';

const END = { cause: 'handshake', code: 1006, reason: '' } as const;

test.each<[Peer['tokenIn'], string, string]>([
	['handshake', 'refused the channel token (HTTP 401)', 'may be mistyped'],
	['frame', 'refused the WebSocket connection (HTTP 401)', 'The handshake contains no token'],
	['nothing', 'refused the WebSocket connection (HTTP 401)', 'No token was sent'],
])('a 401 names the token only if the handshake contains it: %s', (tokenIn, message, advice) => {
	const peer = { host: 'h', protocol: undefined, tokenIn, redact: redactor([]) };
	expect(explainEnd(END, peer, 'never', { kind: 'status', status: 401 })).toMatchObject({
		kind: 'credential',
		message: `h ${message}`,
		advice: expect.stringContaining(advice),
	});
});

test('names no sub-protocol if none was offered', () => {
	const peer = { host: 'h', protocol: undefined, tokenIn: 'frame', redact: redactor([]) } as const;
	const { advice } = explainEnd(END, peer);
	expect(advice).toContain('the platform expects a sub-protocol');
	expect(explainEnd(END, peer, 'never', { kind: 'status', status: 404 }).advice).toContain('(none)');
});

test('a redirect names the address, without a secret', () => {
	const whom = {
		host: 'h',
		protocol: undefined,
		tokenIn: 'handshake',
		redact: redactor(['wst_secret01']),
	} as const;
	const probe = { kind: 'status', status: 301, redirectsTo: 'wss://new.test/ws/wst_secret01' } as const;
	const { kind, message, advice } = explainEnd(END, whom, 'never', probe);
	expect(kind).toBe('refused');
	expect(message).toBe('h redirects to another address, which the node does not follow (HTTP 301)');
	expect(advice).toContain('The address is wss://new.test/ws/[hidden].');
});

test.each<[what: string, end: SocketEnd, status: number | undefined]>([
	['an HTTP 401', END, 401],
	['an HTTP 404', END, 404],
	['an HTTP 429', END, 429],
	['a handshake that is not answered', { ...END, cause: 'silent' }, undefined],
	['another sub-protocol', { ...END, cause: 'protocol' }, undefined],
	['close code 4401', { cause: 'closed', code: 4401, reason: '' }, undefined],
])('after the platform had accepted the settings, %s is no mistyped setting', (_what, end, status) => {
	const peer = { host: 'h', protocol: 'p', tokenIn: 'handshake', redact: redactor([]) } as const;
	const probe = status === undefined ? undefined : ({ kind: 'status', status } as const);
	const first = explainEnd(end, peer, 'never', probe);
	const later = explainEnd(end, peer, 'before', probe);
	expect(later).toEqual({ ...first, advice: expect.stringContaining('not mistyped') });
	expect(first.advice).not.toContain('not mistyped');
});
