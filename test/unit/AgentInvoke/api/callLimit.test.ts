import { CallLimit } from '../../../../nodes/AgentInvoke/api/callLimit';
import { TestClock } from '../../testClock';

const clock = new TestClock();

test('a turn that sent nothing frees its call for other turns', () => {
	const limit = new CallLimit(2, 2, clock);
	const [one, two] = [limit.forTurn(), limit.forTurn()];
	one.sent();
	expect(one.mayRepeat()).toBe(false);
	two.ended();
	expect(one.mayRepeat()).toBe(true);
	one.sent();
	one.ended();
	expect(one.mayRepeat()).toBe(false);
});

test('0 means no limit', () => {
	const calls = new CallLimit(0, 1, clock).forTurn();
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
		'The call was not sent again, because "Max Invocations" allows 1 call(s) in one run, retries included. Raise "Max Invocations" under "Cost and Speed" if that is too few. Wait.';
	const calls = new CallLimit(1, 1, clock).forTurn();
	calls.sent();
	expect(calls.failed(refused)).toEqual(refused);
	// The turn asks for another call, such as one in a renewed session.
	expect(calls.mayRepeat()).toBe(false);
	expect(calls.failed(refused)).toEqual({ ...refused, advice });
});

test('the time of the first call is kept', async () => {
	const calls = new CallLimit(0, 1, clock).forTurn();
	expect(calls.started).toBeUndefined();
	calls.sent();
	const atMs = clock.now();
	await clock.advance(1_000);
	calls.sent();
	expect(calls.started).toEqual({ nowMs: atMs, wallMs: atMs });
});
