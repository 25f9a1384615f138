import { startPlatform } from '../../platform';
import type { LocalPlatform } from '../../platform';
import { until } from '../../until';
import { field } from './client';

let platform: LocalPlatform;
beforeEach(async () => {
	platform = await startPlatform();
});
afterEach(async () => {
	await platform.close();
});

async function say(message: string, sessionId?: unknown): Promise<unknown> {
	const response = await fetch(`${platform.apiUrl}/api/agents/Invoke`, {
		method: 'POST',
		headers: { authorization: `Bearer ${platform.agentToken}`, 'content-type': 'application/json' },
		body: JSON.stringify({ message, session_id: sessionId }),
	});
	return field(await response.json(), 'data');
}

test('a session accepts one call at a time', async () => {
	const sessionId = field(await say('one'), 'session_id');
	const held = say('[hold] two', sessionId);
	await until(() => platform.agent.held === 1);
	expect(await say('three', sessionId)).toMatchObject({ reason: 'session_busy' });
	expect(platform.books().invocations.at(-1)).toMatchObject({ outcome: 'running', endedAtMs: null });
	await say('elsewhere');
	platform.agent.release();
	expect(await held).toMatchObject({ reason: 'completed' });
	expect(await say('four', sessionId)).toMatchObject({ answer: 'Turn 3: you said "four"' });
	expect(platform.books()).toMatchObject({ concurrentPerSession: 2, mostInvocationsAtOnce: 2 });
});

test('the books count repeated calls, with and without a session', async () => {
	const sessionId = field(await say('first'), 'session_id');
	await say('pay', sessionId);
	await say('pay', sessionId);
	await say('first');
	const books = platform.books();
	expect(books).toMatchObject({ duplicateInvocations: 2 });
	expect(JSON.parse(JSON.stringify(books))).toEqual(books);
	platform.resetBooks();
	expect(platform.books()).toMatchObject({ invocations: [], sessions: [], duplicateInvocations: 0 });
	await say('on', sessionId);
	expect(platform.books().sessions).toMatchObject([{ sessionId, turns: 4 }]);
});
