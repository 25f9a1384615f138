import type { INodeParameters } from 'n8n-workflow';
import type { ServerResponse } from 'node:http';

import type { ToolCall } from '../../../nodes/shared/answer/toolCalls';
import type { JsonObject } from '../../../nodes/shared/text/json';
import { sayings, sharedStage } from '../harness/stage';
import { openChatStage } from './chat.fixture';
import { openScriptedChat, writePieces } from './scriptedServer';

/* Tools as rows: what is sent to the model, and how a second question answers the tool calls of the first. */

const stage = sharedStage(openChatStage);

const SCHEMA = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };

function tools(...names: string[]): INodeParameters {
	return {
		tool: names.map((name) => ({
			name,
			description: `Tells the ${name}`,
			parameters: JSON.stringify(SCHEMA),
		})),
	};
}

const bodies = () => stage.platform.books().chats.map(({ body }) => body);

test.each<[INodeParameters, unknown]>([
	[{}, undefined],
	[
		{ toolChoice: 'tool', toolToCall: 'time' },
		{ type: 'function', function: { name: 'time' } },
	],
])('sends rows and tool choice: %j', async (choice, sent) => {
	const run = await stage.run(sayings('hello'), {
		tools: tools('weather', 'time'),
		options: choice,
	});
	expect(run.error).toBeUndefined();
	const [body] = bodies();
	expect(body?.tools).toEqual(
		['weather', 'time'].map((name) => ({
			type: 'function',
			function: { name, description: `Tells the ${name}`, parameters: SCHEMA },
		})),
	);
	expect(body?.tool_choice).toEqual(sent);
});

test.each(['tools', 'tool_choice'])(
	'refuses "%s" in \'Extra Body\' if rows or an option set it',
	async (name) => {
		const run = await stage.run(sayings('hello'), {
			tools: tools('weather'),
			options: { toolChoice: 'required', extraBody: JSON.stringify({ [name]: 'x' }) },
		});
		expect(run.error?.message).toContain(`'Extra Body' sets "${name}"`);
		expect(stage.platform.books().requests.chat).toBe(0);
	},
);

const ANSWERING: INodeParameters = {
	message: [
		{ role: 'user', content: '={{ $json.say }}' },
		{ role: 'assistant', content: '', toolCalls: '={{ $json.toolCalls }}' },
		{ role: 'tool', toolCallId: '={{ $json.ids }}', content: '={{ $json.results }}' },
	],
};

test('a second question answers the tool calls of the first', async () => {
	const say = '[tool: weather {"city":"Oslo"}] [tool: time {"city":"Rome"}] What now? [answer: So: {result}]';
	const first = await stage.run(sayings(say), { tools: tools('weather', 'time') });
	const { toolCalls } = first.jsons()[0] ?? {};
	expect(toolCalls).toMatchObject([
		{ name: 'weather', arguments: { city: 'Oslo' } },
		{ name: 'time', arguments: { city: 'Rome' } },
	]);
	const ids = Array.isArray(toolCalls) ? toolCalls.map((call) => Object(call).id as string) : [];

	const json = { say, toolCalls: toolCalls ?? [], ids, results: [{ degrees: 4 }, 'noon'] };
	const second = await stage.run([{ json }], { messages: ANSWERING, tools: tools('weather', 'time') });
	expect(second.jsons()[0]).toMatchObject({ content: 'So: {"degrees":4}; noon' });
	expect(bodies().at(-1)?.messages).toEqual([
		{ role: 'user', content: say },
		{
			role: 'assistant',
			content: '',
			tool_calls: [
				{ id: ids[0], type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } },
				{ id: ids[1], type: 'function', function: { name: 'time', arguments: '{"city":"Rome"}' } },
			],
		},
		{ role: 'tool', tool_call_id: ids[0], content: '{"degrees":4}' },
		{ role: 'tool', tool_call_id: ids[1], content: 'noon' },
	]);
});

const CALL = { id: 'c1', name: 'weather', arguments: {} };

test.each([
	[{ toolCalls: [CALL], ids: 'c2', results: 'x' }, /^A tool message answers the call "c2"/],
	[{ toolCalls: [CALL], ids: 'c1' }, /^Message 3 \(tool\) has no result for the call "c1"$/],
])('refuses %j before the call and names the row', async (given, message) => {
	const json = { say: 'x', ...given };
	const run = await stage.run([{ json }], { messages: ANSWERING });
	expect(run.error?.message).toMatch(message);
	expect(stage.platform.books().requests.chat).toBe(0);
});

test('omits the rows if the conversation has not called a tool yet', async () => {
	const json = { say: '[answer: yes]', toolCalls: [], ids: [], results: [] };
	const run = await stage.run([{ json }], { messages: ANSWERING });
	expect(run.jsons()[0]).toMatchObject({ content: 'yes' });
	expect(bodies()[0]?.messages).toEqual([{ role: 'user', content: '[answer: yes]' }]);
});

describe('tool calls of streams', () => {
	const chat = sharedStage(openScriptedChat);

	/** An answer that streams each call in three pieces, which belong together by index alone. */
	async function stream(response: ServerResponse, ids: ReadonlyArray<string | undefined>): Promise<void> {
		const begun = ids.map((id, index) => ({ index, ...(id && { id }), function: { name: `tool_${index}` } }));
		const ends = ['{"n":', '1}'].flatMap((text) =>
			ids.map((_, index) => ({ index, function: { arguments: text } })),
		);
		const deltas = [...begun, ...ends].map((call) => ({ tool_calls: [call] }));
		const choices = [
			...deltas.map((delta) => ({ index: 0, delta })),
			{ index: 0, delta: {}, finish_reason: 'tool_calls' },
		];
		const events = choices.map((choice) => `data: ${JSON.stringify({ choices: [choice] })}\n\n`);
		const pieces = [...events, 'data: [DONE]\n\n'].map((event) => Buffer.from(event));
		await writePieces(response, pieces, 'end', 'text/event-stream');
	}

	test.each([
		['of their own', ['a', 'b']],
		['missing', [undefined, undefined]],
		['the same', ['a', 'a']],
	])('whose IDs are %s can be answered in JSON, turn after turn', async (_how, ids) => {
		chat.server.answer = async (_body, response) => await stream(response, ids);
		const messages: JsonObject[] = [{ role: 'user', content: 'Go' }];
		for (const turn of [1, 2, 3]) {
			const run = await chat.ask({
				messagesMode: 'json',
				messagesJson: JSON.stringify(messages),
				simplify: false,
			});
			expect(run.error).toBeUndefined();
			const [json] = run.jsons() as [
				{ toolCalls: ToolCall[]; raw: { choices: Array<{ message: JsonObject }> } },
			];
			expect(json.toolCalls).toMatchObject([
				{ name: 'tool_0', arguments: { n: 1 } },
				{ name: 'tool_1', arguments: { n: 1 } },
			]);
			const { message } = json.raw.choices[0] ?? {};
			const results = json.toolCalls.map(({ id }) => ({
				role: 'tool',
				tool_call_id: id,
				content: `${turn}`,
			}));
			messages.push({ role: 'assistant', ...message }, ...results);
		}
		const sent = chat.server.requests.at(-1)?.messages as JsonObject[];
		expect(sent.map(({ role }) => role)).toEqual([
			'user',
			'assistant',
			'tool',
			'tool',
			'assistant',
			'tool',
			'tool',
		]);
		const answered = sent.filter(({ role }) => role === 'tool').map(({ tool_call_id: id }) => id);
		expect(new Set(answered).size).toBe(4);
		const made = sent.flatMap(({ tool_calls: calls }) => (calls ?? []) as JsonObject[]).map(({ id }) => id);
		expect(made).toEqual(answered);
	});
});
