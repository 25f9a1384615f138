import type { ITriggerFunctions, ITriggerResponse } from 'n8n-workflow';

import { toNodeError } from '../../../shared/errors/nodeError';
import { badInput, fail, type Failure, type Result } from '../../../shared/errors/failure';
import type { Socket } from '../../../shared/http/webSocket';
import { excerpt } from '../../../shared/text/json';
import { whyEnded, type Bridge } from '../../connection/failures';
import { receive, toItem, type ListenSettings, type IncomingFrame } from './incomingFrame';

const EVENTS_SHOWN = 8;
const EVENT_SHOWN_CHARS = 60;

/** A test in the editor: waits for the first matching frame, or fails and says what to check. */
export function listenOnce(
	context: ITriggerFunctions,
	setup: Bridge,
	settings: ListenSettings,
): ITriggerResponse {
	const over = new AbortController();
	let connection: Socket | undefined;
	const stop = async (): Promise<void> => {
		over.abort();
		await connection?.close();
	};
	return {
		manualTriggerFunction: async () => {
			const first = Promise.withResolvers<Result<IncomingFrame> | undefined>();
			over.signal.addEventListener('abort', () => first.resolve(undefined), { once: true });
			connection = openForOne(setup, settings, over.signal, first.resolve);
			const outcome = await first.promise;
			await stop();
			// The operator stopped the test: emitting nothing ends n8n's wait without an error.
			if (!outcome) context.emit([]);
			else if (outcome.ok) {
				// "Execute step" runs only the trigger, so the frame itself would be sent back as the reply.
				if (settings.reply) context.logger.info('Agent Bridge Trigger: a test in the editor sends no reply');
				context.emit([[toItem(outcome.value)]]);
			} else throw toNodeError(context.getNode(), outcome.failure);
		},
		closeFunction: stop,
	};
}

/** Opens a connection, and settles with the first matching frame, or with the reason why none arrived. */
function openForOne(
	setup: Bridge,
	settings: ListenSettings,
	over: AbortSignal,
	settle: (outcome: Result<IncomingFrame>) => void,
): Socket {
	const others = new Set<string>();
	const noteOther = (what: string): void => {
		if (others.size < EVENTS_SHOWN) others.add(what);
	};
	void setup.clock.sleep(settings.testTimeoutMs, over).then(() => {
		settle(fail(nothingCame(settings, others)));
	});
	return setup.open({
		onOpen: () => undefined,
		onText: (text) => {
			const received = receive(text, setup, settings);
			if (received.ok && settings.filter.accepts(received.value.frame)) settle(received);
			else if (!received.ok) noteOther(`a frame that is ${received.failure}`);
			else noteOther(excerpt(received.value.event ?? 'a frame that names no event', EVENT_SHOWN_CHARS));
		},
		onBinary: () => noteOther('a binary frame'),
		onEnd: (end) => void whyEnded(end, setup).then((failure) => settle(fail(failure))),
	});
}

function nothingCame({ testTimeoutMs }: ListenSettings, others: ReadonlySet<string>): Failure {
	const seconds = testTimeoutMs / 1000;
	if (others.size > 0) {
		const shown = [...others].join(', ');
		return badInput(
			`Frames arrived within ${seconds} seconds, but none of them starts the workflow`,
			`Received: ${shown}. Compare this with 'Event Path' and 'Events'.`,
		);
	}
	return {
		kind: 'timedOut',
		message: `The connection is open, but no frame arrived within ${seconds} seconds`,
		advice:
			"Send a message over this channel account while the test runs. Check in the platform's console that the account is bound to an agent, and that no other client, such as an active workflow, receives its frames. Some platforms expect a first frame or a heartbeat before they send.",
	};
}
