import type { IDataObject, INodeExecutionData, ITriggerFunctions } from 'n8n-workflow';

import { ok, type Result } from '../../shared/errors/failure';
import { readNumbers } from '../../shared/form/options';
import { textOf } from '../../shared/text/textOf';
import { createEventFilter, readIncoming, readName, type EventFilter, type Frame } from '../frames';
import type { BridgeSetup } from './bridgeSetup';
import { LISTEN_OPTIONS, MAX_BATCH } from './fields.listen';

/** A frame on its way to n8n. */
export interface Received {
	readonly frame: Frame;
	readonly event: string | undefined;
	readonly id: string | undefined;
	readonly receivedAt: string;
}

/** The trigger's fields about frames. */
export interface ListenSettings {
	readonly filter: EventFilter;
	readonly idPath: string;
	readonly maxBatch: number;
	readonly maxQueued: number;
	readonly testTimeoutMs: number;
}

export function readListenSettings(context: ITriggerFunctions, options: IDataObject): Result<ListenSettings> {
	const filter = createEventFilter(
		textOf(context.getNodeParameter('eventPath', '')),
		textOf(context.getNodeParameter('eventFilter', '')),
	);
	if (!filter.ok) return filter;
	const given = { ...options, maxBatch: context.getNodeParameter('maxBatch', 100) };
	const numbers = readNumbers(given, LISTEN_OPTIONS, MAX_BATCH);
	if (!numbers.ok) return numbers;
	const { number } = numbers.value;
	return ok({
		filter: filter.value,
		idPath: textOf(context.getNodeParameter('idPath', '')),
		maxBatch: Math.floor(number('maxBatch')),
		maxQueued: Math.floor(number('maxQueued')),
		testTimeoutMs: number('testTimeoutSeconds') * 1000,
	});
}

/** A frame that came, with its event and ID. A failure follows "a frame that is". */
export function receive(
	text: string,
	{ redact }: BridgeSetup,
	{ filter, idPath }: ListenSettings,
): Result<Received, string> {
	const incoming = readIncoming(text, redact);
	if (!incoming.ok) return incoming;
	const frame = incoming.value;
	const receivedAt = new Date().toISOString();
	return ok({ frame, event: filter.eventOf(frame), id: readName(frame, idPath), receivedAt });
}

export function toItem({ frame, event, id, receivedAt }: Received): INodeExecutionData {
	return {
		json: {
			frame,
			...(event !== undefined && { event }),
			...(id !== undefined && { frameId: id }),
			receivedAt,
		},
	};
}
