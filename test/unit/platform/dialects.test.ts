import type { DialectName } from '../../platform/agents/dialects';
import { withAgent, type AgentClient } from './agentClient';
import { field } from './client';

async function bodyOf(client: AgentClient, body: unknown): Promise<{ status: number; body: unknown }> {
	const response = await client.post(body);
	return { status: response.status, body: await response.json() };
}

/** The events of a stream: their names, empty where there is none, and their data. */
async function eventsOf(client: AgentClient, body: unknown): Promise<Array<[string, unknown]>> {
	const text = await (await client.post(body)).text();
	return text
		.split('\n\n')
		.filter((block) => block.includes('data: '))
		.map((block) => [
			/^event: (.*)$/m.exec(block)?.[1] ?? '',
			JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? 'null'),
		]);
}

const speaking = (agentDialect: DialectName) => ({ agentDialect });

describe('nested', () => {
	test('goes on in a thread and answers deep down', async () => {
		await withAgent(speaking('nested'), async (client, platform) => {
			const first = await bodyOf(client, { input: { query: 'hello' }, mode: 'sync' });
			const thread = field(field(first.body, 'data'), 'thread');
			expect(first.body).toMatchObject({
				success_response: true,
				data: {
					reason: 'FINISHED',
					output: { messages: [{ content: [{ text: 'Turn 1: you said "hello"' }] }] },
				},
			});
			const second = await bodyOf(client, { input: { query: '[recall]' }, thread, mode: 'sync' });
			expect(second.body).toMatchObject({
				data: { output: { messages: [{ content: [{ text: 'hello' }] }] } },
			});
			expect(platform.books().sessions).toMatchObject([{ turns: 2 }]);
		});
	});

	test('asks for a decision and takes it', async () => {
		await withAgent(speaking('nested'), async (client, platform) => {
			const { body } = await bodyOf(client, { input: { query: '[tool: refund {"order":7}]' }, mode: 'sync' });
			expect(body).toMatchObject({
				data: { reason: 'WAITING', waiting: [{ action: { title: 'refund', params: '{"order":7}' } }] },
			});
			const [waiting] = field(field(body, 'data'), 'waiting') as Array<{ ref: string }>;
			const thread = field(field(body, 'data'), 'thread');
			const decision = { ref: waiting?.ref, value: { done: true } };
			const { body: end } = await bodyOf(client, { thread, decision, mode: 'sync' });
			expect(end).toMatchObject({ data: { reason: 'FINISHED', waiting: [] } });
			expect(platform.books().invocations).toHaveLength(2);
		});
	});

	test('streams chunks, steps and a summary, and refuses with words of its own', async () => {
		await withAgent(speaking('nested'), async (client) => {
			const events = await eventsOf(client, {
				input: { query: '[step: look up] [answer: abc]' },
				mode: 'sse',
			});
			expect(events.map(([name]) => name)).toEqual(['step', 'chunk', 'chunk', 'chunk', 'summary']);
			expect(events[1]).toMatchObject(['chunk', { data: { token: 'a' } }]);
			const lost = await bodyOf(client, { input: { query: 'x' }, thread: { id: 'ses_none' }, mode: 'sync' });
			expect(lost).toMatchObject({
				status: 200,
				body: { success_response: false, http_status_code: 404, data: { reason: 'THREAD_LOST' } },
			});
			expect(await bodyOf(client, { input: { query: 'x' } })).toMatchObject({
				body: { http_status_code: 400 },
			});
		});
	});
});

describe('bare', () => {
	test('has no envelope, and its HTTP status counts', async () => {
		await withAgent(speaking('bare'), async (client, platform) => {
			const first = await bodyOf(client, { text: 'hello' });
			expect(first).toMatchObject({ status: 200, body: { say: 'Turn 1: you said "hello"', tokens: 8 } });
			const conversation = field(first.body, 'conversation');
			await bodyOf(client, { text: 'again', conversation });
			expect(platform.books().sessions).toMatchObject([{ turns: 2 }]);
			const lost = await bodyOf(client, { text: 'x', conversation: 'ses_none' });
			expect(lost).toMatchObject({ status: 404, body: { error: { code: 'no_such_conversation' } } });
			const refused = await client.post({}, { headers: { authorization: 'Bearer agt_unknown' } });
			expect(refused.status).toBe(401);
			expect(await refused.json()).toMatchObject({ error: { code: 'bad_key' } });
		});
	});

	test('streams by type, and its end is the end of the body', async () => {
		await withAgent(speaking('bare'), async (client) => {
			const events = await eventsOf(client, { text: '[step: look up] [answer: abc]', live: 'yes' });
			expect(events.map(([name, data]) => [name, field(data, 'type')])).toEqual([
				['', 'tool_use'],
				['', 'text'],
				['', 'text'],
				['', 'text'],
				['', 'receipt'],
			]);
			expect(events.at(-1)?.[1]).not.toHaveProperty('say');
		});
	});
});
