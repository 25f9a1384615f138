import { openConnection, type Probe } from '../../../../nodes/AgentBridge/connection/connection';
import type { Failure } from '../../../../nodes/shared/errors/failure';
import type { Bridge } from '../../../../nodes/AgentBridge/connection/failures';
import { redactor } from '../../../../nodes/shared/text/redact';
import { TestClock } from '../../testClock';
import { scriptedSockets, type ScriptedSocket } from './sockets.script';

export interface BridgeScene {
	readonly clock: TestClock;
	readonly sockets: ScriptedSocket[];
	readonly bridge: Bridge;
	/** The newest socket. */
	last(): ScriptedSocket;
}

/** Creates a bridge over scripted sockets, in virtual time. */
export function bridgeScene(
	probe: () => Probe | Promise<Probe>,
	refusal: () => Failure | undefined = () => undefined,
): BridgeScene {
	const clock = new TestClock();
	const { sockets, connect } = scriptedSockets();
	const protocol = 'neutral.bridge.v1';
	const settings = { url: 'ws://bridge.test/ws/v1', protocols: [protocol], idleMs: 0 };
	return {
		clock,
		sockets,
		bridge: {
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
		},
		last: () => {
			const socket = sockets.at(-1);
			if (!socket) throw new Error('no socket');
			return socket;
		},
	};
}
