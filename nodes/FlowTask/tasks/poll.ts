import { fail, ok, type Failure, type Result } from '../../shared/errors/failure';
import type { CallFailure } from '../failures';
import type { TaskApi } from '../api';
import type { TaskInfo } from './taskInfo';

/** How many task ids one get_task_info call asks for; the interface names no limit (§4.2). */
export const IDS_PER_CALL = 100;

/** After so many calls without a single answer it is not an id that is refused, but the call itself. */
const CALLS_WITHOUT_ANSWER = 20;
/** The same for answers that cannot be read: just enough to find one task among `IDS_PER_CALL`. */
const UNREADABLE_WITHOUT_ANSWER = 9;

/** Task ids that were asked for together, and the answer. */
export interface Piece {
	readonly ids: readonly string[];
	readonly answer: Result<TaskInfo[], CallFailure>;
}

/** What one poll of any number of tasks has brought. */
export interface PolledInfos {
	/** Ids that the platform does not know are missing. */
	readonly infos: ReadonlyMap<string, TaskInfo>;
	/** Ids that the platform refuses to tell of, while it tells of others. */
	readonly refused: ReadonlyMap<string, CallFailure>;
}

/** Task ids in the portions that one call asks for. */
export function portionsOf(taskIds: readonly string[]): string[][] {
	const portions: string[][] = [];
	for (let start = 0; start < taskIds.length; start += IDS_PER_CALL) {
		portions.push(taskIds.slice(start, start + IDS_PER_CALL));
	}
	return portions;
}

/**
 * Asks for one portion. Where the platform refuses it, or its answer cannot be read, it may be for a single id: the
 * portion is halved until that one stands alone, so that one bad task costs no other its result.
 */
export async function askInPieces(
	api: Pick<TaskApi, 'info'>,
	portion: readonly string[],
	urlExpireSeconds: number,
): Promise<Piece[]> {
	const pieces: Piece[] = [];
	const open: Array<readonly string[]> = [portion];
	let answered = false;
	for (let calls = 1, ids = open.pop(); ids; calls++, ids = open.pop()) {
		const answer = await api.info(ids, urlExpireSeconds);
		answered ||= answer.ok;
		const refused = !answer.ok && isRefusal(answer.failure);
		const unreadable = !answer.ok && isUnreadable(answer.failure);
		const mostCalls = refused ? CALLS_WITHOUT_ANSWER : UNREADABLE_WITHOUT_ANSWER;
		if ((refused || unreadable) && !answered && calls >= mostCalls) {
			return [...pieces, { ids: [...ids, ...open.flat()], answer }];
		}
		if ((refused || unreadable) && ids.length > 1) {
			const middle = Math.ceil(ids.length / 2);
			open.push(ids.slice(middle), ids.slice(0, middle));
		} else {
			pieces.push({ ids, answer });
		}
	}
	return pieces;
}

/** Whether the service itself said no, and not for the key or its rights. */
function isRefusal({ kind, passing }: Failure & { readonly passing: boolean }): boolean {
	return kind === 'refused' && !passing;
}

/** Whether an answer came that is too large, nested too deeply or no JSON: one task's report may be the cause. */
function isUnreadable({ kind, details }: Failure): boolean {
	const { httpStatus, networkCode } = details ?? {};
	const said = typeof httpStatus === 'number' && httpStatus >= 200 && httpStatus < 300;
	return (kind === 'unclear' && said) || networkCode === 'ERR_TOO_LARGE';
}

/** One poll of any number of tasks, for those who wait for nothing. */
export async function infoOfMany(
	api: Pick<TaskApi, 'info'>,
	taskIds: readonly string[],
	urlExpireSeconds: number,
): Promise<Result<PolledInfos, CallFailure>> {
	const portions = portionsOf([...new Set(taskIds)]);
	const pieces = await Promise.all(
		portions.map(async (ids) => await askInPieces(api, ids, urlExpireSeconds)),
	);
	const infos = new Map<string, TaskInfo>();
	const refused = new Map<string, CallFailure>();
	let first: CallFailure | undefined;
	for (const { ids, answer } of pieces.flat()) {
		if (answer.ok) {
			for (const info of answer.value) infos.set(info.taskId, info);
			continue;
		}
		if (!isRefusal(answer.failure) && !isUnreadable(answer.failure)) return answer;
		first ??= answer.failure;
		for (const id of ids) refused.set(id, answer.failure);
	}
	const nothingAnswered = first !== undefined && pieces.flat().every(({ answer }) => !answer.ok);
	return nothingAnswered && first ? fail(first) : ok({ infos, refused });
}
