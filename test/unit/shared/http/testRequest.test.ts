import { Readable } from 'node:stream';

import { sendTest } from '../../../../nodes/shared/http/testRequest';
import { redactor } from '../../../../nodes/shared/text/redact';

const REQUEST = { url: 'https://platform.example/api', token: 'sk-abcdef', json: {} };

test('gives up on an answer of more than 1 MB, however long it is', async () => {
	let sent = 0;
	const body = new Readable({
		read() {
			sent += 65_536;
			this.push(Buffer.alloc(65_536, 'a'));
		},
	});
	const request = async (): Promise<unknown> => ({ statusCode: 200, headers: {}, body });
	const asked = await sendTest({ request }, REQUEST, redactor([]));
	expect(asked).toMatchObject({ failure: expect.stringContaining('answered with more than 1 MB') });
	expect([body.destroyed, sent < 2_000_000]).toEqual([true, true]);
});
