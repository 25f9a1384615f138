import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { itemsByAccount, mapAccounts, readAccounts } from '../../shared/accounts';
import { toErrorItem, toNodeError } from '../../shared/errors';
import { badInput, fail, ok, type Failure, type Result } from '../../shared/failure';
import { isJsonObject, jsonText, parseJson } from '../../shared/json';
import { redactor, type Redact } from '../../shared/redact';
import { isTool } from '../../shared/toolMode';
import type { Frame } from '../bridge.frames';
import { readBridgeAccount, type BridgeAccount } from '../bridge.account';
import { openSession, type BridgeSession } from '../bridge.session';
import { CREDENTIAL, setUpBridge, type BridgeSetup } from './bridgeSetup';
import { openFrameMemory, type FrameMemory } from './frameMemory';

/** How one item ended: the fields of its output, or why there are none. */
export type Outcome = Result<IDataObject>;

/** The items that go over one connection, and what is known of them. */
interface OwnItems extends Pick<FrameMemory, 'recall'> {
	readonly itemIndexes: readonly number[];
	/** Shared by all connections of the run. */
	readonly ended: { hasFailed: boolean };
}

/**
 * The frame of both operations: the credential is read, the items of each account are worked on over a connection of
 * its own, beside those of the others, and nothing is left behind, however it ends.
 */
export async function inSession(
	context: IExecuteFunctions,
	work: (session: BridgeSession, items: OwnItems) => Promise<Outcome[]>,
): Promise<INodeExecutionData[][]> {
	const accounts = await readAccounts(context, CREDENTIAL, readBridgeAccount);
	if (!accounts.ok) return failRun(context, accounts.failure);
	const { all, refused } = accounts.value;
	if (refused && !context.continueOnFail()) {
		throw toNodeError(context.getNode(), forReader(refused.failure, isTool(context)), refused.itemIndex);
	}
	const redact = redactor(all.flatMap(({ account }) => account.secrets));
	const setups = mapAccounts(accounts.value, async (read) => await setUp(context, read.account, redact));
	const [first] = await Promise.all(setups.all);
	if (first?.ok === false && all.length === 1) return failRun(context, first.failure);

	const stopping = new AbortController();
	const stop = (): void => stopping.abort();
	const cancelled = context.getExecutionCancelSignal();
	cancelled?.addEventListener('abort', stop, { once: true });
	if (cancelled?.aborted) stop();
	const memory = openFrameMemory(context);
	const ended = { hasFailed: false };
	const itemsOf = itemsByAccount(setups, context.getInputData().keys());
	const sent = mapAccounts(setups, async (opening) => {
		const setup = await opening;
		if (!setup.ok) return setup;
		const session = openSession({ ...setup.value, signal: stopping.signal });
		try {
			const recall: FrameMemory['recall'] = (itemIndex) => memory.recall(itemIndex);
			return ok(await work(session, { recall, ended, itemIndexes: itemsOf.get(opening) ?? [] }));
		} finally {
			await session.close();
		}
	});
	try {
		// All of them, however one ends: a connection is closed by those who use it.
		await Promise.allSettled(sent.all);
		const outcomes = await Promise.all(
			context.getInputData().map(async (_, itemIndex): Promise<Outcome> => {
				const own = sent.of(itemIndex);
				if (!own.ok) return own;
				const done = await own.value;
				return done.ok ? (done.value[itemIndex] ?? fail(NOT_SENT)) : done;
			}),
		);
		memory.keep(outcomes);
		return deliver(context, outcomes);
	} finally {
		cancelled?.removeEventListener('abort', stop);
		stop();
	}
}

async function setUp(
	context: IExecuteFunctions,
	account: BridgeAccount,
	redact: Redact,
): Promise<Result<BridgeSetup>> {
	const options: unknown = context.getNodeParameter('options', 0, {});
	const { heartbeatFrame, heartbeatSeconds } = isJsonObject(options) ? options : {};
	return await setUpBridge(
		context,
		account,
		redact,
		{
			authMode: context.getNodeParameter('authMode', 0),
			authFrame: context.getNodeParameter('authFrame', 0, ''),
		},
		{ heartbeatFrame, heartbeatSeconds, idleTimeoutSeconds: 0 },
	);
}

const NOT_SENT: Failure = {
	kind: 'notSubmitted',
	message: 'Nothing was sent for this item, because another item failed first',
	advice: 'Run the node again with this item.',
};

/**
 * Works on the items one after the other: frames of one connection have an order.
 * @returns each outcome at the index of its item
 */
export async function eachInTurn(
	context: IExecuteFunctions,
	{ itemIndexes, recall, ended }: OwnItems,
	work: (itemIndex: number) => Promise<Outcome>,
): Promise<Outcome[]> {
	const outcomes: Outcome[] = [];
	for (const itemIndex of itemIndexes) {
		const known = recall(itemIndex);
		// The run ends with the first failure, so nothing more is sent.
		const outcome = known ?? (ended.hasFailed ? fail(NOT_SENT) : await work(itemIndex));
		outcomes[itemIndex] = outcome;
		if (!outcome.ok && !context.continueOnFail()) ended.hasFailed = true;
	}
	return outcomes;
}

/** The first failure is thrown, unless the operator chose to continue: then each item gets its own. */
function deliver(context: IExecuteFunctions, outcomes: readonly Outcome[]): INodeExecutionData[][] {
	const asTool = isTool(context);
	const failedAt = outcomes.findIndex(({ ok: isOk }) => !isOk);
	const ownAt = outcomes.findIndex((one) => !one.ok && one.failure.kind !== 'notSubmitted');
	const firstAt = ownAt < 0 ? failedAt : ownAt;
	const first = outcomes[firstAt];
	if (first && !first.ok && !context.continueOnFail()) {
		throw toNodeError(context.getNode(), forReader(first.failure, asTool), firstAt);
	}
	const items = outcomes.map((outcome, itemIndex): INodeExecutionData =>
		outcome.ok
			? { json: outcome.value, pairedItem: { item: itemIndex } }
			: toErrorItem(outcome.failure, itemIndex, asTool),
	);
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
