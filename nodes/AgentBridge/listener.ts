import type { Clock } from '../shared/run/clock';
import type { Failure } from '../shared/errors/failure';
import type { BridgeEnd, BridgeEvents, BridgeLine } from './connection';
import { explainEnd, isRefusal, type Whom } from './failures';
import type { Probe } from './probe';
import type { ReconnectPolicy } from './reconnect';

/** What the listener does not do itself. */
export interface ListenerParts {
	readonly open: (events: BridgeEvents) => BridgeLine;
	readonly probe: () => Promise<Probe>;
	readonly policy: ReconnectPolicy;
	readonly clock: Clock;
	readonly whom: Whom;
	/** @returns false where there is no room for it: the connection is closed until there is */
	readonly onText: (text: string) => boolean;
	readonly onBinary: () => void;
	/** Resolves as soon as there is room again. */
	readonly room: () => Promise<void>;
	/** The connection is up, for the first time or again after so many failures. */
	readonly onUp: (failures: number) => void;
	/** The connection is away, and is tried again after the pause. */
	readonly onDown: (failure: Failure, pauseMs: number, failures: number) => void;
	/** There is no use in going on. */
	readonly onRefused: (failure: Failure) => void;
	readonly onFull: () => void;
}

export interface Listener {
	/** Resolves as soon as the first try has had its outcome: open, refused, or to be tried again. */
	readonly started: Promise<void>;
	/** Closes the connection within a second and opens none again. */
	stop(): Promise<void>;
}

/**
 * The close code for "try again later" is 1013, but the native WebSocket lets a client send none but 1000 and those
 * from 3000 on; this is its place in the range for applications.
 */
const FULL_CLOSE = 4013;

/** Keeps one connection open for as long as the trigger lives (§1.7: long-lived exchange). */
export function startListener(parts: ListenerParts): Listener {
	const stopping = new AbortController();
	const isStopped = (): boolean => stopping.signal.aborted;
	const first = signalOnce();
	let line: BridgeLine | undefined;

	/** One connection, from its opening to its end. */
	const live = async (): Promise<BridgeEnd | 'full' | 'stopped'> =>
		await new Promise((resolve) => {
			stopping.signal.addEventListener('abort', () => resolve('stopped'), { once: true });
			const current = parts.open({
				onOpen: () => {
					const { failures } = parts.policy;
					parts.policy.opened();
					parts.onUp(failures);
					first.settle();
				},
				onText: (text) => {
					if (parts.onText(text)) return;
					resolve('full');
					void current.close(FULL_CLOSE);
				},
				onBinary: parts.onBinary,
				onEnd: resolve,
			});
			line = current;
		});

	const run = async (): Promise<void> => {
		while (!isStopped()) {
			const end = await live();
			if (end === 'stopped' || isStopped()) return;
			if (end === 'full') {
				parts.onFull();
				parts.policy.ended();
				await parts.room();
				continue;
			}
			const probe = end.cause === 'handshake' ? await parts.probe() : undefined;
			if (isStopped()) return;
			const failure = explainEnd(end, parts.whom, probe);
			if (isRefusal(end, probe)) {
				parts.onRefused(failure);
				return;
			}
			const pauseMs = parts.policy.ended();
			parts.onDown(failure, pauseMs, parts.policy.failures);
			first.settle();
			await parts.clock.sleep(pauseMs, stopping.signal);
		}
	};
	void run().finally(first.settle);

	return {
		started: first.settled,
		stop: async () => {
			stopping.abort();
			await line?.close();
		},
	};
}

function signalOnce(): { readonly settled: Promise<void>; readonly settle: () => void } {
	let settle = (): void => undefined;
	const settled = new Promise<void>((resolve) => {
		settle = resolve;
	});
	return { settled, settle };
}
