// What the agents of all servers here do with a message, without a model and without a network: each product's own
// code calls it where it would call a model.
import { setTimeout as sleep } from 'node:timers/promises';

export const TOKEN = 'agt_real_server_0123456789';
/** A token that is refused because of load, as a gateway in front of an agent would. */
export const LIMITED_TOKEN = 'agt_real_limited_0123456789';

const LONG_CHARACTERS = 100_000;
const PIECE_CHARACTERS = 500;
const BETWEEN_PIECES_MS = 15;

/** Tells the test that the agent runs; it counts these messages. */
const ran = (said) => process.send?.({ ran: said });

/** Tells the test that the server listens. */
export const listens = (port) => process.send?.({ port });

/** Which tools a message makes the agent ask for. */
export function asksOf(said) {
	if (said === 'pay twice') return [{ amount: 1 }, { amount: 2 }];
	return said.startsWith('pay') ? [{ amount: 7 }] : [];
}

/** The pieces of the answer to a message, which is the `turn`th of its session. */
export async function* answerTo(said, turn) {
	ran(said);
	const wait = /^wait (\d+)/.exec(said);
	if (wait) await sleep(Number(wait[1]));
	if (said === 'fail') throw new Error('the model broke');
	const text = said === 'long' ? 'x'.repeat(LONG_CHARACTERS) : `${turn}: ${said}`;
	const pieces = said === 'long' ? new RegExp(`.{1,${PIECE_CHARACTERS}}`, 'gs') : /\S+\s*/g;
	for (const [piece] of text.matchAll(pieces)) {
		yield piece;
		if (said !== 'long') await sleep(BETWEEN_PIECES_MS);
	}
	if (said === 'die in mid answer') {
		// So that the pieces have been sent.
		await sleep(300);
		process.kill(process.pid, 'SIGKILL');
	}
}

/** What the agent says once its tools have been answered. */
export async function* answerAfter(results) {
	ran(`results ${JSON.stringify(results)}`);
	for (const piece of ['given ', JSON.stringify(results)]) yield piece;
}

/** The HTTP status with which a gateway would refuse a request; 0 if it would pass it on. */
export function refusalOf(authorization) {
	if (authorization === `Bearer ${LIMITED_TOKEN}`) return 429;
	return authorization === `Bearer ${TOKEN}` ? 0 : 401;
}
