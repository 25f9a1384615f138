import { adviceOnPath } from '../../credentials/baseUrl';
import type { Failure } from '../shared/errors/failure';
import type { ServiceError } from '../shared/answer/answerBody';
import { choiceIn } from '../shared/chat/answerTerms';
import { WANTS_REASONING } from '../shared/chat/refusal';
import type { FailedOutcome } from '../shared/http/outcome';
import {
	explainCall,
	isForCredit,
	isForKey,
	type CallAdvice,
	type CallFacts,
} from '../shared/platform/failures';
import { saysNoCredit } from '../shared/platform/envelope';
import type { JsonObject } from '../shared/text/json';
import { quote } from '../shared/text/redact';

const LESS = "Send less text or fewer images, or lower 'Max Tokens' in the node's options.";

/** The outcome of an error that came instead of an answer. The error may name a status other than the response's. */
export function outcomeOfError({ text, status }: ServiceError, httpStatus: number): FailedOutcome {
	if (status === 429 && !saysNoCredit(text))
		return { kind: 'busy', status: httpStatus, retryAfter: undefined, text };
	if (status !== undefined && (status === 408 || status >= 500)) {
		return { kind: 'unclear', status, text, inItsForm: true };
	}
	// Without a code, HTTP 404 for a missing model would be taken for a wrong base URL.
	return { kind: 'refused', status: status ?? httpStatus, code: status ?? null, text };
}

const OF_QUESTION: CallAdvice = {
	busy: "Lower 'Concurrency' under 'Cost and Speed', or run the workflow later.",
	rightful: 'Use a key from an account that is allowed to use this model.',
	check:
		"Compare the model's ID, the messages and the options of this node, and the Base URL in the credential, with what the platform says.",
};

/** Explains a failed call; messages about the key and the base URL are shared with the other interfaces. */
export function explainChat(outcome: FailedOutcome, facts: CallFacts, asked: JsonObject): Failure {
	const isOfQuestion =
		outcome.kind === 'refused' &&
		!isForKey(outcome) &&
		!isForCredit(outcome) &&
		outcome.status !== 403 &&
		(outcome.code !== null || outcome.status < 400);
	if (!isOfQuestion) {
		const failure = explainCall(outcome, facts, OF_QUESTION);
		// A server may report its own mistake for a question that it cannot answer.
		const isOwnWord = outcome.kind === 'unclear' && (outcome.status ?? 0) >= 500;
		const advice = isOwnWord ? adviceOn(quote(facts.redact, outcome.text), asked) : '';
		return advice ? { ...failure, advice } : failure;
	}
	const said = quote(facts.redact, outcome.text);
	return {
		kind: 'refused',
		message: `The platform refused the question: ${said}`,
		advice: adviceFor(outcome.status, said, facts.baseUrl, asked),
		// An error in an HTTP 200 response may have no status.
		details: outcome.status >= 400 ? { httpStatus: outcome.status } : {},
	};
}

/** Patterns for a platform's message, and the advice for it, by the body that was sent. The first that matches is used. */
const ADVICE: readonly (readonly [RegExp, string | ((asked: JsonObject) => string)])[] = [
	[
		// First, because the message names a property, whose name may match a later pattern, such as "thinking".
		/additionalProperties|\brequired\W+is required/i,
		'In each object of \'JSON Schema\', list every property under "required" and set "additionalProperties": false. Or keep the schema as it is and wrap it: { "name": "answer", "strict": false, "schema": … }.',
	],
	[
		/stream_options|include_usage/i,
		"Turn 'Include Usage' off under 'Cost and Speed': this deployment does not support it.",
	],
	[
		// Not a stream that failed on the way, as in "stream error: stream ID 7".
		/\b(?:stream|streaming)\b(?!\W*(?:error|id \d|closed|ended|disconnect|reset|timeout|timed|idle|interrupted))/i,
		({ stream }) => `Turn 'Stream' ${stream === true ? 'off' : 'on'}.`,
	],
	[
		WANTS_REASONING,
		"Set 'Reasoning' to Off, or use 'Messages (JSON)', with the reasoning of each answer as \"reasoning_content\" of its message.",
	],
	[
		// Not the name of a model, such as "family-8b-thinking".
		/(?<![-\w])(?:enable_)?(?:thinking|reasoning)/i,
		(asked) =>
			choiceIn(asked) === 'default'
				? "Set 'Reasoning' to On or Off, or choose another model."
				: "Set 'Reasoning' to Default, or choose the switch of the model under 'Reasoning Control'.",
	],
	[
		/\bsupport (?:tool|image|function|vision)|\bfound that support\b/i,
		'Choose a model that can do what the question asks for, such as calling tools or reading images.',
	],
	[
		/response_format|json_schema/i,
		"Set 'Response Format' to Text and ask for JSON in the message, or choose another model.",
	],
	[
		// Not the name alone, which servers also use to say that the number is too large.
		/\buse\W+max_completion_tokens/i,
		"Remove the option 'Max Tokens', and set \"max_completion_tokens\" under 'Extra Body'.",
	],
	// Not "context deadline exceeded", with which gateways report a timeout of their own.
	[/context(?! (?:deadline|cancel))|too (?:long|large)|maximum|max_\w*tokens|input length/i, LESS],
];

/** Matches messages that say, in one clause, that there is no such model; others say what a known one did. */
const NO_SUCH_MODEL = [
	/\b(no such|unknown|invalid|unsupported|not found|not a valid|access to)\b[^.:;!?,]{0,24}\bmodel/i,
	/model([^.:;!?,]|[.:;!?,](?!\s)){0,80}(\b|_)(not[ _](be )?(found|exists?|supported|valid)|unknown(?! error)|unsupported|invalid)/i,
	/model([^.:;!?,]|[.:;!?,](?!\s)){0,80}n't exist/i,
];

function adviceOn(said: string, asked: JsonObject): string {
	const advice = ADVICE.find(([pattern]) => pattern.test(said))?.[1] ?? '';
	return typeof advice === 'string' ? advice : advice(asked);
}

function adviceFor(status: number, said: string, baseUrl: string, asked: JsonObject): string {
	const advice = adviceOn(said, asked);
	if (advice) return advice;
	if (status === 413) return LESS;
	if (status === 404 && !/model/i.test(said)) {
		return `${adviceOnPath(baseUrl)} Also check the model's ID.`;
	}
	if (status === 404 || NO_SUCH_MODEL.some((pattern) => pattern.test(said))) {
		return "Check the model's ID: it must match the platform's console, including upper and lower case.";
	}
	return 'Compare the messages and the options of this node with what the platform says.';
}
