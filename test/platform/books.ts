import { createHash } from 'node:crypto';
import type { Agenda } from './agenda';
import { AgentBooks } from './agents/agentBooks';
import type { AgentRecords } from './agents/agentBooks';
import { BridgeBookKeeper } from './bridge/bridgeBooks';
import type { BridgeBooks } from './bridge/bridgeBooks';
import { ChatLedger } from './chat/ledger';
import type { ChatEntry } from './chat/ledger';
import type { Owner } from './owners';
import { isFinished, STATUS } from './tasks/task';
import type { Task } from './tasks/task';
import { canonicalJson } from './wireJson';

export type RequestKind =
	| 'submit'
	| 'info'
	| 'upload'
	| 'file'
	| 'socket'
	| 'bridge'
	| 'trap'
	| 'invoke'
	| 'media'
	| 'mediaFile'
	| 'chat'
	| 'models'
	| 'other';

export interface TaskEntry {
	taskId: string;
	owner: string;
	workflowId: string;
	/** The overrides as they were sent; integers above 2^53 keep their digits in JSON. */
	prompt: Record<string, unknown>;
	status: number;
	errMsg: string;
	submittedAtMs: number;
	startedAtMs: number | null;
	finishedAtMs: number | null;
	/** Whether the whole answer to the submit was sent. */
	answer: 'whole' | 'notDelivered';
}

export interface PollEntry {
	atMs: number;
	owner: string;
	ids: string[];
	/** The number of the owner's unfinished tasks at this moment. */
	unfinished: number;
}

export interface UploadEntry {
	imageId: string;
	owner: string;
	filename: string;
	contentType: string;
	bytes: number;
	sha256: string;
	atMs: number;
}

/** The result files that were sent whole, as the line sees them. */
export interface DownloadLine {
	bytes: number;
	/** When the first one was requested and when the last one had been sent; null if there was none. */
	fromMs: number | null;
	untilMs: number | null;
}

export interface SocketCounts {
	opened: number;
	refused: number;
	open: number;
	maxOpen: number;
}

/** The record of what really happened, for tests to assert on. */
export interface Books extends AgentRecords {
	requests: Record<RequestKind, number>;
	/** Each path that was called, listed once; the file host's as `/files/…`. */
	paths: string[];
	tasks: TaskEntry[];
	tasksMade: number;
	/** The number of tasks with the owner, workflow and prompt of an earlier one that had not failed. */
	duplicates: number;
	/** The number of tasks whose submit answer was not sent whole. */
	undeliveredSubmits: number;
	/** The number of submits after which the caller cannot tell whether a task was created. */
	unclearSubmits: number;
	polls: PollEntry[];
	maxIdsInPoll: number;
	sockets: SocketCounts;
	uploads: UploadEntry[];
	/** The chat requests that were carried out, in their order. */
	chats: ChatEntry[];
	/** The number of result files that were sent whole. */
	downloads: number;
	downloadLine: DownloadLine;
	/** Secrets that arrived at a place where they must not. */
	leaks: Array<{ where: string; header: string }>;
	/** The number of injected faults by kind. */
	faults: Record<string, number>;
	unauthorized: number;
	rateLimited: number;
	bridge: BridgeBooks;
}

const MAX_PATHS = 500;

/** What the keeper counts itself; tasks, chats, agents and the bridge have entries elsewhere. */
type Counts = Omit<
	Books,
	'tasks' | 'tasksMade' | 'undeliveredSubmits' | 'chats' | 'bridge' | keyof AgentRecords
>;

function nothingCounted(openSockets: number): Counts {
	return {
		requests: {
			submit: 0,
			info: 0,
			upload: 0,
			file: 0,
			socket: 0,
			bridge: 0,
			trap: 0,
			invoke: 0,
			media: 0,
			mediaFile: 0,
			chat: 0,
			models: 0,
			other: 0,
		},
		paths: [],
		duplicates: 0,
		unclearSubmits: 0,
		polls: [],
		maxIdsInPoll: 0,
		sockets: { opened: 0, refused: 0, open: openSockets, maxOpen: openSockets },
		uploads: [],
		downloads: 0,
		downloadLine: { bytes: 0, fromMs: null, untilMs: null },
		leaks: [],
		faults: {},
		unauthorized: 0,
		rateLimited: 0,
	};
}

/** Keeps the books; each entry costs the same, however many tasks there are. */
export class BookKeeper {
	#counts = nothingCounted(0);
	#tasks: Task[] = [];
	#firstTasks = new Map<string, Task>();
	// A reset does not clear this, because the tasks go on.
	readonly #unfinished = new Map<Owner, number>();

	readonly agents = new AgentBooks();

	readonly bridge: BridgeBookKeeper;
	readonly chats: ChatLedger;

	constructor(private readonly agenda: Agenda) {
		this.bridge = new BridgeBookKeeper(agenda);
		this.chats = new ChatLedger(agenda);
	}

	/** Counts an event that needs no entry. */
	count(event: 'unauthorized' | 'rateLimited' | 'unclearSubmits'): void {
		this.#counts[event]++;
	}

	request(kind: RequestKind, path: string): void {
		const { requests, paths } = this.#counts;
		requests[kind]++;
		if (paths.length < MAX_PATHS && !paths.includes(path)) paths.push(path);
	}

	taskMade(task: Task): void {
		this.#tasks.push(task);
		this.#countUnfinished(task.owner, 1);
		const { owner, workflow, prompt } = task;
		const content = canonicalJson([owner.name, workflow.workflowId, prompt]);
		const key = createHash('sha1').update(content).digest('base64');
		const earlier = this.#firstTasks.get(key);
		const failed = earlier?.status === STATUS.failed || earlier?.status === STATUS.denied;
		if (earlier !== undefined && !failed) this.#counts.duplicates++;
		else this.#firstTasks.set(key, task);
	}

	taskFinished(task: Task): void {
		this.#countUnfinished(task.owner, -1);
	}

	poll(owner: Owner, ids: readonly string[]): void {
		const counts = this.#counts;
		counts.maxIdsInPoll = Math.max(counts.maxIdsInPoll, ids.length);
		counts.polls.push({
			atMs: this.agenda.now(),
			owner: owner.name,
			ids: [...ids],
			unfinished: this.#unfinished.get(owner) ?? 0,
		});
	}

	upload(entry: Omit<UploadEntry, 'atMs'>): void {
		this.#counts.uploads.push({ ...entry, atMs: this.agenda.now() });
	}

	socketOpened(): void {
		const { sockets } = this.#counts;
		sockets.opened++;
		sockets.open++;
		sockets.maxOpen = Math.max(sockets.maxOpen, sockets.open);
	}

	socketClosed(): void {
		this.#counts.sockets.open--;
	}

	socketRefused(): void {
		this.#counts.sockets.refused++;
	}

	download(bytes: number, sinceMs: number): void {
		const { downloadLine: line } = this.#counts;
		this.#counts.downloads++;
		line.bytes += bytes;
		line.fromMs = Math.min(line.fromMs ?? sinceMs, sinceMs);
		line.untilMs = this.agenda.now();
	}

	leak(where: string, header: string): void {
		this.#counts.leaks.push({ where, header });
	}

	fault(kind: string): void {
		const { faults } = this.#counts;
		faults[kind] = (faults[kind] ?? 0) + 1;
	}

	snapshot(): Books {
		const counts = this.#counts;
		const tasks = this.#tasks.map(entryOf);
		return {
			...counts,
			requests: { ...counts.requests },
			paths: [...counts.paths],
			tasks,
			tasksMade: tasks.length,
			undeliveredSubmits: tasks.filter(({ answer }) => answer === 'notDelivered').length,
			polls: [...counts.polls],
			sockets: { ...counts.sockets },
			uploads: [...counts.uploads],
			chats: this.chats.entries(),
			...this.agents.snapshot(),
			downloadLine: { ...counts.downloadLine },
			leaks: [...counts.leaks],
			faults: { ...counts.faults },
			bridge: this.bridge.snapshot(),
		};
	}

	/** Starts new books, which still contain open sockets. */
	reset(): void {
		this.#counts = nothingCounted(this.#counts.sockets.open);
		this.#tasks = [];
		this.#firstTasks = new Map();
		this.chats.reset();
		this.agents.reset();
		this.bridge.reset();
	}

	#countUnfinished(owner: Owner, more: number): void {
		this.#unfinished.set(owner, (this.#unfinished.get(owner) ?? 0) + more);
	}
}

function entryOf(task: Task): TaskEntry {
	return {
		taskId: task.id,
		owner: task.owner.name,
		workflowId: task.workflow.workflowId,
		prompt: task.prompt,
		status: task.status,
		errMsg: task.errMsg,
		submittedAtMs: task.submittedAtMs,
		startedAtMs: task.startedAtMs ?? null,
		finishedAtMs: isFinished(task) ? (task.finishesAtMs ?? null) : null,
		answer: task.delivered ? 'whole' : 'notDelivered',
	};
}
