import type { IRun } from 'n8n-workflow';

import { ReplySender } from '../../../../../nodes/AgentBridge/actions/trigger/sendReplies';
import type { IncomingFrame } from '../../../../../nodes/AgentBridge/actions/trigger/incomingFrame';
import { redactor } from '../../../../../nodes/shared/text/redact';

function scene(replyPath = '') {
	const sent: string[] = [];
	const lines: string[] = [];
	const settings = { template: { text: '$json.text' }, replyPath };
	const replies = new ReplySender(
		'Trigger',
		settings,
		{ send: (text) => void sent.push(text) },
		redactor(['wst_secret']),
		(level, text) => lines.push(`${level}: ${text}`),
	);
	return { replies, sent, lines };
}

const FRAMES: IncomingFrame[] = [
	{ frame: {}, event: undefined, id: 'f-wst_secret', receivedAt: '', correlation: undefined },
];

function run(change: Partial<IRun>, resultData: object = {}): IRun {
	return { status: 'success', data: { resultData: { runData: {}, ...resultData } }, ...change } as IRun;
}

const WHOLE = {
	lastNodeExecuted: 'Last',
	runData: { Last: [{ source: [], data: { main: [[{ json: { text: 'hi' } }]] } }] },
};

test('warns once, without the token, if n8n in queue mode does not hand over the output', () => {
	const { replies, lines, sent } = scene();
	replies.ended(FRAMES, run({}, { lastNodeExecuted: 'Last' }));
	replies.ended(FRAMES, run({}, { lastNodeExecuted: 'Last' }));
	expect(lines).toHaveLength(2);
	expect(lines[0]).toMatch(
		/^warn: no reply to 1 frame\(s\): n8n did not hand over .*queue mode.*\(IDs: f-\[hidden\]\)$/,
	);
	expect(lines[0]).toContain('"Use the Trigger\'s Connection"');
	expect(lines[1]).toMatch(/^debug: /);
	expect(sent).toEqual([]);
});

test.each<[Partial<IRun>, object, string]>([
	[{ status: 'waiting' }, WHOLE, 'the execution is waiting'],
	[{ waitTill: new Date() }, WHOLE, 'the execution is waiting'],
	[{ status: 'error' }, WHOLE, 'the execution failed'],
	[{}, { ...WHOLE, error: { message: 'no' } }, 'the execution failed'],
	[{ status: 'canceled' }, WHOLE, 'the execution failed'],
])('sends nothing and logs the reason: %j', (change, resultData, said) => {
	const { replies, lines, sent } = scene();
	replies.ended(FRAMES, run(change, resultData));
	expect([lines[0]?.includes(said), sent]).toEqual([true, []]);
});

test('does not throw without a run or if the run cannot be read', () => {
	const { replies, lines, sent } = scene();
	replies.ended(FRAMES, undefined);
	expect(lines).toEqual([]);
	replies.ended(
		FRAMES,
		run({}, { lastNodeExecuted: 'Last', runData: { Last: [{ data: { main: [[null]] } }] } }),
	);
	expect(lines[0]).toContain('the reply could not be built');
	replies.ended(FRAMES, run({}, WHOLE));
	expect(sent).toEqual(['{"text":"hi"}']);
});

test('sends frames from nodes unchanged and ignores other responses', () => {
	const { replies, sent } = scene();
	replies.responded({ flowBridgeFrame: '{"a": 1}' });
	for (const other of [{}, undefined, { body: {} }, { flowBridgeFrame: 3 }, 'text']) replies.responded(other);
	expect(sent).toEqual(['{"a": 1}']);
});
