import { WebSocketServer } from 'ws';
import type { WebSocket } from 'ws';
import type { Fault } from '../faults/faultBoard';
import { isFinished, nextStepAtMs } from '../tasks/task';
import type { Task } from '../tasks/task';
import { taskInfo } from '../tasks/taskInfo';
import type { TaskInfo } from '../tasks/taskInfo';
import { linkSeconds, spoilData, spoilInfo } from './answerFaults';
import type { Parts } from './parts';
import { refuseUpgrade } from './upgrades';
import type { Upgrade, UpgradeRouter } from './upgrades';

const LINK_SECONDS = 600;
/** The shortest time between two messages, however short the steps are. */
const MIN_MESSAGE_GAP_MS = 10;

const PATHS = ['/mass/api/flow_task_api/get_task_progress', '/api/mass/flow_task_api/get_task_progress'];

const GARBAGE = [
	'<html>proxy error</html>',
	'{"flow_task_info":',
	'{"flow_task_info":[]}',
	'{"flow_task_info":null}',
	'null',
	'{"hello":"world"}',
];

interface Watcher {
	readonly task: Task;
	readonly socket: WebSocket;
	readonly faults: readonly Fault[];
	sent: number;
	lastSent: string;
}

/** A text that changes if a message is worth sending; a change of the queue's size alone is not. */
function signatureOf(info: TaskInfo): string {
	const { status, progress_num: progress, current_position: position, files } = info;
	return [status, progress, position, ...Object.keys(files)].join('/');
}

/** The progress WebSocket. */
export class ProgressChannel {
	readonly #server = new WebSocketServer({ noServer: true });
	readonly #watchers = new Set<Watcher>();
	readonly #ticking = new Set<Task>();
	#lookPlanned = false;

	constructor(
		private readonly parts: Parts,
		router: UpgradeRouter,
	) {
		for (const path of PATHS) router.register(path, 'socket', (upgrade) => this.#open(upgrade));
	}

	/** Called when any task has changed. Sends each watcher of a changed task one message for all changes. */
	changed(): void {
		if (this.#lookPlanned || this.#watchers.size === 0) return;
		this.#lookPlanned = true;
		queueMicrotask(() => {
			this.#lookPlanned = false;
			for (const watcher of [...this.#watchers]) this.#tell(watcher);
		});
	}

	close(): void {
		for (const client of this.#server.clients) client.terminate();
		this.#server.close();
	}

	#open(upgrade: Upgrade): void {
		const { books, desk, faults } = this.parts;
		const task = desk.withToken(upgrade.query.get('authorization') ?? '');
		if (task === undefined) {
			books.socketRefused();
			refuseUpgrade(upgrade, 401, 'prompt_token missing, invalid or expired');
			return;
		}
		const drawn = faults.draw('socket', () => task.id);
		const before = drawn.find(({ phase }) => phase === 'before');
		if (before !== undefined) {
			books.socketRefused();
			if (before.kind === 'socketRefuse') refuseUpgrade(upgrade, before.rule.status ?? 503, 'Refused');
			else if (before.kind === 'resetBefore') upgrade.socket.destroy();
			return;
		}
		this.#server.handleUpgrade(upgrade.request, upgrade.socket, upgrade.head, (socket) => {
			this.#watch({ task, socket, faults: drawn, sent: 0, lastSent: '' });
		});
	}

	#watch(watcher: Watcher): void {
		const { books } = this.parts;
		const { socket, faults } = watcher;
		books.socketOpened();
		this.#watchers.add(watcher);
		socket.on('error', () => socket.terminate());
		socket.on('close', () => {
			this.#watchers.delete(watcher);
			books.socketClosed();
		});
		if (faults.some(({ kind }) => kind === 'socketGarbage')) {
			for (const garbage of GARBAGE) socket.send(garbage);
			socket.send(Buffer.from([0, 159, 146, 150]));
		}
		this.#dropIfDue(watcher);
		this.parts.agenda.advance();
		this.#tell(watcher);
	}

	#tell(watcher: Watcher): void {
		const { parts } = this;
		const { task, socket, faults } = watcher;
		if (socket.readyState !== socket.OPEN) return;
		this.#planTick(task);
		const silent = faults.find(({ kind }) => kind === 'socketSilent');
		if (silent !== undefined && watcher.sent >= (silent.rule.after ?? 0)) return;
		const info = taskInfo(task, parts.desk, parts.links, parts.agenda, linkSeconds(LINK_SECONDS, faults));
		const signature = signatureOf(info);
		if (signature !== watcher.lastSent) {
			watcher.lastSent = signature;
			watcher.sent++;
			socket.send(JSON.stringify(spoilData({ flow_task_info: spoilInfo(info, faults) }, faults)));
			this.#dropIfDue(watcher);
		}
		if (isFinished(task)) socket.close(1000);
	}

	#dropIfDue({ socket, faults, sent }: Watcher): void {
		const drop = faults.find(({ kind }) => kind === 'socketDrop');
		if (drop === undefined || sent < (drop.rule.after ?? 1)) return;
		this.#cut(socket);
	}

	#cut(socket: WebSocket): void {
		// Everything sent before must arrive; then the connection breaks without a closing frame.
		setImmediate(() => socket.terminate());
	}

	/** Plans a change at each step of a running task while it is being watched. */
	#planTick(task: Task): void {
		if (this.#ticking.has(task)) return;
		const now = this.parts.agenda.now();
		const nextMs = nextStepAtMs(task, now);
		if (nextMs === undefined) return;
		this.#ticking.add(task);
		this.parts.agenda.at(Math.max(nextMs, now + MIN_MESSAGE_GAP_MS), () => {
			this.#ticking.delete(task);
			for (const watcher of [...this.#watchers]) if (watcher.task === task) this.#tell(watcher);
		});
	}
}
