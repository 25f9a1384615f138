import type { Failure } from '../../shared/errors/failure';
import { jitteredPauseMs, type PauseGrowth } from '../../shared/time/growingPause';
import type { Socket } from '../../shared/http/webSocket';
import { whyEnded, type Bridge } from './failures';

/** The pauses between retries, which go on until the trigger stops or the account is refused. */
const PAUSES: PauseGrowth = { firstMs: 1_000, factor: 2, longestMs: 60_000 };
/** Once a connection has lived this long, the next failure counts as the first again. */
const STABLE_AFTER_MS = 60_000;
/**
 * The close code for "try again later" is 1013, but the native WebSocket lets a client send only 1000 and codes from
 * 3000 on; this is its counterpart in the application range.
 */
const FULL_CLOSE = 4013;

export interface ListenerEvents {
	/** @returns false if the queue is full; the connection then stays closed until `onFull` resolves */
	onText(text: string): boolean;
	onBinary(): void;
	/** @param failures how many connections have ended or failed to open since the last stable one */
	onUp(failures: number): void;
	/** The connection was lost or could not be opened; the next try follows after the pause. */
	onDown(failure: Failure, pauseMs: number): void;
	/** The platform refused the account, so the listener stops. */
	onRefused(failure: Failure): void;
	/** The connection was closed because the queue is full. Resolves when it may be reopened. */
	onFull(): Promise<void>;
}

/** Keeps one connection open for as long as the trigger lives (§1.7: long-lived exchange). */
export class Listener {
	private readonly stopping = new AbortController();
	private readonly firstTry = Promise.withResolvers<Failure | undefined>();
	private failures = 0;
	/** Whether any connection showed that the platform accepts the account. */
	private hasServed = false;
	private openedAtMs: number | undefined;
	/** The newest connection. */
	private connection: Socket | undefined;

	constructor(
		private readonly bridge: Bridge,
		private readonly events: ListenerEvents,
		private readonly random: () => number,
	) {}

	/** Starts listening. Resolves once the first try is over. @returns why the platform refused the account, if it did */
	async start(): Promise<Failure | undefined> {
		void this.keepOpen().finally(() => this.firstTry.resolve(undefined));
		return await this.firstTry.promise;
	}

	/** @returns false if no connection is open */
	send(text: string): boolean {
		return this.connection?.send(text) ?? false;
	}

	/** Closes the connection within a second and opens no other. */
	async stop(): Promise<void> {
		this.stopping.abort();
		await this.connection?.close();
	}

	private isStopped(): boolean {
		return this.stopping.signal.aborted;
	}

	private async keepOpen(): Promise<void> {
		for (let isFirst = true; !this.isStopped(); isFirst = false) {
			// The SSRF guard has already allowed the first connection.
			const refusal = isFirst ? undefined : await this.bridge.refusal();
			const failure = refusal ?? (await this.live());
			if (this.isStopped()) return;
			if (!failure) {
				this.forgetFailures();
				await this.events.onFull();
			} else if (failure.kind === 'credential') {
				this.firstTry.resolve(failure);
				this.events.onRefused(failure);
				return;
			} else {
				const pauseMs = this.nextPauseMs();
				this.events.onDown(failure, pauseMs);
				this.firstTry.resolve(undefined);
				await this.bridge.clock.sleep(pauseMs, this.stopping.signal);
			}
		}
	}

	/** Opens a connection and waits for its end. @returns why it ended; `undefined` if this side closed it */
	private async live(): Promise<Failure | undefined> {
		if (this.isStopped()) return undefined;
		let received = 0;
		const current = this.bridge.open({
			onOpen: () => {
				this.events.onUp(this.failures);
				this.openedAtMs = this.bridge.clock.now();
				this.firstTry.resolve(undefined);
			},
			onText: (text) => {
				received++;
				if (!this.events.onText(text)) void current.close(FULL_CLOSE);
			},
			onBinary: () => this.events.onBinary(),
		});
		this.connection = current;
		const end = await current.ended;
		if (end.cause === 'ours') return undefined;
		// After service, a code that may refuse the account may also mean a rate limit. If the account is refused, the next
		// connection is, too. The first frame may only answer the token, as a refusal in words.
		const answers = this.bridge.peer.tokenIn === 'frame' ? 1 : 0;
		const isServed = received > answers || this.openMs() >= STABLE_AFTER_MS;
		const before = this.hasServed ? 'before' : 'never';
		this.hasServed ||= isServed;
		return await whyEnded(end, this.bridge, isServed ? 'here' : before);
	}

	/** How long the connection has been open, or was. */
	private openMs(): number {
		return this.openedAtMs === undefined ? 0 : this.bridge.clock.now() - this.openedAtMs;
	}

	/** Counts a connection that ended or could not be opened. @returns the pause before the next try */
	private nextPauseMs(): number {
		if (this.openMs() >= STABLE_AFTER_MS) this.forgetFailures();
		this.openedAtMs = undefined;
		this.failures++;
		return jitteredPauseMs(PAUSES, this.failures, this.random);
	}

	private forgetFailures(): void {
		this.failures = 0;
		this.openedAtMs = undefined;
	}
}
