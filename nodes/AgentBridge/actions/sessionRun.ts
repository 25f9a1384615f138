import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { toErrorItem, toNodeError } from '../../shared/errors';
import { badInput, fail, ok, type Failure, type Result } from '../../shared/failure';
import { isJsonObject, jsonText, parseJson } from '../../shared/json';
import { isTool } from '../../shared/toolMode';
import type { Frame } from '../bridge.frames';
import { openSession, type BridgeSession } from '../bridge.session';
import { prepareBridge } from './bridgeSetup';
import { openFrameMemory, type FrameMemory } from './frameMemory';

/** How one item ended: the fields of its output, or why there are none. */
export type Outcome = Result<IDataObject>;

/**
 * The frame of both operations: the credential is read, the items are worked on over one connection, and nothing is
 * left behind, however it ends.
 */
export async function inSession(
	context: IExecuteFunctions,
	work: (session: BridgeSession, memory: FrameMemory) => Promise<Outcome[]>,
): Promise<INodeExecutionData[][]> {
	const options: unknown = context.getNodeParameter('options', 0, {});
	const { heartbeatFrame, heartbeatSeconds } = isJsonObject(options) ? options : {};
	const setup = await prepareBridge(
		context,
		{
			authMode: context.getNodeParameter('authMode', 0),
			authFrame: context.getNodeParameter('authFrame', 0, ''),
		},
		{ heartbeatFrame, heartbeatSeconds, idleTimeoutSeconds: 0 },
	);
	if (!setup.ok) return failRun(context, setup.failure);

	const stopping = new AbortController();
	const stop = (): void => stopping.abort();
	const cancelled = context.getExecutionCancelSignal();
	cancelled?.addEventListener('abort', stop, { once: true });
	if (cancelled?.aborted) stop();
	const memory = openFrameMemory(context);
	const session = openSession({ ...setup.value, signal: stopping.signal });
	try {
		const outcomes = await work(session, memory);
		memory.keep(outcomes);
		return deliver(context, outcomes);
	} finally {
		await session.close();
		cancelled?.removeEventListener('abort', stop);
		stop();
	}
}

/** Works on the items one after the other: frames of one connection have an order. */
export async function eachInTurn(
	context: IExecuteFunctions,
	memory: FrameMemory,
	work: (itemIndex: number) => Promise<Outcome>,
): Promise<Outcome[]> {
	const outcomes: Outcome[] = [];
	for (const [itemIndex] of context.getInputData().entries()) {
		const outcome = memory.recall(itemIndex) ?? (await work(itemIndex));
		outcomes.push(outcome);
		// The run ends with this failure, so nothing more is sent.
		if (!outcome.ok && !context.continueOnFail()) break;
	}
	return outcomes;
}

/** The first failure is thrown, unless the operator chose to continue: then each item gets its own. */
function deliver(context: IExecuteFunctions, outcomes: readonly Outcome[]): INodeExecutionData[][] {
	const asTool = isTool(context);
	const items = outcomes.map((outcome, itemIndex): INodeExecutionData => {
		if (outcome.ok) return { json: outcome.value, pairedItem: { item: itemIndex } };
		if (context.continueOnFail()) return toErrorItem(outcome.failure, itemIndex, asTool);
		throw toNodeError(context.getNode(), forReader(outcome.failure, asTool), itemIndex);
	});
	return [items];
}

/** A failure of the whole run. With Continue On Fail each item gets it, else n8n would pass the input on as it is. */
export function failRun(context: IExecuteFunctions, failure: Failure): INodeExecutionData[][] {
	const asTool = isTool(context);
	if (!context.continueOnFail()) throw toNodeError(context.getNode(), forReader(failure, asTool));
	return [context.getInputData().map((_, itemIndex) => toErrorItem(failure, itemIndex, asTool))];
}

/** n8n passes an AI agent the message only. */
function forReader(failure: Failure, asTool: boolean): Failure {
	return asTool && failure.advice
		? { ...failure, message: `${failure.message}. ${failure.advice}` }
		: failure;
}

/** A frame to send. */
export interface OutgoingFrame {
	readonly frame: Frame;
	/** A pasted text as it stands, since a number of more than 15 digits does not survive parsing. */
	readonly text: string;
}

/** The frame of an item: a JSON object, pasted or from an expression. */
export function readFrame(value: unknown): Result<OutgoingFrame> {
	const frame = typeof value === 'string' ? parseJson(value) : value;
	const text = typeof value === 'string' ? value.trim() : jsonText(value);
	if (isJsonObject(frame) && Object.keys(frame).length > 0 && text !== undefined) return ok({ frame, text });
	const whatItIs = !isJsonObject(frame)
		? 'no JSON object'
		: Object.keys(frame).length === 0
			? 'empty'
			: 'nested too deeply';
	return fail(
		badInput(
			`The frame is ${whatItIs}`,
			'Enter what your platform expects, e.g. {"type": "message", "text": "Hello"}. Switch the field to Expression to put fields of the item into it.',
		),
	);
}
