import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';
import pLimit from 'p-limit';

import { failedItems, throwFirst } from '../../shared/errors/nodeError';
import { readRunAccount } from '../../shared/platform/runAccount';
import { fail, failInput, ok, type Failure, type Result } from '../../shared/errors/failure';
import { isJsonObject, jsonText } from '../../shared/text/json';
import { refuseRounded } from '../../shared/form/pastedJson';
import { redactor } from '../../shared/text/redact';
import { readItem } from '../../shared/errors/expressionError';
import { deliverResults, showHint } from '../../shared/run/deliver';
import { inRunFrame, type RunFrame } from '../../shared/run/frame';
import { openRetryMemory, requestFingerprints } from '../../shared/run/retryMemory';
import type { Frame } from '../frames';
import { readBridgeAccount } from '../account';
import { RequestSession, SENT_BUT } from '../connection/requestSession';
import type { Bridge } from '../connection/failures';
import { CREDENTIAL, parseFrame, openBridgeOf } from './openBridge';
import { DEFAULT_AUTH_FRAME } from './fields.bridge';

type ItemOutcome = Result<IDataObject>;

interface BridgeRun extends RunFrame {
	/** The bridge of each item. Items with the same authentication frame share a bridge, and then the same result. */
	readonly bridges: ReadonlyArray<Result<Bridge>>;
}

/** Each item may have its own frame, but neither n8n nor the platform could handle thousands of connections. */
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
	{ bridges, signal }: BridgeRun,
	work: WorkOnItem,
): Promise<INodeExecutionData[][]> {
	// Without Continue On Fail, if one item has no bridge, nothing is sent for the others either.
	throwFirst(context, failedItems(bridges));
	const memory = openFrameMemory(context);
	const outcomes = bridges.map((bridge): ItemOutcome => (bridge.ok ? fail(NOT_SENT) : bridge));
	let hasFailed = false;
	let late = 0;
	const converse = async (bridge: Bridge, itemIndexes: readonly number[]): Promise<void> => {
		const session = new RequestSession(bridge, signal);
		try {
			for (const itemIndex of itemIndexes) {
				const known = memory.recall(itemIndex);
				// Without Continue On Fail, the first failure ends the run, so nothing more is sent.
				const outcome = known ?? (hasFailed ? fail(NOT_SENT) : await work(session, itemIndex));
				outcomes[itemIndex] = outcome;
				if (!outcome.ok && !context.continueOnFail()) hasFailed = true;
			}
		} finally {
			await session.close(context.getMode() === 'manual');
			late += session.late;
		}
		for (const [itemIndex, failure] of session.losses()) outcomes[itemIndex] = fail(failure);
	};
	const limit = pLimit(CONNECTIONS_AT_ONCE);
	const itemsOf = Map.groupBy(bridges.keys(), (itemIndex) => bridges[itemIndex]);
	const conversations = [...itemsOf].map(async ([bridge, itemIndexes]) => {
		if (bridge?.ok) await limit(async () => await converse(bridge.value, itemIndexes));
	});
	// Waits for all conversations, even after a failure, because each one closes its own connection.
	await Promise.allSettled(conversations);
	await Promise.all(conversations);
	memory.keep(outcomes);
	if (late > 0) tellLate(context, late);
	return [deliverResults(context, outcomes)];
}

/** Says how many messages are in no item, because the reply they belong to was over. */
function tellLate(context: IExecuteFunctions, late: number): void {
	const said = `${late} message(s) arrived too late for the reply they belong to, and were dropped`;
	context.logger.warn(`Agent Bridge "${context.getNode().name}": ${said}`);
	showHint(
		context,
		`${said}. If a reply can consist of several messages, set 'Reply Is Complete' to 'After Silence'; if replies are slow, raise 'Timeout (Seconds)'.`,
	);
}

/** Reads the account and all connection settings before anything is opened. */
async function openBridgeRun(context: IExecuteFunctions, frame: RunFrame): Promise<Result<BridgeRun>> {
	const read = await readRunAccount(context, CREDENTIAL, readBridgeAccount);
	if (!read.ok) return read;
	const { account } = read.value;
	const redact = redactor(account.secrets);
	const opened = new Map<string, Result<Bridge>>();
	const openFor = async (itemIndex: number): Promise<Result<Bridge>> => {
		const auth = readItem(() => ok(readAuth(context, itemIndex)));
		if (!auth.ok) return auth;
		const name = jsonText(auth.value) ?? '';
		const known = opened.get(name);
		if (known) return known;
		const form = readForm(context, itemIndex, auth.value);
		const bridge = form.ok ? await openBridgeOf(context, account, redact, form.value) : form;
		opened.set(name, bridge);
		return bridge;
	};
	const bridges: Array<Result<Bridge>> = [];
	for (const itemIndex of context.getInputData().keys()) bridges.push(await openFor(itemIndex));
	// A failure shared by all items concerns the node, not one item.
	const [first] = bridges;
	if (first?.ok === false && opened.size === 1 && bridges.every((one) => one === first)) return first;
	return ok({ ...frame, bridges });
}

/** How an item's connection authenticates; items that differ in this have connections of their own. */
function readAuth(context: IExecuteFunctions, itemIndex: number) {
	const authMode: unknown = context.getNodeParameter('options.authMode', itemIndex, '');
	const authFrame: unknown = context.getNodeParameter('options.authFrame', itemIndex, DEFAULT_AUTH_FRAME);
	return { authMode, authFrame };
}

/**
 * The connection fields, with the heartbeat of the first item that uses the connection. Its other options are its own:
 * a mistake in one of them must not fail all items.
 */
function readForm(context: IExecuteFunctions, itemIndex: number, auth: ReturnType<typeof readAuth>) {
	return readItem(() => {
		const heartbeatFrame: unknown = context.getNodeParameter('options.heartbeatFrame', itemIndex, '');
		const heartbeatSeconds: unknown = context.getNodeParameter('options.heartbeatSeconds', itemIndex, '');
		const { authMode } = auth;
		return ok({ ...auth, options: { authMode, heartbeatFrame, heartbeatSeconds, idleTimeoutSeconds: 0 } });
	});
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
		`'Frame' is ${whyNoFrame(frame)}`,
		'Enter what your platform expects, e.g. {"type": "message", "text": "Hello"}. Switch the field to Expression to use fields of the item in it.',
	);
}

function whyNoFrame(frame: unknown): string {
	if (!isJsonObject(frame)) return 'not a JSON object';
	return Object.keys(frame).length === 0 ? 'empty' : 'nested too deeply';
}

/** The outcomes of frames that earlier tries of this node run sent. A retry sends only the other frames. */
function openFrameMemory(context: IExecuteFunctions) {
	const memory = openRetryMemory(context, 'flowBridgeRuns', 'frames');
	const fingerprintOf = requestFingerprints(context, [
		'timeoutSeconds',
		'replyComplete',
		'silenceMs',
		'heartbeatFrame',
		'heartbeatSeconds',
	]);
	return {
		/** @returns `undefined` if the item's frame should be sent */
		recall: (itemIndex: number): Result<IDataObject> | undefined => {
			const { json, unclear, details } = memory.recall(itemIndex, fingerprintOf(itemIndex)) ?? {};
			if (isJsonObject(json)) return ok(json);
			if (typeof unclear !== 'string') return undefined;
			const known = isJsonObject(details) && { details };
			return fail({ kind: 'unclear', message: unclear, advice: SENT_BUT, ...known });
		},
		/** @param outcomes of this try, including those that were recalled */
		keep: (outcomes: ReadonlyArray<Result<IDataObject>>): void => {
			memory.clear();
			if (outcomes.every(({ ok: isOk }) => isOk)) return;
			for (const [itemIndex, outcome] of outcomes.entries()) {
				const entry = entryOf(outcome);
				if (entry) memory.keep(itemIndex, fingerprintOf(itemIndex), entry);
			}
		},
	};
}

function entryOf(outcome: Result<IDataObject>): IDataObject | undefined {
	if (outcome.ok) return { json: outcome.value };
	const { message, details } = outcome.failure;
	return mayHaveArrived(outcome.failure) ? { unclear: message, ...(details && { details }) } : undefined;
}

function mayHaveArrived({ kind, details }: Failure): boolean {
	if (kind === 'unclear' || kind === 'timedOut') return true;
	// The run was stopped while waiting for the reply. Frames are listed only if the item's own frame was sent.
	return kind === 'cancelled' && details?.collected !== undefined;
}
