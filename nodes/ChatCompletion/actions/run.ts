import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';
import pLimit from 'p-limit';

import { isStartedByChat } from '../../shared/run/startedBy';
import { deliverResults, hintFailed, otherAnswers, showHint } from '../../shared/run/deliver';
import { inRunFrame, type RunFrame } from '../../shared/run/frame';
import { openRetryMemory, requestFingerprints, type RetryMemory } from '../../shared/run/retryMemory';
import { reportTokens } from '../../shared/usage/tokenUsage';
import { isTool } from '../../shared/errors/nodeError';
import { fail, ok, type Failure, type Result } from '../../shared/errors/failure';
import { isJsonObject, type JsonObject } from '../../shared/text/json';
import { openChatStreams, type ChatStream } from '../../shared/answer/chatStream';
import { openPlatform } from '../../shared/platform/platform';
import { redactJson, type Redact } from '../../shared/text/redact';
import { workItem } from '../../shared/errors/expressionError';
import { openRetry } from '../../shared/retry/retry';
import { readPreviewSwitches, shownPreview, shownRequest } from '../../shared/form/previewRequest';
import { CHAT_PATH, createChatApi, type ChatCall, type CompleteChat } from '../api';
import { describeAnswer } from './deliver';
import { TokenBudget } from '../tokenBudget';
import { prepareQuestion } from './inputs';
import { NOT_IN_REQUEST, readRunOptions } from './options';

interface ChatRun extends RunFrame {
	readonly baseUrl: string;
	readonly complete: CompleteChat;
	readonly redact: Redact;
	readonly concurrency: number;
	readonly forChat: boolean;
	/** The answers that earlier tries of this node run received, so that they are not billed again on a retry. */
	readonly memory: RetryMemory;
	readonly fingerprintOf: (itemIndex: number) => string;
	readonly budget: TokenBudget;
}

/** Answers the input items concurrently and outputs the answers in the order of the items. */
export async function completeItems(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	return await inRunFrame(
		context,
		async (frame) => await openChatRun(context, frame),
		async (run) => [await answerAll(context, run)],
	);
}

async function openChatRun(context: IExecuteFunctions, frame: RunFrame): Promise<Result<ChatRun>> {
	const options = readRunOptions(context);
	if (!options.ok) return options;
	const platform = await openPlatform(context);
	if (!platform.ok) return platform;
	const { accountId, open, redact } = platform.value;
	const { baseUrl, busyTerms } = platform.value.account;
	const { concurrency, requestsPerSecond, tokenBudget } = options.value;
	const { clock, signal } = frame;
	return ok({
		...frame,
		baseUrl,
		complete: createChatApi({
			baseUrl,
			busyTerms,
			open,
			retry: openRetry(`chat ${accountId}`, { requestsPerSecond, concurrency }, { clock, signal }),
			clock,
			redact,
			signal,
		}),
		redact,
		concurrency,
		forChat: isStartedByChat(context),
		memory: openRetryMemory(context, 'flowChatRuns', 'answers'),
		fingerprintOf: requestFingerprints(context, NOT_IN_REQUEST),
		budget: new TokenBudget(tokenBudget),
	});
}

function rememberedAnswer({ memory, fingerprintOf }: ChatRun, itemIndex: number): JsonObject | undefined {
	const { answer } = memory.recall(itemIndex, fingerprintOf(itemIndex)) ?? {};
	return isJsonObject(answer) ? answer : undefined;
}

async function answerAll(context: IExecuteFunctions, run: ChatRun): Promise<INodeExecutionData[]> {
	const chatStreamOf = openChatStreams(context, run.redact);
	const limit = pLimit(run.concurrency);
	const switches = readPreviewSwitches(context);
	let hasFailed = false;
	countRemembered(context, run);
	const answers = await Promise.all(
		context.getInputData().map(async (_, itemIndex) => {
			const chatStream = chatStreamOf(itemIndex);
			const answer = await limit(async () => {
				const isPreview = switches[itemIndex] ?? ok(false);
				if (hasFailed || run.signal.aborted) return fail(NOT_ASKED);
				if (isPreview.ok && isPreview.value) return ok(await previewItem(context, run, itemIndex));
				const given = isPreview.ok ? await answerItem(context, run, itemIndex, chatStream) : isPreview;
				// No further item is sent. Answers in progress are paid for, so they are read to their end for a retry.
				if (!given.ok && !context.continueOnFail()) hasFailed = true;
				return given;
			});
			if (answer.ok) await chatStream.end();
			else await chatStream.fail(answer.failure.message);
			return answer;
		}),
	);
	if (answers.every(({ ok: isOk }) => isOk)) run.memory.clear();
	const items = deliverResults(context, answers, [otherAnswers(answers)]);
	hintFailed(context, answers);
	if (run.budget.hint) showHint(context, run.budget.hint);
	const warnings = answers.flatMap((answer) =>
		answer.ok && typeof answer.value.warning === 'string' ? [answer.value.warning] : [],
	);
	for (const warning of new Set(warnings)) showHint(context, warning);
	return items;
}

/** Counts the answers of earlier tries towards the budget of this run. */
function countRemembered(context: IExecuteFunctions, run: ChatRun): void {
	if (!run.budget.isSet) return;
	for (const itemIndex of context.getInputData().keys()) {
		const known = rememberedAnswer(run, itemIndex);
		if (known) run.budget.count(known.usage);
	}
}

async function answerItem(
	context: IExecuteFunctions,
	run: ChatRun,
	itemIndex: number,
	chatStream: ChatStream,
): Promise<Result<JsonObject>> {
	// An earlier try has already streamed this answer.
	const known = rememberedAnswer(run, itemIndex);
	if (known) return ok(known);
	const spent = run.budget.refusal();
	if (spent) return fail(spent);
	return await workItem(async () => {
		const question = await prepareQuestion(context, itemIndex);
		if (!question.ok) return question;
		const { body, options, ...form } = question.value;
		const answer = await run.complete({
			body,
			onPiece: pieceWriter(chatStream, options.streamReasoning),
			idleMs: options.idleMs,
			endByMs: run.clock.now() + options.timeoutMs,
			tries: options.attempts,
		});
		if (!answer.ok) {
			run.budget.countFailed(answer.failure);
			return answer;
		}
		run.budget.count(answer.value.usage);
		reportTokens(context, answer.value.usage);
		const asTool = isTool(context.getNode());
		const described = describeAnswer(answer.value, { ...form, forChat: run.forChat, asTool }, run.redact);
		if (!described.ok) return described;
		run.memory.keep(itemIndex, run.fingerprintOf(itemIndex), { answer: described.value });
		const { warning } = described.value;
		// Without any text, a streaming chat would say that streaming is switched off.
		if (!chatStream.hasBegun && typeof warning === 'string') await chatStream.warn(warning);
		return described;
	});
}

/** Streams the answer and, if wanted, the reasoning before it, which is quoted to set it apart. */
function pieceWriter(chatStream: ChatStream, streamReasoning: boolean): ChatCall['onPiece'] {
	let isThinking = false;
	return async ({ content, reasoning }) => {
		if (reasoning && streamReasoning) {
			const quoted = reasoning.replaceAll('\n', '\n> ');
			await chatStream.write(isThinking ? quoted : `> ${quoted}`);
			isThinking = true;
		}
		if (content) {
			await chatStream.write(isThinking ? `\n\n${content}` : content);
			isThinking = false;
		}
	};
}

/** The output instead of an answer: what would be sent for the item, or why nothing would be. */
async function previewItem(
	context: IExecuteFunctions,
	{ baseUrl, redact }: ChatRun,
	itemIndex: number,
): Promise<JsonObject> {
	const preview = await workItem<JsonObject>(async () => {
		const question = await prepareQuestion(context, itemIndex);
		if (!question.ok) return question;
		const body = redactJson(question.value.body, (text) => redact.known(withoutFile(text)));
		return ok(shownRequest(`${baseUrl}${CHAT_PATH}`, 'API key', body));
	});
	return shownPreview(preview);
}

/** Shows a file by its type and size, because its base64 text may be megabytes long. */
function withoutFile(text: string): string {
	const [head] = /^data:[^,]{0,200};base64,/i.exec(text) ?? [];
	return head ? `${head}<${Buffer.byteLength(text.slice(head.length), 'base64')} bytes>` : text;
}

const NOT_ASKED: Failure = {
	kind: 'cancelled',
	message: 'The question was not asked, because the run had ended',
	advice: '',
};
