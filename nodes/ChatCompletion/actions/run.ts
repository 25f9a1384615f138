import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';
import pLimit from 'p-limit';

import { mapAccounts, type Accounts } from '../../shared/platform/accounts';
import { isStartedByChat } from '../../shared/run/chatTrigger';
import { systemClock } from '../../shared/run/clock';
import { toErrorItem, toNodeError } from '../../shared/errors/nodeError';
import { fail, ok, type Failure, type Result } from '../../shared/errors/failure';
import { failRun } from '../../shared/run/failRun';
import type { JsonObject } from '../../shared/text/json';
import { createChatStreams, type ChatStream } from '../../shared/run/chatStream';
import { openPlatforms, type Platform } from '../../shared/platform/platform';
import type { Redact } from '../../shared/text/redact';
import { explainExpressionError } from '../../shared/errors/expressionError';
import { isTool } from '../../shared/run/toolMode';
import { createRetry } from '../../shared/http/retry';
import { createIdleTimeouts } from '../../shared/http/idleTimeout';
import { createRateLimiter } from '../../shared/http/rateLimiter';
import { createChatApi, type CompleteChat } from '../api';
import { describeAnswer } from './deliver';
import type { ChatPiece } from '../response';
import { openAnswerMemory, type AnswerMemory } from './answerMemory';
import { prepareQuestion, type PreparedQuestion } from './inputs';
import { readRunOptions, type RunOptions } from './options';

/** How late an idle timeout may strike. */
const IDLE_CHECK_MS = 500;

/** What all items of a run share. */
interface ChatRun {
	/** How each item's account asks: with a rate limit of its own, for limits belong to a key. */
	readonly completers: Accounts<CompleteChat>;
	readonly redact: Redact;
	readonly forChat: boolean;
	readonly asTool: boolean;
	readonly ending: AbortController;
	readonly memory: AnswerMemory;
}

/** Answers all input items, beside each other and in their order (§4.5). */
export async function completeItems(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	const count = context.getInputData().length;
	if (count === 0) return [[]];
	const options = readRunOptions(context);
	if (!options.ok) return failRun(context, options.failure);
	const platforms = await openPlatforms(context);
	if (!platforms.ok) return failRun(context, platforms.failure);
	const { redact, refused } = platforms.value;
	if (refused && !context.continueOnFail()) {
		throw toNodeError(context.getNode(), refused.failure, refused.itemIndex);
	}

	const ending = new AbortController();
	const end = (): void => {
		ending.abort();
	};
	const cancelSignal = context.getExecutionCancelSignal();
	cancelSignal?.addEventListener('abort', end, { once: true });
	if (cancelSignal?.aborted) end();
	try {
		const run: ChatRun = {
			completers: mapAccounts(platforms.value, (platform) =>
				openChat(platform, redact, options.value, ending.signal),
			),
			redact,
			forChat: isStartedByChat(context),
			asTool: isTool(context),
			ending,
			memory: openAnswerMemory(context),
		};
		return [await answerAll(context, run, options.value.concurrency, count)];
	} finally {
		cancelSignal?.removeEventListener('abort', end);
		end();
	}
}

function openChat(
	{ account, open }: Platform,
	redact: Redact,
	{ requestsPerSecond, concurrency }: RunOptions,
	signal: AbortSignal,
): CompleteChat {
	const clock = systemClock;
	const { baseUrl } = account;
	return createChatApi({
		baseUrl,
		open,
		retry: createRetry({
			rateLimiter: createRateLimiter({ requestsPerSecond, concurrency }, clock, signal),
			clock,
			random: Math.random,
			signal,
		}),
		idleTimeouts: createIdleTimeouts(clock, IDLE_CHECK_MS, signal),
		clock,
		redact,
		signal,
	});
}

async function answerAll(
	context: IExecuteFunctions,
	run: ChatRun,
	concurrency: number,
	count: number,
): Promise<INodeExecutionData[]> {
	// A tool's text goes to the agent, which speaks for itself.
	const streams = context.isStreaming() && !run.asTool;
	const chatStreamOf = createChatStreams(
		async (kind, itemIndex, text) => context.sendChunk(kind, itemIndex, text),
		count,
		run.redact,
	);
	const limit = pLimit(concurrency);
	const goesOn = context.continueOnFail();
	let hasFailed = false;
	const answers = await Promise.all(
		Array.from({ length: count }, async (_, itemIndex) => {
			const chatStream = streams ? chatStreamOf(itemIndex) : undefined;
			const answer = await limit(async () => {
				if (hasFailed) return fail(stopped());
				const given = await answerItem(context, run, itemIndex, chatStream);
				// Nothing more is asked. What runs is paid for already, so it is heard to its end: a retry then has it.
				if (!given.ok && !goesOn) hasFailed = true;
				return given;
			});
			if (answer.ok) await chatStream?.end();
			else await chatStream?.fail(answer.failure.message);
			return answer;
		}),
	);
	if (answers.every(({ ok: isOk }) => isOk)) run.memory.clear();
	if (!goesOn) throwFirst(context, answers, run.asTool);
	remark(context, answers);
	return answers.map((answer, item) =>
		answer.ok ? { json: answer.value, pairedItem: { item } } : toErrorItem(answer.failure, item, run.asTool),
	);
}

async function answerItem(
	context: IExecuteFunctions,
	run: ChatRun,
	itemIndex: number,
	chatStream: ChatStream | undefined,
): Promise<Result<JsonObject>> {
	if (run.ending.signal.aborted) return fail(stopped());
	// Whoever listens has heard it when it was new.
	const known = run.memory.recall(itemIndex);
	if (known) return ok(known);
	const complete = run.completers.of(itemIndex);
	if (!complete.ok) return complete;
	try {
		const question = await prepareQuestion(context, itemIndex);
		if (!question.ok) return question;
		const answer = await ask(run, complete.value, question.value, chatStream);
		if (answer.ok) run.memory.keep(itemIndex, answer.value);
		return answer;
	} catch (error) {
		// n8n throws where an expression cannot be evaluated: that is this item's failure.
		return fail(explainExpressionError(error));
	}
}

async function ask(
	run: ChatRun,
	complete: CompleteChat,
	question: PreparedQuestion,
	chatStream: ChatStream | undefined,
): Promise<Result<JsonObject>> {
	const { body, options, ...form } = question;
	const answer = await complete({
		body,
		onPiece: speaker(chatStream, options.streamReasoning),
		idleMs: options.idleMs,
		endByMs: systemClock.now() + options.timeoutMs,
		tries: options.attempts,
	});
	if (!answer.ok) return answer;
	const { forChat, asTool, redact } = run;
	const described = describeAnswer(answer.value, { ...form, forChat, asTool }, redact);
	return described.ok ? ok(described.value) : described;
}

/** Says the answer to whoever listens, and the thinking before it where that is wanted. */
function speaker(
	chatStream: ChatStream | undefined,
	streamReasoning: boolean,
): (piece: ChatPiece) => Promise<void> {
	let isThinking = false;
	return async ({ content, reasoning }) => {
		if (!chatStream) return;
		if (reasoning && streamReasoning) {
			isThinking = true;
			await chatStream.write(reasoning);
		}
		if (content) {
			await chatStream.write(isThinking ? `\n\n${content}` : content);
			isThinking = false;
		}
	};
}

function stopped(): Failure {
	return {
		kind: 'cancelled',
		message: 'The question was not asked, because the run had ended',
		advice: '',
	};
}

function throwFirst(
	context: IExecuteFunctions,
	answers: readonly Result<JsonObject>[],
	asTool: boolean,
): void {
	const failed = answers.flatMap((answer, itemIndex) =>
		answer.ok ? [] : [{ failure: answer.failure, itemIndex }],
	);
	const first = failed.find(({ failure }) => failure.kind !== 'cancelled') ?? failed[0];
	if (!first) return;
	const { failure, itemIndex } = first;
	const answered = answers.length - failed.length;
	const lost =
		answered > 0
			? ` ${answered} other item(s) were answered: a retry of this execution does not ask for them again.`
			: '';
	const advice = `${failure.advice}${lost}`.trim();
	const message = asTool ? [failure.message, advice].filter(Boolean).join('. ') : failure.message;
	throw toNodeError(context.getNode(), { ...failure, message, advice }, itemIndex);
}

/** What the operator should see beside the output: how many failed, and what is odd about the answers. */
function remark(context: IExecuteFunctions, answers: readonly Result<JsonObject>[]): void {
	const failed = answers.filter(({ ok: isOk }) => !isOk).length;
	const warnings = answers.flatMap((answer) =>
		answer.ok && typeof answer.value.warning === 'string' ? [answer.value.warning] : [],
	);
	const messages = [
		...(failed > 0 ? [`${answers.length - failed} answered, ${failed} failed.`] : []),
		...new Set(warnings),
	];
	for (const message of messages) {
		context.addExecutionHints({ message, type: 'warning', location: 'outputPane' });
	}
}
