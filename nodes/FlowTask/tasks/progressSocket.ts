import { isJsonObject, parseJson } from '../../shared/text/json';
import type { OpenSocketHandle, SocketFactory } from '../../shared/http/webSocket';
import { readTaskInfo, type TaskInfo } from './taskInfo';

export interface ProgressEvents {
	/** A message about the task; its links are valid for ten minutes only (§6.1). */
	onInfo(info: TaskInfo): void;
	/** The socket is gone, or never came to be: the task must be watched by polling. */
	onLost(): void;
}

/** The progress WebSockets of one node run (§4.4, §5.2, §6.1). A lost one never fails a task. */
export interface ProgressSockets {
	/** False once both path forms were refused: then there is no use in asking again in this run. */
	readonly available: boolean;
	open(taskId: string, promptToken: string, events: ProgressEvents): OpenSocketHandle;
}

/**
 * @param paths the path forms in the order to try them. Which one a deployment has is not shown; the other
 *   is tried where the first is refused, and what has opened once is kept for the run.
 */
export function createProgressSockets(
	wsBaseUrl: string,
	paths: readonly string[],
	openSocket: SocketFactory,
): ProgressSockets {
	let proven: string | undefined;
	let refusedForGood = false;

	const attempt = (
		taskId: string,
		token: string,
		events: ProgressEvents,
		untried: readonly string[],
		use: (handle: OpenSocketHandle) => void,
	): void => {
		const [path, ...rest] = proven === undefined ? untried : [proven];
		if (path === undefined) {
			refusedForGood = proven === undefined;
			events.onLost();
			return;
		}
		const url = `${wsBaseUrl}${path}?authorization=${encodeURIComponent(token.toWellFormed())}`;
		const onEnd = ({ opened }: { readonly opened: boolean }): void => {
			if (opened || proven !== undefined) events.onLost();
			else attempt(taskId, token, events, rest, use);
		};
		try {
			const handle = openSocket(url, {
				onOpen: () => {
					proven = path;
				},
				onText: (text) => {
					const info = readMessage(text);
					if (info?.taskId === taskId) events.onInfo(info);
				},
				onEnd,
			});
			use(handle);
		} catch {
			// The runtime refuses some addresses by throwing, which is no reason to fail the task either.
			onEnd({ opened: false });
		}
	};

	return {
		get available() {
			return !refusedForGood;
		},
		open: (taskId, token, events) => {
			let current: OpenSocketHandle | undefined;
			let closed = false;
			attempt(taskId, token, events, paths, (handle) => {
				current = handle;
				if (closed) handle.close();
			});
			return {
				close: () => {
					closed = true;
					current?.close();
				},
			};
		},
	};
}

/** A message holds one task info (§6.1); anything else is passed over. */
function readMessage(text: string): TaskInfo | undefined {
	const message = parseJson(text);
	return isJsonObject(message) ? readTaskInfo(message.flow_task_info) : undefined;
}
