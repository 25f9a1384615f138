import type { Envelope } from '../codes';
import type { Fault } from '../faults/faultBoard';
import type { Outcome } from '../tasks/outcome';
import { STATUS } from '../tasks/task';
import type { TaskInfo } from '../tasks/taskInfo';
import { isRecord } from '../wireJson';

/** The outcome that a fault orders for the task that is being created. */
export function orderedOutcome(faults: readonly Fault[]): Outcome | undefined {
	const fault = faults.find(({ phase }) => phase === 'task');
	switch (fault?.kind) {
		case 'failTask':
			return { kind: 'fail', errMsg: fault.rule.msg ?? 'The sampler ran out of memory' };
		case 'denyTask':
			return { kind: 'deny', errMsg: fault.rule.msg ?? 'Insufficient permission' };
		case 'stuckTask':
			return { kind: 'stick' };
		default:
			return undefined;
	}
}

/** How long the links of an answer are valid; with a fault, they expired a minute ago. */
export function linkSeconds(wanted: number, faults: readonly Fault[]): number {
	return faults.some(({ kind }) => kind === 'expiredLink') ? -60 : wanted;
}

type SpoiltInfo = Omit<TaskInfo, 'files' | 'final_files'> & {
	files: TaskInfo['files'] | null;
	final_files: TaskInfo['final_files'] | null;
};

export function spoilInfo(info: TaskInfo, faults: readonly Fault[]): SpoiltInfo {
	const spoilt: SpoiltInfo = { ...info };
	for (const { kind, rule } of faults) {
		if (kind === 'filesNull') {
			spoilt.files = null;
			spoilt.final_files = null;
		} else if (kind === 'unknownStatus') {
			spoilt.status = rule.status ?? 7;
		} else if (kind === 'noProgress') {
			spoilt.status = STATUS.generating;
			spoilt.progress_num = 0;
			spoilt.files = {};
			spoilt.final_files = [];
		}
	}
	return spoilt;
}

/** The items without those that a fault leaves out of the answer. */
export function withoutSome<T>(items: readonly T[], faults: readonly Fault[]): readonly T[] {
	const fault = faults.find(({ kind }) => kind === 'missingIds');
	return fault === undefined ? items : items.slice(fault.rule.after ?? Math.ceil(items.length / 2));
}

function numbersAsStrings(value: unknown): unknown {
	if (typeof value === 'number') return String(value);
	if (Array.isArray(value)) return value.map(numbersAsStrings);
	if (!isRecord(value)) return value;
	return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, numbersAsStrings(inner)]));
}

/** Applies the faults that concern values to the data of an answer or message. */
export function spoilData(data: unknown, faults: readonly Fault[]): unknown {
	return faults.some(({ kind }) => kind === 'numbersAsStrings') ? numbersAsStrings(data) : data;
}

export function spoilEnvelope({ code, msg, data }: Envelope, faults: readonly Fault[]): unknown {
	const spoilt = faults.some(({ kind }) => kind === 'numbersAsStrings') ? String(code) : code;
	return { code: spoilt, msg, data: spoilData(data, faults) };
}
