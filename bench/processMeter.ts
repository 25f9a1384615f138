// Measures what a process costs, by Linux's own counts.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

const KB = 1024;
export const MB = 1024 * KB;

/** The frequency of the clock by which Linux counts CPU time. */
const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

export interface Memory {
	readonly nowBytes: number;
	/** The most memory since the start of the process, or since `forgetPeak`. */
	readonly peakBytes: number;
}

export function memoryOf(pid: number): Memory {
	const status = readFileSync(`/proc/${pid}/status`, 'utf8');
	const field = (name: string): number =>
		Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? Number.NaN) * KB;
	return { nowBytes: field('VmRSS'), peakBytes: field('VmHWM') };
}

/** Starts measuring the peak anew. */
export function forgetPeak(pid: number): void {
	const RESIDENT_PEAK = '5';
	writeFileSync(`/proc/${pid}/clear_refs`, RESIDENT_PEAK);
}

/** The user and system time since the start of the process. */
export function cpuSecondsOf(pid: number): number {
	const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
	// The name in parentheses may contain spaces; user and system time are the 12th and 13th fields after it.
	const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
	return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}
