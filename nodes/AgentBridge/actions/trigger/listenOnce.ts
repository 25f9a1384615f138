import type { ITriggerFunctions, ITriggerResponse } from 'n8n-workflow';

import { toNodeError } from '../../../shared/errors/nodeError';
import { badInput, fail, type Failure, type Result } from '../../../shared/errors/failure';
import { excerpt } from '../../../shared/text/json';
import type { BridgeConnection } from '../../connection/connection';
import { whyEnded } from '../../connection/failures';
import type { BridgeSetup } from '../openBridge';
import { receive, toItem, type ListenSettings, type IncomingFrame } from './incomingFrame';

/** How many events the advice names. */
const EVENTS_SHOWN = 8;
const EVENT_SHOWN_CHARS = 60;

/** "Listen for test event": waits for the first matching frame, or fails with what to check. */
export function listenOnce(
	context: ITriggerFunctions,
	setup: BridgeSetup,
	settings: ListenSettings,
): ITriggerResponse {
	const wait = new WaitForFrame(setup, settings);
	return {
		manualTriggerFunction: async () => {
			const outcome = await wait.first();
			await wait.stop();
			// The operator stopped the test: emitting nothing ends n8n's wait without an error.
			if (!outcome) context.emit([]);
			else if (outcome.ok) {
				// "Execute step" runs only the trigger, so the frame itself would be sent back as the reply.
				if (settings.reply) context.logger.info('Agent Bridge Trigger: a test in the editor sends no reply');
				context.emit([[toItem(outcome.value)]]);
			} else throw toNodeError(context.getNode(), outcome.failure);
		},
		closeFunction: async () => await wait.stop(),
	};
}

/** Waits for one matching frame, over its own connection. */
class WaitForFrame {
	private readonly over = new AbortController();
	private readonly others = new Set<string>();
	private connection: BridgeConnection | undefined;

	constructor(
		private readonly setup: BridgeSetup,
		private readonly settings: ListenSettings,
	) {}

	/** @returns `undefined` if it was stopped first */
	async first(): Promise<Result<IncomingFrame> | undefined> {
		const { setup, settings } = this;
		const { signal } = this.over;
		const { promise, resolve } = Promise.withResolvers<Result<IncomingFrame> | undefined>();
		signal.addEventListener('abort', () => resolve(undefined), { once: true });
		this.connection = setup.open({
			onOpen: () => undefined,
			onText: (text) => {
				const received = receive(text, setup, settings);
				if (received.ok && settings.filter.takes(received.value.frame)) resolve(received);
				else this.noteOther(received.ok ? eventSeen(received.value) : `a frame that is ${received.failure}`);
			},
			onBinary: () => this.noteOther('a binary frame'),
			onEnd: (end) => void whyEnded(end, setup).then((failure) => resolve(fail(failure))),
		});
		void setup.clock.sleep(settings.testTimeoutMs, signal).then(() => {
			resolve(fail(nothingCame(settings, this.others)));
		});
		return await promise;
	}

	async stop(): Promise<void> {
		this.over.abort();
		await this.connection?.close();
	}

	/** Notes a frame that did not match, for the advice. */
	private noteOther(what: string): void {
		if (this.others.size < EVENTS_SHOWN) this.others.add(what);
	}
}

function eventSeen({ event }: IncomingFrame): string {
	return event === undefined ? 'a frame that names no event' : excerpt(event, EVENT_SHOWN_CHARS);
}

function nothingCame({ testTimeoutMs }: ListenSettings, others: ReadonlySet<string>): Failure {
	const seconds = testTimeoutMs / 1000;
	if (others.size > 0) {
		const shown = [...others].join(', ');
		return badInput(
			`Frames arrived within ${seconds} seconds, but none of the listed events`,
			`Received: ${shown}. Compare this with "Event Path" and "Events".`,
		);
	}
	return {
		kind: 'timedOut',
		message: `The connection is open, but no frame arrived within ${seconds} seconds`,
		advice:
			"Send a message over this channel account while the test runs. Check in the platform's console that the account is bound to an agent, and that no other client, such as an active workflow, takes its frames. Some platforms expect a first frame or a heartbeat before they send.",
	};
}
