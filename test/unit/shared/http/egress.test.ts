import type { IExecuteFunctions } from 'n8n-workflow';

import { allowsSocketTo } from '../../../../nodes/shared/http/webSocket';

type Helpers = IExecuteFunctions['helpers'];

const URL_OF_SOCKET = 'wss://platform.example.com/ws';

function withFilter(answer: () => unknown): Helpers {
	return { getSecureEgressFilter: () => answer() } as unknown as Helpers;
}

it.each([
	['allows the address', withFilter(() => ({ validateUrl: async () => ({ ok: true }) })), true],
	['refuses the address', withFilter(() => ({ validateUrl: async () => ({ ok: false }) })), false],
	['has no filter', {} as Helpers, true],
	['returns no filter because it is off (2.35)', withFilter(() => undefined), true],
])('decides about a socket on an n8n that %s', async (_name, helpers, expected) => {
	expect(await allowsSocketTo(helpers, URL_OF_SOCKET)).toBe(expected);
});

it("asks n8n's filter about the HTTP form of the address", async () => {
	const asked: string[] = [];
	const filter = {
		validateUrl: async (url: string) => {
			asked.push(url);
			return { ok: true };
		},
	};
	const helpers = withFilter(() => filter);
	await allowsSocketTo(helpers, URL_OF_SOCKET);
	await allowsSocketTo(helpers, 'ws://127.0.0.1:5/x');
	expect(asked).toEqual(['https://platform.example.com/ws', 'http://127.0.0.1:5/x']);
});
