import { InterruptLimit } from '../../../../nodes/AgentInvoke/turns/interruptLimit';

describe('interrupts', () => {
	const session = (sessionId: string, agent = 'a') => ({ agent, sessionId });

	test('are counted within a step and across nodes, and anew after a message', () => {
		const flow: Record<string, unknown> = {};
		const open = () => new InterruptLimit(flow, 2);
		for (let round = 0; round < 2; round++) open().interrupted(session('s'), session('s'));
		expect(open().whyNoMore(session('s'))).toBeUndefined();
		open().interrupted(session('s'), session('s'));
		expect(open().whyNoMore(session('s'))).toMatchObject({
			kind: 'notSubmitted',
			details: { interrupts: 3 },
		});
		expect(open().whyNoMore(session('other'))).toBeUndefined();
		open().begin(session('s'));
		expect(open().whyNoMore(session('s'))).toBeUndefined();
	});

	test('have no limit if it is 0, and an invalid count is ignored', () => {
		const flow = { flowAgentInterrupts: { '["a","s"]': 99, '["a","t"]': 'x' } };
		expect(new InterruptLimit(flow, 0).whyNoMore(session('s'))).toBeUndefined();
		expect(new InterruptLimit(flow, 1).whyNoMore(session('s'))).toBeDefined();
		expect(new InterruptLimit(flow, 1).whyNoMore(session('t'))).toBeUndefined();
	});

	test('are counted for thousands of sessions', () => {
		const limit = new InterruptLimit({}, 2);
		for (let at = 0; at < 20_000; at++) {
			for (let round = 0; round < 3; round++) limit.interrupted(session(`s${at}`), session(`s${at}`));
		}
		expect(limit.whyNoMore(session('s7'))).toBeDefined();
		expect(limit.whyNoMore(session('s20000'))).toBeUndefined();
	});
});
