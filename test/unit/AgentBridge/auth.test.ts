import fc from 'fast-check';

import { fillAuthFrame } from '../../../nodes/AgentBridge/auth';

test.each([
	['{"type":"auth","token":"$token"}', { type: 'auth', token: 'wst_x' }],
	['{"auth":{"header":["Bearer $token",1,null]}}', { auth: { header: ['Bearer wst_x', 1, null] } }],
	[{ token: '$token' }, { token: 'wst_x' }],
])('%j', (template, frame) => {
	const filled = fillAuthFrame(template, 'wst_x');
	expect(filled.ok && JSON.parse(filled.value)).toEqual(frame);
});

test('no token can break out of its place', () => {
	fc.assert(
		fc.property(fc.string(), (rest) => {
			const token = `wst_${rest}`;
			const filled = fillAuthFrame('{"token":"$token","a":1}', token);
			expect(filled.ok && JSON.parse(filled.value)).toEqual({ token, a: 1 });
		}),
	);
});

test.each(['{"token":"$token","id":9007199254740993}', { token: '$token', id: 2 ** 60 }])(
	'a number of which digits would be lost is refused: %j',
	(template) => {
		expect(fillAuthFrame(template, 'wst_secret')).toMatchObject({
			failure: { kind: 'badInput', message: expect.stringContaining('of which digits would be lost') },
		});
	},
);

test.each(['', 'auth $token', '["$token"]', '{"token":"token"}', '{"$token":1}', null, 17])(
	'%j is refused, and the token is not said',
	(template) => {
		const filled = fillAuthFrame(template, 'wst_secret');
		expect(filled).toMatchObject({ ok: false, failure: { kind: 'badInput' } });
		expect(JSON.stringify(filled)).not.toContain('wst_secret');
	},
);
