import { openBridge } from '../../../../nodes/AgentBridge/actions/openBridge';

type Context = Parameters<typeof openBridge>[0];

const CREDENTIAL = { channelToken: 'wst_0123456789', wsBaseUrl: 'wss://inner.example.com' };
const SUBPROTOCOL = { authMode: 'subprotocol', authFrame: '' };
const NO_OPTIONS = { heartbeatFrame: undefined, heartbeatSeconds: undefined, idleTimeoutSeconds: undefined };

function context(verdict?: { ok: boolean }): { readonly context: Context; readonly asked: string[] } {
	const asked: string[] = [];
	const getSecureEgressFilter = () => ({
		validateUrl: async (url: string) => {
			asked.push(url);
			return verdict;
		},
	});
	const helpers = verdict ? { getSecureEgressFilter } : {};
	return {
		asked,
		context: { getCredentials: async () => CREDENTIAL, helpers } as unknown as Context,
	};
}

test("calls n8n's guard against internal addresses before opening a socket", async () => {
	const open = context({ ok: true });
	expect(await openBridge(open.context, { ...SUBPROTOCOL, options: NO_OPTIONS })).toMatchObject({ ok: true });
	expect(open.asked).toEqual(['https://inner.example.com/ws/v1']);

	const shut = await openBridge(context({ ok: false }).context, { ...SUBPROTOCOL, options: NO_OPTIONS });
	expect(shut).toMatchObject({
		ok: false,
		failure: { message: 'This n8n instance does not allow connections to inner.example.com' },
	});
	// An older n8n has no such guard.
	expect(await openBridge(context().context, { ...SUBPROTOCOL, options: NO_OPTIONS })).toMatchObject({
		ok: true,
	});
});

test.each([
	[undefined, true],
	['', true],
	['{}', true],
	[{}, true],
	['{"type":"ping"}', true],
	[{ type: 'ping' }, true],
	['ping', false],
	['[1]', false],
	[17, false],
])('accepts the heartbeat %j: %j', async (heartbeatFrame, accepted) => {
	const setup = await openBridge(context().context, {
		...SUBPROTOCOL,
		options: { ...NO_OPTIONS, heartbeatFrame },
	});
	expect(setup.ok).toBe(accepted);
});

test.each([
	['5', true],
	['soon', false],
])('accepts an interval of %j seconds: %j', async (seconds, accepted) => {
	for (const name of ['heartbeatSeconds', 'idleTimeoutSeconds']) {
		const setup = await openBridge(context().context, {
			...SUBPROTOCOL,
			options: { ...NO_OPTIONS, heartbeatFrame: '{"type":"ping"}', [name]: seconds },
		});
		expect(setup.ok).toBe(accepted);
	}
});

test.each([0, -5, '0.5'])('refuses a heartbeat every %j seconds', async (heartbeatSeconds) => {
	const setup = await openBridge(context().context, {
		...SUBPROTOCOL,
		options: { ...NO_OPTIONS, heartbeatFrame: '{"type":"ping"}', heartbeatSeconds },
	});
	expect(setup).toMatchObject({
		ok: false,
		failure: {
			message: "'Heartbeat Interval (Seconds)' must be a number from 1 to 2000000",
			advice: "Correct it under 'Options' in the node. Nothing was sent.",
		},
	});
	const options = { ...NO_OPTIONS, heartbeatSeconds };
	expect(await openBridge(context().context, { ...SUBPROTOCOL, options })).toMatchObject({ ok: true });
});
