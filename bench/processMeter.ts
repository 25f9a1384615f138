// What a process costs, by Linux's own counts.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

const KB = 1024;
export const MB = 1024 * KB;

/** The clock in which Linux counts CPU time. */
const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

export interface Memory {
	readonly nowBytes: number;
	/** Since the start, or since `forgetPeak`. */
	readonly peakBytes: number;
}

export function memoryOf(pid: number): Memory {
	const status = readFileSync(`/proc/${pid}/status`, 'utf8');
	const field = (name: string): number =>
		Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? Number.NaN) * KB;
	return { nowBytes: field('VmRSS'), peakBytes: field('VmHWM') };
}

/** From here on the peak is counted anew. */
export function forgetPeak(pid: number): void {
	const RESIDENT_PEAK = '5';
	writeFileSync(`/proc/${pid}/clear_refs`, RESIDENT_PEAK);
}

/** User and system time since the start. */
export function cpuSecondsOf(pid: number): number {
	const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
	// The name in parentheses may hold spaces; user and system time are the 12th and 13th fields behind it.
	const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
	return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}
