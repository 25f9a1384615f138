import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';
import pLimit from 'p-limit';

import { readAccounts, type Accounts, type ReadAccount } from '../../shared/platform/accounts';
import { toErrorItem, toNodeError } from '../../shared/errors/nodeError';
import { badInput, fail, ok, type Failure, type Result } from '../../shared/errors/failure';
import { isJsonObject, jsonText, parseJson } from '../../shared/text/json';
import { refuseRounded } from '../../shared/form/pastedJson';
import { redactor, type Redact } from '../../shared/text/redact';
import { readItem } from '../../shared/errors/expressionError';
import { isTool } from '../../shared/run/toolMode';
import type { Frame } from '../frames';
import { readBridgeAccount, type BridgeAccount } from '../account';
import { BridgeSession } from '../session';
import { CREDENTIAL, setUpBridge, type BridgeSetup } from './bridgeSetup';
import { openFrameMemory, type FrameMemory } from './frameMemory';

/** How one item ended: the fields of its output, or why there are none. */
export type Outcome = Result<IDataObject>;

/** The items that go over one connection: those of one account whose authentication frames come to the same. */
interface Connection {
	readonly account: BridgeAccount;
	readonly authFrame: unknown;
	/** In the order of the items; at least one. */
	readonly itemIndexes: number[];
}

/** The items of a connection, and what is known of them. */
interface OwnItems extends Pick<FrameMemory, 'recall'> {
	readonly itemIndexes: readonly number[];
	/** Shared by all connections of the run. */
	readonly ended: { hasFailed: boolean };
}

/** Outcomes by the indexes of their items. */
type Outcomes = ReadonlyMap<number, Outcome>;

/** An item may have an account of its own: a machine and a platform take so many connections without harm. */
const CONNECTIONS_AT_ONCE = 32;

/**
 * The frame of both operations: the credential is read, the items of each account are worked on over a connection of
 * its own, beside those of the others, and nothing is left behind, however it ends.
 */
export async function inSession(
	context: IExecuteFunctions,
	work: (session: BridgeSession, items: OwnItems) => Promise<Outcomes>,
): Promise<INodeExecutionData[][]> {
	const accounts = await readAccounts(context, CREDENTIAL, readBridgeAccount);
	if (!accounts.ok) return failRun(context, accounts.failure);
	const redact = redactor(accounts.value.all.flatMap(({ account }) => account.secrets));
	const connectionOf = connectItems(context, accounts.value);
	const connections = [...new Set(connectionOf.flatMap((one) => (one.ok ? [one.value] : [])))];
	const limit = pLimit(CONNECTIONS_AT_ONCE);
	const setups = new Map(
		await Promise.all(
			connections.map(
				async (one) => await limit(async () => [one, await setUp(context, one, redact)] as const),
			),
		),
	);
	const prepared = connectionOf.map((one) => (one.ok ? (setups.get(one.value) ?? fail(NOT_SENT)) : one));
	const refusedAt = prepared.findIndex(({ ok: isOk }) => !isOk);
	const refused = prepared[refusedAt];
	if (refused && !refused.ok) {
		// It is about the node, and not about one of its items.
		if (connections.length === 1 && prepared.every((one) => one === refused)) {
			return failRun(context, refused.failure);
		}
		// Nothing is sent beside an item that cannot be.
		if (!context.continueOnFail()) {
			throw toNodeError(context.getNode(), forReader(refused.failure, isTool(context)), refusedAt);
		}
	}

	const stopping = new AbortController();
	const stop = (): void => stopping.abort();
	const cancelled = context.getExecutionCancelSignal();
	cancelled?.addEventListener('abort', stop, { once: true });
	if (cancelled?.aborted) stop();
	const memory = openFrameMemory(context);
	const ended = { hasFailed: false };
	const outcomeOf = new Map<number, Outcome>();
	const converse = async ({ itemIndexes }: Connection, setup: BridgeSetup): Promise<void> => {
		const session = new BridgeSession(setup, stopping.signal);
		try {
			const recall: FrameMemory['recall'] = (itemIndex) => memory.recall(itemIndex);
			const done = await work(session, { recall, ended, itemIndexes });
			for (const [itemIndex, outcome] of done) outcomeOf.set(itemIndex, outcome);
		} finally {
			await session.close();
		}
	};
	try {
		const conversations = [...setups].map(async ([one, setup]) => {
			if (setup.ok) await limit(async () => await converse(one, setup.value));
		});
		// All of them, however one ends: a connection is closed by those who use it.
		await Promise.allSettled(conversations);
		await Promise.all(conversations);
		const outcomes = prepared.map((one, itemIndex): Outcome =>
			one.ok ? (outcomeOf.get(itemIndex) ?? fail(NOT_SENT)) : one,
		);
		memory.keep(outcomes);
		return deliver(context, outcomes);
	} finally {
		cancelled?.removeEventListener('abort', stop);
		stop();
	}
}

/** @returns the connection of each item, or why it has none */
function connectItems(
	context: IExecuteFunctions,
	accounts: Accounts<ReadAccount<BridgeAccount>>,
): Array<Result<Connection>> {
	const known = new Map<BridgeAccount, Map<string, Connection>>();
	return context.getInputData().map((_, itemIndex) =>
		readItem((): Result<Connection> => {
			const read = accounts.of(itemIndex);
			if (!read.ok) return read;
			const { account } = read.value;
			const authFrame: unknown = context.getNodeParameter('authFrame', itemIndex, '');
			const name = jsonText(authFrame) ?? '';
			const ofAccount = known.get(account) ?? new Map<string, Connection>();
			const connection = ofAccount.get(name) ?? { account, authFrame, itemIndexes: [] };
			connection.itemIndexes.push(itemIndex);
			known.set(account, ofAccount.set(name, connection));
			return ok(connection);
		}),
	);
}

/** The heartbeat is that of the first item that goes over the connection. */
async function setUp(
	context: IExecuteFunctions,
	{ account, authFrame, itemIndexes: [first = 0] }: Connection,
	redact: Redact,
): Promise<Result<BridgeSetup>> {
	const read = readItem(() => {
		const options: unknown = context.getNodeParameter('options', first, {});
		const { heartbeatFrame, heartbeatSeconds } = isJsonObject(options) ? options : {};
		return ok({ heartbeatFrame, heartbeatSeconds, idleTimeoutSeconds: 0 });
	});
	if (!read.ok) return read;
	const auth = { authMode: context.getNodeParameter('authMode', first), authFrame };
	return await setUpBridge(context, account, redact, auth, read.value);
}

const NOT_SENT: Failure = {
	kind: 'notSubmitted',
	message: 'Nothing was sent for this item, because another item failed first',
	advice: 'Run the node again with this item.',
};

/** Works on the items one after the other: frames of one connection have an order. */
export async function eachInTurn(
	context: IExecuteFunctions,
	{ itemIndexes, recall, ended }: OwnItems,
	work: (itemIndex: number) => Promise<Outcome>,
): Promise<Outcomes> {
	const outcomes = new Map<number, Outcome>();
	for (const itemIndex of itemIndexes) {
		const known = recall(itemIndex);
		// The run ends with the first failure, so nothing more is sent.
		const outcome = known ?? (ended.hasFailed ? fail(NOT_SENT) : await work(itemIndex));
		outcomes.set(itemIndex, outcome);
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
	const rounded = refuseRounded('Frame', value);
	if (rounded) return fail(rounded);
	const frame = typeof value === 'string' ? parseJson(value) : value;
	const text = typeof value === 'string' ? value.trim() : jsonText(value);
	if (isJsonObject(frame) && Object.keys(frame).length > 0 && text !== undefined) return ok({ frame, text });
	const whatItIs = !isJsonObject(frame)
		? 'not a JSON object'
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
