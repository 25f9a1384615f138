import { openConnection, type Probe } from '../../../../nodes/AgentBridge/connection/connection';
import type { Failure } from '../../../../nodes/shared/errors/failure';
import type { Bridge } from '../../../../nodes/AgentBridge/connection/failures';
import { redactor } from '../../../../nodes/shared/text/redact';
import { TestClock } from '../../testClock';
import { scriptedSockets } from './sockets.script';

export type BridgeScene = ReturnType<typeof bridgeScene>;

/** Creates a bridge over scripted sockets, in virtual time. */
export function bridgeScene(
	probe: () => Probe | Promise<Probe>,
	refusal: () => Failure | undefined = () => undefined,
) {
	const clock = new TestClock();
	const { sockets, connect } = scriptedSockets();
	const protocol = 'neutral.bridge.v1';
	const settings = { url: 'ws://bridge.test/ws/v1', protocols: [protocol], idleMs: 0 };
	const bridge: Bridge = {
		clock,
		peer: {
			host: 'bridge.test',
			protocol,
			tokenIn: 'handshake',
			redact: redactor(['wst_secret']),
		},
		open: (events) => openConnection(settings, events, clock, connect),
		probe: async () => await probe(),
		refusal: async () => await Promise.resolve(refusal()),
	};
	return {
		clock,
		sockets,
		bridge,
		/** The newest socket. */
		last: () => {
			const socket = sockets.at(-1);
			if (!socket) throw new Error('no socket');
			return socket;
		},
	};
}
