import type { Failure } from '../../shared/errors/failure';
import { growingPauseMs, type PauseGrowth } from '../../shared/run/growingPause';
import type { BridgeEnd, BridgeConnection } from './connection';
import { whyEnded, type Bridge } from './failures';

/** Tries go on for as long as the trigger lives. */
const PAUSES: PauseGrowth = { firstMs: 1_000, factor: 2, longestMs: 60_000 };
/** After a connection that lived this long, the next failure counts as the first. */
const STABLE_AFTER_MS = 60_000;
/**
 * The close code for "try again later" is 1013, but the native WebSocket lets a client send only 1000 and codes
 * from 3000 on; this is its place in the range for applications.
 */
const FULL_CLOSE = 4013;

/** What the listener does not do itself. */
export interface ListenerParts extends Bridge {
	readonly random: () => number;
	/** @returns false if there is no room for it: the connection is closed until there is */
	readonly onText: (text: string) => boolean;
	readonly onBinary: () => void;
	/** Resolves as soon as there is room again. */
	readonly room: () => Promise<void>;
	/** The connection is open, after this many failures. */
	readonly onUp: (failures: number) => void;
	/** The connection is lost, and is tried again after the pause. */
	readonly onDown: (failure: Failure, pauseMs: number, failures: number) => void;
	/** The platform refuses the account, so the listener stops. */
	readonly onRefused: (failure: Failure) => void;
	readonly onFull: () => void;
}

export interface Listener {
	/** Resolves with the outcome of the first try: open, refused, or to be tried again. */
	readonly started: Promise<void>;
	/** @returns false where no connection is open at the moment */
	send(text: string): boolean;
	/** Closes the connection within a second and opens none again. */
	stop(): Promise<void>;
}

/** Keeps one connection open for as long as the trigger lives (§1.7: long-lived exchange). */
export function startListener(parts: ListenerParts): Listener {
	const { clock } = parts;
	const stopping = new AbortController();
	const isStopped = (): boolean => stopping.signal.aborted;
	const started = Promise.withResolvers<undefined>();
	const pauses = new Pauses(() => clock.now(), parts.random);
	let connection: BridgeConnection | undefined;
	/** The newest connection that is authenticated; it refuses what is sent once it has ended. */
	let open: BridgeConnection | undefined;

	/** One connection, from its opening to its end. */
	const live = async (): Promise<BridgeEnd | 'full' | 'stopped'> =>
		await new Promise((resolve) => {
			stopping.signal.addEventListener('abort', () => resolve('stopped'), { once: true });
			const current = parts.open({
				onOpen: () => {
					open = current;
					parts.onUp(pauses.failures);
					pauses.opened();
					started.resolve(undefined);
				},
				onText: (text) => {
					if (parts.onText(text)) return;
					resolve('full');
					void current.close(FULL_CLOSE);
				},
				onBinary: parts.onBinary,
				onEnd: resolve,
			});
			connection = current;
		});

	const run = async (): Promise<void> => {
		let isFirst = true;
		while (!isStopped()) {
			// The guard was asked before the first connection.
			const refusal = isFirst ? undefined : await parts.refusal();
			isFirst = false;
			if (isStopped()) return;
			const end = refusal ?? (await live());
			if (end === 'stopped' || isStopped()) return;
			if (end === 'full') {
				parts.onFull();
				pauses.ended();
				await parts.room();
				continue;
			}
			const failure = 'cause' in end ? await whyEnded(end, parts) : end;
			if (isStopped()) return;
			if (failure.kind === 'credential') {
				parts.onRefused(failure);
				return;
			}
			const pauseMs = pauses.ended();
			parts.onDown(failure, pauseMs, pauses.failures);
			started.resolve(undefined);
			await clock.sleep(pauseMs, stopping.signal);
		}
	};
	void run().finally(() => started.resolve(undefined));

	return {
		started: started.promise,
		send: (text) => open?.send(text) ?? false,
		stop: async () => {
			stopping.abort();
			await connection?.close();
		},
	};
}

/**
 * Exponential back-off with jitter: half of the pause is fixed and the other half drawn, so that many n8n instances
 * do not come back at the same moment.
 */
export class Pauses {
	/** Since the last stable connection. */
	failures = 0;
	private openedAtMs: number | undefined;

	constructor(
		private readonly now: () => number,
		private readonly random: () => number,
	) {}

	opened(): void {
		this.openedAtMs = this.now();
	}

	/** A connection ended or could not be opened. @returns the pause before the next try, in ms */
	ended(): number {
		if (this.openedAtMs !== undefined && this.now() - this.openedAtMs >= STABLE_AFTER_MS) this.failures = 0;
		this.openedAtMs = undefined;
		this.failures++;
		return Math.round(growingPauseMs(PAUSES, this.failures) * (0.5 + this.random() / 2));
	}
}
