import type { AddressInfo } from 'node:net';
import { WebSocketServer, type WebSocket } from 'ws';

import { createEventFilter, readPath, type ReplyRule } from '../../../../nodes/AgentBridge/frames';
import { openConnection } from '../../../../nodes/AgentBridge/connection/connection';
import { RequestSession } from '../../../../nodes/AgentBridge/connection/requestSession';
import { systemClock } from '../../../../nodes/shared/time/clock';
import { redactor } from '../../../../nodes/shared/text/redact';
import { valueOf } from '../../results';

const ITEMS = 100;
const TIMEOUT_MS = 150;

/** The same numbers in each run, without a pattern. */
const noise = (item: number, salt: number): number => (item * 7_919 + salt * 104_729) % 40;

/**
 * Answers each question twice, on the connection of the newest question of its user: in either order, after up to 40 ms,
 * and every tenth question only after its time is up. Without `hasIds`, an answer does not say what it answers.
 */
function openBot(hasIds: boolean): { readonly url: string; readonly close: () => void } {
	const server = new WebSocketServer({ port: 0 });
	const newest = new Map<string, WebSocket>();
	server.on('connection', (socket) => {
		socket.on('message', (data: Buffer) => {
			const { user, item } = JSON.parse(data.toString()) as { user: string; item: number };
			newest.set(user, socket);
			for (const part of [1, 2]) {
				const afterMs = noise(item, part) + (item % 10 === 0 ? TIMEOUT_MS : 0);
				const answer = { type: 'message', text: `answer to ${item}`, part, ...(hasIds && { re: item }) };
				setTimeout(() => newest.get(user)?.send(JSON.stringify(answer)), afterMs);
			}
		});
	});
	const { port } = server.address() as AddressInfo;
	const close = (): void => {
		for (const client of server.clients) client.terminate();
		server.close();
	};
	return { url: `ws://127.0.0.1:${port}/`, close };
}

/** Asks once for each item, and counts the messages that are at the item that asked for them, and those that are not. */
async function askAll({ hasIds = false, isOneMessage = true, silenceMs = 0, users = ITEMS }) {
	const bot = openBot(hasIds);
	const peer = { host: 'bot.test', protocol: undefined, tokenIn: 'nothing', redact: redactor([]) } as const;
	let connections = 0;
	const session = new RequestSession(
		{
			clock: systemClock,
			peer,
			open: (events) => {
				connections++;
				return openConnection({ url: bot.url, protocols: [], idleMs: 0 }, events, systemClock);
			},
			probe: async () => await Promise.resolve({ kind: 'nothing' }),
			refusal: async () => await Promise.resolve(undefined),
		},
		new AbortController().signal,
	);
	const at = valueOf(readPath('ID in Reply', 're'));
	const filter = valueOf(createEventFilter('type', 'message'));
	let [own, others, timedOut] = [0, 0, 0];
	for (let item = 0; item < ITEMS; item++) {
		const id = hasIds && at ? { at, value: String(item) } : undefined;
		const rule: ReplyRule = { id, filter, isOneMessage, silenceMs };
		const asked = await session.request(
			JSON.stringify({ user: `user ${item % users}`, item }),
			rule,
			TIMEOUT_MS,
		);
		const mine = asked.ok ? asked.value.replies.filter(({ text }) => text === `answer to ${item}`) : [];
		own += mine.length;
		others += asked.ok ? asked.value.replies.length - mine.length : 0;
		if (!asked.ok) timedOut++;
	}
	await session.close();
	bot.close();
	return { own, others, timedOut, connections, late: session.late };
}

test('without IDs, no item gets the message of another, though the bot answers late, twice and out of order', async () => {
	const { own, others, timedOut, connections } = await askAll({});
	expect(others).toBe(0);
	expect(own + timedOut).toBe(ITEMS);
	expect(timedOut).toBeGreaterThanOrEqual(ITEMS / 10);
	expect(connections).toBe(ITEMS);
}, 60_000);

test('without IDs, silence collects both messages of an item and none of another', async () => {
	const { own, others, connections } = await askAll({ isOneMessage: false, silenceMs: 60 });
	expect(others).toBe(0);
	expect(own).toBeGreaterThan(ITEMS);
	expect(connections).toBe(ITEMS);
}, 60_000);

test('without IDs, a bot that sends to the newest connection of one user is waited for until it is silent', async () => {
	const { own, others, late } = await askAll({ silenceMs: 150, users: 1 });
	expect(others).toBe(0);
	expect(own).toBeGreaterThan(ITEMS / 2);
	expect(late).toBeGreaterThan(ITEMS / 2);
}, 90_000);

test('with IDs, all items share a connection, and the second and the late messages are dropped and counted', async () => {
	const { own, others, connections, late } = await askAll({ hasIds: true });
	expect(others).toBe(0);
	expect(own).toBeGreaterThan(ITEMS / 2);
	expect(connections).toBe(1);
	expect(late).toBeGreaterThan(ITEMS / 2);
}, 60_000);
