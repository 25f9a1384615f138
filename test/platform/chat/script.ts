import type { Fault } from '../faults/faultBoard';
import type { Chunks, Fields } from './completion';
import type { Directives } from './directives';
import { errorBody } from './errors';
import type { ChatEnd } from './ledger';

/** How a stream stops: properly, with a TCP reset, by closing the connection in mid-answer, or not at all. */
export type Exit = 'end' | 'reset' | 'close' | 'silence';

/** A step of a stream. */
export type Step =
	| { readonly kind: 'chunk'; readonly data: Fields }
	| { readonly kind: 'event'; readonly data: unknown }
	/** The first half of an event's bytes. */
	| { readonly kind: 'half'; readonly data: Fields }
	| { readonly kind: 'done' }
	| { readonly kind: 'comment' }
	| { readonly kind: 'pause'; readonly ms: number }
	| { readonly kind: 'hold' }
	| { readonly kind: 'exit'; readonly exit: Exit; readonly ended: ChatEnd };

/** How a stream breaks off, and after how many chunks. */
interface Ending {
	readonly after: number;
	readonly steps: (next: Fields) => Step[];
}

/** After how many chunks a comment is sent, besides the one at the start, to keep the connection alive as services do. */
const CHUNKS_A_COMMENT = 8;

function exit(how: Exit, ended: ChatEnd): Step {
	return { kind: 'exit', exit: how, ended };
}

function orderedEndings({ breaks }: Directives): Ending[] {
	return breaks.map(({ kind, after }) => ({
		after,
		steps: (): Step[] => {
			switch (kind) {
				case 'silent':
					return [exit('silence', 'silent')];
				case 'cut':
					return [exit('reset', 'cut')];
				case 'end':
					return [exit('end', 'cut')];
				case 'error':
					return [{ kind: 'event', data: brokenOff() }, exit('end', 'error')];
			}
		},
	}));
}

/** The error object that ends an answer with HTTP 200. */
export function brokenOff(): ReturnType<typeof errorBody> {
	return errorBody(500, 'The model stopped unexpectedly', 'internal_error');
}

function faultEndings(faults: readonly Fault[]): Ending[] {
	const fault = faults.find(({ phase }) => phase === 'delivery');
	const after = fault?.rule.after ?? 1;
	if (fault?.kind === 'resetAfter') return [{ after, steps: () => [exit('reset', 'cut')] }];
	if (fault?.kind !== 'truncatedJson') return [];
	const how = fault.rule.cut === 'connection' ? 'close' : 'end';
	return [{ after, steps: (data) => [{ kind: 'half', data }, exit(how, 'cut')] }];
}

/** All steps of a stream, in order. A count above the number of chunks means before `[DONE]`. */
export function scriptOf(
	{ choices, usage }: Chunks,
	directives: Directives,
	faults: readonly Fault[],
): Step[] {
	const endings = [...orderedEndings(directives), ...faultEndings(faults)];
	const [ending] = endings.sort((a, b) => a.after - b.after);
	const { pauseMs = 0 } = directives;
	const last = choices.length;
	const steps: Step[] = [{ kind: 'comment' }];
	if (directives.takesMs !== undefined) steps.push({ kind: 'pause', ms: directives.takesMs });
	for (let sent = 0; sent <= last; sent++) {
		const isNow = (after: number): boolean => Math.min(after, last) === sent;
		for (const after of directives.holds) if (isNow(after)) steps.push({ kind: 'hold' });
		if (ending !== undefined && isNow(ending.after)) {
			return [...steps, ...ending.steps(choices[sent] ?? usage ?? {})];
		}
		const data = choices[sent];
		if (data === undefined) break;
		if (sent > 0 && pauseMs > 0) steps.push({ kind: 'pause', ms: pauseMs });
		steps.push({ kind: 'chunk', data });
		if ((sent + 1) % CHUNKS_A_COMMENT === 0) steps.push({ kind: 'comment' });
	}
	if (usage !== undefined) steps.push({ kind: 'event', data: usage });
	return [...steps, { kind: 'done' }, exit('end', 'done')];
}
