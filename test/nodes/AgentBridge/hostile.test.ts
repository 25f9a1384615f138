import type { INodeParameters } from 'n8n-workflow';

import type { HarnessRun } from '../harness';
import { everythingSaid, sharedStage } from '../harness/stage';
import { openStage } from './agentBridge.fixture';
import { openRawBridge, type RawBridge, type RawConnection } from './rawBridge';

const stage = sharedStage(openStage);
let bridge: RawBridge;
beforeAll(async () => {
	bridge = await openRawBridge();
});
afterAll(async () => await bridge.close());

const TOKEN = 'wst_SECRET+/0123456789abcdef';
const SPELT = [TOKEN, encodeURIComponent(TOKEN), Buffer.from(TOKEN).toString('base64url')];

interface Asked {
	readonly id: string;
	readonly text: string;
}
type Answering = (connection: RawConnection, asked: Asked) => void;

/** Accepts each connection, and answers each frame. */
function answers(how: Answering): (connection: RawConnection) => void {
	return (connection) => {
		connection.accept((text) => how(connection, JSON.parse(text) as Asked));
	};
}

const reply = (id: unknown, text: string) => ({ type: 'message', correlation_id: id, text });
const own: Answering = (connection, { id, text }) => connection.say(reply(id, `Re: ${text}`));

async function ask(count: number, parameters: INodeParameters = {}): Promise<HarnessRun> {
	const items = Array.from({ length: count }, (_, item) => ({ json: { text: `q${item}` } }));
	const account = { channelToken: TOKEN, wsBaseUrl: bridge.wsUrl };
	const settings = { onError: 'continueRegularOutput', account } as const;
	const run = await stage.run(items, { timeoutSeconds: 2, ...parameters }, settings);
	const said = everythingSaid(run);
	expect(said).not.toMatch(/TypeError|has a bug/);
	for (const token of SPELT) expect(said).not.toContain(token);
	return run;
}

/** Frames beside the reply. */
const NOISE: ReadonlyArray<readonly [string, Answering]> = [
	['text that is not JSON', (to) => to.frame(1, Buffer.from('{ hello'))],
	['JSON that is no object', (to) => [null, 7, 'x', [{ type: 'message' }]].forEach((one) => to.say(one))],
	['a binary frame', (to, { id }) => to.frame(2, Buffer.from(JSON.stringify(reply(id, 'binary'))))],
	['IDs of others', (to) => ['other', 7, '', null, undefined].forEach((id) => to.say(reply(id, 'another')))],
	['an ID in a list or an object', (to, { id }) => [[id], { id }].forEach((one) => to.say(reply(one, 'x')))],
	['an event in a list', (to, { id }) => to.say({ ...reply(id, 'x'), type: ['message'] })],
	['the token, as it is and encoded', (to, { id }) => to.say({ type: 'debug', correlation_id: id, SPELT })],
	[
		'inherited names',
		(to, { id }) => to.say({ constructor: reply(id, 'x'), toString: 1, type: '__proto__' }),
	],
];

test.each(NOISE)('%s before the reply does not end the wait', async (_name, noise) => {
	bridge.script(
		answers((to, asked) => {
			noise(to, asked);
			own(to, asked);
		}),
	);
	const run = await ask(3);
	expect(run.jsons()).toMatchObject([0, 1, 2].map((item) => ({ reply: { text: `Re: q${item}` } })));
});

/** Ways to end a connection. */
const ENDS: ReadonlyArray<readonly [string, (connection: RawConnection) => void]> = [
	['bytes that are no frame', ({ socket }) => void socket.write(Buffer.alloc(50, 0xff))],
	['text that is not UTF-8', (to) => to.frame(1, Buffer.from([0x22, 0xff, 0xfe, 0x22]))],
	['half a frame', ({ socket }) => void socket.end(Buffer.from([0x81, 100, 0x7b]))],
	['a lost connection', ({ socket }) => void socket.destroy()],
	...[1000, 1001, 1011, 1013, 4000].map(
		(code) => [`code ${code}`, (to: RawConnection) => to.close(code)] as const,
	),
];

test.each(ENDS)(
	'%s instead of a reply makes the request unclear, and nothing is sent again',
	async (_, end) => {
		bridge.script(answers(end));
		const run = await ask(2);
		expect(run.jsons()).toMatchObject([{ details: { kind: 'unclear' } }, { details: { kind: 'unclear' } }]);
		const sent = bridge.connections.flatMap(({ texts }) =>
			texts.map((text) => (JSON.parse(text) as Asked).text),
		);
		expect(sent).toEqual(['q0', 'q1']);
	},
);

test.each(ENDS)('%s as soon as the connection is open leaves no sent frame green', async (_name, end) => {
	bridge.script((connection) => end(connection.accept()));
	const run = await ask(2, { operation: 'send' });
	expect(run.jsons()).toMatchObject([{ details: { kind: 'unclear' } }, { details: { kind: 'unclear' } }]);
});

test('of 300 items, none gets the reply of another, though each is answered twice, late and out of order', async () => {
	bridge.script(
		answers((to, asked) => {
			const item = Number(asked.text.slice(1));
			for (const part of [1, 2]) setTimeout(() => own(to, asked), (item * 7_919 + part * 104_729) % 20);
		}),
	);
	const run = await ask(300);
	const texts = run.jsons().map((json) => (json.reply as Asked).text);
	expect(texts).toEqual(texts.map((_, item) => `Re: q${item}`));
	expect(texts).toHaveLength(300);
});
