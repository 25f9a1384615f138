import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';
import pLimit from 'p-limit';

import { readAccounts, type Accounts, type ReadAccount } from '../../shared/platform/accounts';
import { fail, failInput, ok, type Failure, type Result } from '../../shared/errors/failure';
import { isJsonObject, jsonText } from '../../shared/text/json';
import { refuseRounded } from '../../shared/form/pastedJson';
import { redactor, type Redact } from '../../shared/text/redact';
import { readItem } from '../../shared/errors/expressionError';
import { deliverResults } from '../../shared/run/deliver';
import { inRunFrame, type RunFrame } from '../../shared/run/frame';
import type { Frame } from '../frames';
import { readBridgeAccount, type BridgeAccount } from '../account';
import { RequestSession } from '../connection/requestSession';
import type { Bridge } from '../connection/failures';
import { CREDENTIAL, parseFrame, openBridgeOf } from './openBridge';
import { openFrameMemory } from './frameMemory';

type ItemOutcome = Result<IDataObject>;

/** Items with the same account and authentication frame, which share a connection. */
interface Connection {
	readonly account: BridgeAccount;
	readonly authFrame: unknown;
	/** In ascending order; at least one. */
	readonly itemIndexes: number[];
}

interface BridgeRun extends RunFrame {
	readonly clients: { readonly of: (itemIndex: number) => Result<Bridge> };
	readonly setups: ReadonlyMap<Connection, Result<Bridge>>;
}

/** Each item may have its own account, but neither n8n nor the platform could handle thousands of connections. */
const CONNECTIONS_AT_ONCE = 32;

type WorkOnItem = (session: RequestSession, itemIndex: number) => Promise<ItemOutcome>;

/**
 * The shared flow of both operations. Items that share a connection run in sequence; the connections are used in
 * parallel.
 */
export async function inSession(
	context: IExecuteFunctions,
	work: WorkOnItem,
): Promise<INodeExecutionData[][]> {
	return await inRunFrame(
		context,
		async (frame) => await openBridgeRun(context, frame),
		async (run) => await workOnAll(context, run, work),
	);
}

async function workOnAll(
	context: IExecuteFunctions,
	{ setups, clients, signal }: BridgeRun,
	work: WorkOnItem,
): Promise<INodeExecutionData[][]> {
	const memory = openFrameMemory(context);
	const outcomes = context.getInputData().map((_, itemIndex): ItemOutcome => {
		const setup = clients.of(itemIndex);
		return setup.ok ? fail(NOT_SENT) : setup;
	});
	let hasFailed = false;
	const converse = async (setup: Bridge, itemIndexes: readonly number[]): Promise<void> => {
		const session = new RequestSession(setup, signal);
		try {
			for (const itemIndex of itemIndexes) {
				const known = memory.recall(itemIndex);
				// Without Continue On Fail, the first failure ends the run, so nothing more is sent.
				const outcome = known ?? (hasFailed ? fail(NOT_SENT) : await work(session, itemIndex));
				outcomes[itemIndex] = outcome;
				if (!outcome.ok && !context.continueOnFail()) hasFailed = true;
			}
		} finally {
			await session.close();
		}
		for (const [itemIndex, failure] of session.losses()) outcomes[itemIndex] = fail(failure);
	};
	const limit = pLimit(CONNECTIONS_AT_ONCE);
	const conversations = [...setups].map(async ([{ itemIndexes }, setup]) => {
		if (setup.ok) await limit(async () => await converse(setup.value, itemIndexes));
	});
	// Waits for all conversations, even after a failure, because each one closes its own connection.
	await Promise.allSettled(conversations);
	await Promise.all(conversations);
	memory.keep(outcomes);
	return [deliverResults(context, outcomes)];
}

/** Reads all accounts and connection settings before anything is opened. */
async function openBridgeRun(context: IExecuteFunctions, frame: RunFrame): Promise<Result<BridgeRun>> {
	const accounts = await readAccounts(context, CREDENTIAL, readBridgeAccount);
	if (!accounts.ok) return accounts;
	const redact = redactor(accounts.value.all.flatMap(({ account }) => account.secrets));
	const connectionOf = connectItems(context, accounts.value);
	const connections = new Set(connectionOf.flatMap((one) => (one.ok ? [one.value] : [])));
	const limit = pLimit(CONNECTIONS_AT_ONCE);
	const opening = [...connections].map(
		async (one) => await limit(async () => [one, await setUp(context, one, redact)] as const),
	);
	const setups = new Map(await Promise.all(opening));
	const setupOf = connectionOf.map((one) => (one.ok ? (setups.get(one.value) ?? fail(NOT_SENT)) : one));
	// A failure shared by all items concerns the node, not one item.
	const [first] = setupOf;
	if (first?.ok === false && setups.size === 1 && setupOf.every((one) => one === first)) return first;
	return ok({ ...frame, setups, clients: { of: (itemIndex) => setupOf[itemIndex] ?? fail(NOT_SENT) } });
}

/** @returns the connection of each item, or why it has none */
function connectItems(
	context: IExecuteFunctions,
	accounts: Accounts<ReadAccount<BridgeAccount>>,
): Array<Result<Connection>> {
	const known = new Map<string, Connection>();
	return context.getInputData().map((_, itemIndex) =>
		readItem((): Result<Connection> => {
			const read = accounts.of(itemIndex);
			if (!read.ok) return read;
			const authFrame: unknown = context.getNodeParameter('authFrame', itemIndex, '');
			const name = `${accounts.all.indexOf(read.value)} ${jsonText(authFrame) ?? ''}`;
			const connection = known.get(name) ?? { account: read.value.account, authFrame, itemIndexes: [] };
			connection.itemIndexes.push(itemIndex);
			known.set(name, connection);
			return ok(connection);
		}),
	);
}

/** Prepares a connection, with the heartbeat of its first item. */
async function setUp(
	context: IExecuteFunctions,
	{ account, authFrame, itemIndexes: [first = 0] }: Connection,
	redact: Redact,
): Promise<Result<Bridge>> {
	const read = readItem(() => {
		const options: unknown = context.getNodeParameter('options', first, {});
		return ok({ ...(isJsonObject(options) && options), idleTimeoutSeconds: 0 });
	});
	if (!read.ok) return read;
	const authMode: unknown = context.getNodeParameter('authMode', first);
	return await openBridgeOf(context, account, redact, { authMode, authFrame, options: read.value });
}

const NOT_SENT: Failure = {
	kind: 'notSubmitted',
	message: 'Nothing was sent for this item, because another item failed first',
	advice: 'Run the node again with this item.',
};

export interface OutgoingFrame {
	readonly frame: Frame;
	readonly text: string;
}

/** @param value the field "Frame": pasted JSON, or an object from an expression */
export function readFrame(value: unknown): Result<OutgoingFrame> {
	const rounded = refuseRounded('Frame', value);
	if (rounded) return fail(rounded);
	const { frame, text } = parseFrame(value);
	if (isJsonObject(frame) && Object.keys(frame).length > 0 && text !== undefined) return ok({ frame, text });
	return failInput(
		`"Frame" is ${whyNoFrame(frame)}`,
		'Enter what your platform expects, e.g. {"type": "message", "text": "Hello"}. Switch the field to Expression to use fields of the item in it.',
	);
}

function whyNoFrame(frame: unknown): string {
	if (!isJsonObject(frame)) return 'not a JSON object';
	return Object.keys(frame).length === 0 ? 'empty' : 'nested too deeply';
}
