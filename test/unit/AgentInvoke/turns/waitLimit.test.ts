import type { AgentFailure } from '../../../../nodes/AgentInvoke/api/failures';
import { WaitLimit } from '../../../../nodes/AgentInvoke/turns/waitLimit';
import type { AgentReply } from '../../../../nodes/AgentInvoke/wire/conclusion';
import { fail, type Result } from '../../../../nodes/shared/errors/failure';
import { TestClock } from '../../testClock';

/** Calls a session that is always busy and says for how long. @returns when it was called, ms */
async function askedAt(retryAfter: string | undefined, timeoutMs = 60_000): Promise<number[]> {
	const clock = new TestClock();
	const { signal } = new AbortController();
	const times: number[] = [];
	const waitLimit = new WaitLimit(clock, timeoutMs, signal, signal, () => undefined);
	const call = async (): Promise<Result<AgentReply, AgentFailure>> => {
		times.push(clock.elapsedMs);
		const failure: AgentFailure = {
			kind: 'refused',
			message: 'busy',
			advice: '',
			busySession: { retryAfter },
		};
		return await Promise.resolve(fail(failure));
	};
	await clock.run(
		waitLimit.retryWhileBusy(
			call,
			() => true,
			() => 1,
		),
	);
	return times;
}

test('a busy session is called again when it said', async () => {
	expect(await askedAt('20')).toEqual([0, 20_000, 40_000, 60_000]);
});

test('a busy session that names no time is called again after growing pauses', async () => {
	expect(await askedAt(undefined, 5_000)).toEqual([0, 500, 1_250, 2_375, 4_063, 5_000]);
});

test('no turn waits longer than the timeout, whatever the session said', async () => {
	expect(await askedAt('3600', 5_000)).toEqual([0, 5_000]);
});
