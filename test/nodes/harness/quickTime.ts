import { performance as processTime } from 'node:perf_hooks';

/** How much faster time passes while the process is idle: at first, when a peer may be about to answer, and later. */
const SPEED = 20;
const FULL_SPEED = 100;
/** After this many checks without work, the process is assumed to wait only for a timer. */
const CHECKS_AT_FIRST = 8;
/** Processor time between two checks that counts as work. */
const LEAST_WORK_MS = 0.5;
/** Real time between two checks; a process that is idle for much longer is waiting for a busy processor. */
const LOOK_EVERY_MS = 1;
const MOST_IDLE_MS = 2 * LOOK_EVERY_MS;
/** Longer work counts as this much, so that data which arrived meanwhile is read before a timeout fires. */
const MOST_WORK_MS = 20;

/**
 * Lets time pass with the processor time that this process gets, and 20 to 100 times as fast while it is idle, so no
 * test waits for a backoff, a poll interval or a timeout. No timeout fires early, even on a busy machine.
 *
 * Controls the timers, `Date` and `performance.now()` of a test file, but not the timeouts of sockets.
 *
 * @returns a function that restores normal time; timers that have not fired by then never do
 */
export function passTimeQuickly(): () => void {
	const { setInterval, clearInterval } = globalThis;
	const performanceNow = performance.now.bind(performance);
	const aheadMs = performanceNow() - Date.now();
	jest.useFakeTimers({
		now: Date.now(),
		doNotFake: ['clearImmediate', 'hrtime', 'nextTick', 'performance', 'queueMicrotask', 'setImmediate'],
	});
	// Bound, because a test may set the time of day back.
	const now = Date.now.bind(Date);
	performance.now = () => now() + aheadMs;
	let before = processTime.eventLoopUtilization();
	let cpuBefore = process.cpuUsage();
	let idleChecks = 0;
	const pump = setInterval(() => {
		const total = processTime.eventLoopUtilization();
		const { active, idle } = processTime.eventLoopUtilization(total, before);
		before = total;
		const { user, system } = process.cpuUsage(cpuBefore);
		cpuBefore = process.cpuUsage();
		const workMs = Math.min(active, (user + system) / 1_000, MOST_WORK_MS);
		idleChecks = workMs < LEAST_WORK_MS ? idleChecks + 1 : 0;
		const speed = idleChecks > CHECKS_AT_FIRST ? FULL_SPEED : SPEED;
		jest.advanceTimersByTime(workMs + Math.min(idle, MOST_IDLE_MS) * speed);
	}, LOOK_EVERY_MS);
	return () => {
		clearInterval(pump);
		jest.useRealTimers();
		performance.now = performanceNow;
	};
}
