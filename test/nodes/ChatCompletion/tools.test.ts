import type { INodeParameters } from 'n8n-workflow';

import { sayings, sharedStage } from '../harness/stage';
import { openChatStage } from './chat.fixture';

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
	'refuses "%s" in "Extra Body" if rows or an option set it',
	async (name) => {
		const run = await stage.run(sayings('hello'), {
			tools: tools('weather'),
			options: { toolChoice: 'required', extraBody: JSON.stringify({ [name]: 'x' }) },
		});
		expect(run.error?.message).toContain(`"Extra Body" sets "${name}"`);
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
