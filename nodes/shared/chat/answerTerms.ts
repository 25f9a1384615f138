import type { AnswerTerms } from '../answer/answerBuilder';
import type { ReasoningChoice } from '../answer/oddAnswer';
import type { MayThink } from '../answer/thinkTags';
import { member, objectsIn, type JsonObject } from '../text/json';
import { textOf, textOrNumber } from '../text/textOf';
import { reasoningModel } from './reasoning';

/** What the body of a question (§4.5) says about its answer. */
export function answerTerms(body: JsonObject): AnswerTerms {
	const calls = objectsIn(body.messages).flatMap(({ tool_calls: made }) => objectsIn(made));
	return {
		isOnly: (body.n ?? 1) === 1,
		mayThink: mayThink(body),
		callIds: new Set(calls.map(({ id }) => textOrNumber(id))),
	};
}

/** How a body sets the reasoning (§2.6), whether by the form or by "Extra Body". */
export function choiceIn({ enable_thinking: isOn, thinking }: JsonObject): ReasoningChoice {
	const type = member(thinking, 'type');
	if (isOn === true || type === 'enabled') return 'on';
	return isOn === false || type === 'disabled' ? 'off' : 'default';
}

function mayThink(body: JsonObject): MayThink {
	const choice = choiceIn(body);
	if (choice !== 'default') return choice === 'on' ? 'yes' : 'no';
	return reasoningModel(textOf(body.model))?.byDefault ?? 'maybe';
}
