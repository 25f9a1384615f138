import { TurnCalls } from '../../../../nodes/AgentInvoke/api/callLimit';
import { TestClock } from '../../testClock';

const clock = new TestClock();

test('a turn that sent nothing frees its call for other turns', () => {
	const limit = { most: 2, taken: 2 };
	const [one, two] = [new TurnCalls(limit, clock), new TurnCalls(limit, clock)];
	one.sent();
	expect(one.mayRepeat()).toBe(false);
	two.ended();
	expect(one.mayRepeat()).toBe(true);
	one.sent();
	one.ended();
	expect(one.mayRepeat()).toBe(false);
});

test('0 means no limit', () => {
	const calls = new TurnCalls({ most: 0, taken: 1 }, clock);
	for (let call = 0; call < 100; call++) expect(calls.mayRepeat()).toBe(true);
});

test('a failure keeps its facts, and the advice names the option', () => {
	const refused = {
		kind: 'refused',
		message: 'It is busy',
		advice: 'Wait.',
		details: { httpStatus: 429 },
	} as const;
	const advice =
		"The call was not retried, because 'Max Invocations' limits a run to 1 call(s), including retries. Raise 'Max Invocations' under 'Cost and Speed' if that is too low. Wait.";
	const calls = new TurnCalls({ most: 1, taken: 1 }, clock);
	calls.sent();
	expect(calls.failed(refused)).toEqual(refused);
	// The turn asks for another call, such as one in a renewed session.
	expect(calls.mayRepeat()).toBe(false);
	expect(calls.failed(refused)).toEqual({ ...refused, advice });
});

test('the time of the first call is kept', async () => {
	const calls = new TurnCalls({ most: 0, taken: 1 }, clock);
	expect(calls.started).toBeUndefined();
	calls.sent();
	const atMs = clock.now();
	await clock.advance(1_000);
	calls.sent();
	expect(calls.started).toEqual({ nowMs: atMs, wallMs: atMs });
});
