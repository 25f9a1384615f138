// The graph and the authentication that LangGraph's server loads by the path of this file.
import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage, AIMessageChunk } from '@langchain/core/messages';
import { ChatGenerationChunk } from '@langchain/core/outputs';
import {
	Annotation,
	END,
	interrupt,
	MessagesAnnotation,
	Send,
	START,
	StateGraph,
} from '@langchain/langgraph';
import { Auth, HTTPException } from '@langchain/langgraph-sdk/auth';
import { answerAfter, answerTo, asksOf, refusalOf } from './script.mjs';

const textOf = (message) => String(message?.content ?? '');
const humans = (messages) => messages.filter((message) => message.getType() === 'human');

class ScriptModel extends BaseChatModel {
	constructor(pieces) {
		super({});
		this.pieces = pieces;
	}
	_llmType() {
		return 'script';
	}
	async *_streamResponseChunks(_messages, _options, manager) {
		for await (const text of this.pieces) {
			const chunk = new ChatGenerationChunk({ text, message: new AIMessageChunk({ content: text }) });
			yield chunk;
			await manager?.handleLLMNewToken(text, undefined, undefined, undefined, undefined, { chunk });
		}
	}
	async _generate(messages, options, manager) {
		let text = '';
		for await (const chunk of this._streamResponseChunks(messages, options, manager)) text += chunk.text;
		return { generations: [{ text, message: new AIMessage(text) }] };
	}
}

const State = Annotation.Root({
	...MessagesAnnotation.spec,
	results: Annotation({
		reducer: (old, added) => (added === null ? [] : [...old, ...added]),
		default: () => [],
	}),
});

async function answer({ messages, results }) {
	const said = humans(messages);
	const pieces = results.length > 0 ? answerAfter(results) : answerTo(textOf(said.at(-1)), said.length);
	return { messages: [await new ScriptModel(pieces).invoke(messages)], results: null };
}

function approve({ args }) {
	const decision = interrupt({
		action_requests: [{ name: 'pay', args }],
		review_configs: [{ action_name: 'pay', allowed_decisions: ['approve', 'reject'] }],
	});
	return { results: [decision] };
}

export const graph = new StateGraph(State)
	.addNode('answer', answer)
	.addNode('approve', approve)
	.addConditionalEdges(START, ({ messages }) => {
		const asks = asksOf(textOf(humans(messages).at(-1)));
		return asks.length > 0 ? asks.map((args) => new Send('approve', { args })) : 'answer';
	})
	.addEdge('approve', 'answer')
	.addEdge('answer', END)
	.compile();

export const auth = new Auth().authenticate((request) => {
	const status = refusalOf(request.headers.get('authorization'));
	if (status)
		throw new HTTPException(status, { message: status === 429 ? 'Too many requests' : 'Unauthorized' });
	return 'n8n';
});
