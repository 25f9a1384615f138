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

export const REQUEST_KINDS = [
	'submit',
	'info',
	'upload',
	'file',
	'socket',
	'bridge',
	'trap',
	'invoke',
	'media',
	'mediaFile',
	'chat',
	'models',
	'other',
] as const;
export type RequestKind = (typeof REQUEST_KINDS)[number];

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
	/** The number of IDs that do not belong to a task of this owner. */
	unknown: number;
	/** The number of the owner's unfinished tasks at this moment. */
	unfinished: number;
	/** The number of those whose submit answer was sent whole; the caller can know no others. */
	unfinishedKnown: number;
	/** The number of those that this poll asked for. */
	unfinishedAsked: number;
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

const IDLE_LINE: DownloadLine = { bytes: 0, fromMs: null, untilMs: null };

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

interface Unfinished {
	all: number;
	known: number;
}

/** Keeps the books; each entry costs the same, however many tasks there are. */
export class BookKeeper {
	#requests = new Map<RequestKind, number>();
	#paths = new Set<string>();
	#tasks: Task[] = [];
	#firstTasks = new Map<string, Task>();
	#duplicates = 0;
	#polls: PollEntry[] = [];
	#maxIdsInPoll = 0;
	#sockets: SocketCounts = { opened: 0, refused: 0, open: 0, maxOpen: 0 };
	#uploads: UploadEntry[] = [];
	#downloads = 0;
	#downloadLine: DownloadLine = { ...IDLE_LINE };
	#leaks: Books['leaks'] = [];
	#faults = new Map<string, number>();
	#unauthorized = 0;
	#unclearSubmits = 0;
	#rateLimited = 0;
	// A reset does not clear this, because the tasks go on.
	readonly #unfinished = new Map<Owner, Unfinished>();

	readonly agents = new AgentBooks();

	readonly bridge: BridgeBookKeeper;
	readonly chats: ChatLedger;

	constructor(private readonly agenda: Agenda) {
		this.bridge = new BridgeBookKeeper(agenda);
		this.chats = new ChatLedger(agenda);
	}

	request(kind: RequestKind, path: string): void {
		this.#requests.set(kind, (this.#requests.get(kind) ?? 0) + 1);
		if (this.#paths.size < MAX_PATHS) this.#paths.add(path);
	}

	submitLeftUnclear(): void {
		this.#unclearSubmits++;
	}

	taskMade(task: Task): void {
		this.#tasks.push(task);
		this.#unfinishedOf(task.owner).all++;
		const { owner, workflow, prompt } = task;
		const content = canonicalJson([owner.name, workflow.workflowId, prompt]);
		const key = createHash('sha1').update(content).digest('base64');
		const earlier = this.#firstTasks.get(key);
		const failed = earlier?.status === STATUS.failed || earlier?.status === STATUS.denied;
		if (earlier !== undefined && !failed) this.#duplicates++;
		else this.#firstTasks.set(key, task);
	}

	taskDelivered(task: Task): void {
		task.delivered = true;
		if (!isFinished(task)) this.#unfinishedOf(task.owner).known++;
	}

	taskFinished(task: Task): void {
		const unfinished = this.#unfinishedOf(task.owner);
		unfinished.all--;
		if (task.delivered) unfinished.known--;
	}

	/** Notes a poll. @param tasks the owner's tasks among the requested IDs */
	poll(owner: Owner, ids: readonly string[], tasks: readonly Task[]): void {
		const unfinished = this.#unfinishedOf(owner);
		this.#maxIdsInPoll = Math.max(this.#maxIdsInPoll, ids.length);
		this.#polls.push({
			atMs: this.agenda.now(),
			owner: owner.name,
			ids: [...ids],
			unknown: ids.length - tasks.length,
			unfinished: unfinished.all,
			unfinishedKnown: unfinished.known,
			unfinishedAsked: tasks.filter((task) => !isFinished(task)).length,
		});
	}

	upload(entry: Omit<UploadEntry, 'atMs'>): void {
		this.#uploads.push({ ...entry, atMs: this.agenda.now() });
	}

	socketOpened(): void {
		this.#sockets.opened++;
		this.#sockets.open++;
		this.#sockets.maxOpen = Math.max(this.#sockets.maxOpen, this.#sockets.open);
	}

	socketClosed(): void {
		this.#sockets.open--;
	}

	socketRefused(): void {
		this.#sockets.refused++;
	}

	download(bytes: number, sinceMs: number): void {
		this.#downloads++;
		const line = this.#downloadLine;
		line.bytes += bytes;
		line.fromMs = Math.min(line.fromMs ?? sinceMs, sinceMs);
		line.untilMs = this.agenda.now();
	}

	leak(where: string, header: string): void {
		this.#leaks.push({ where, header });
	}

	fault(kind: string): void {
		this.#faults.set(kind, (this.#faults.get(kind) ?? 0) + 1);
	}

	unauthorized(): void {
		this.#unauthorized++;
	}

	rateLimited(): void {
		this.#rateLimited++;
	}

	snapshot(): Books {
		const tasks = this.#tasks.map(entryOf);
		return {
			requests: countRequests(this.#requests),
			paths: [...this.#paths],
			tasks,
			tasksMade: tasks.length,
			duplicates: this.#duplicates,
			undeliveredSubmits: tasks.filter(({ answer }) => answer === 'notDelivered').length,
			unclearSubmits: this.#unclearSubmits,
			polls: [...this.#polls],
			maxIdsInPoll: this.#maxIdsInPoll,
			sockets: { ...this.#sockets },
			uploads: [...this.#uploads],
			chats: this.chats.entries(),
			...this.agents.snapshot(),
			downloads: this.#downloads,
			downloadLine: { ...this.#downloadLine },
			leaks: [...this.#leaks],
			faults: Object.fromEntries(this.#faults),
			unauthorized: this.#unauthorized,
			rateLimited: this.#rateLimited,
			bridge: this.bridge.snapshot(),
		};
	}

	/** Starts new books, which still contain open sockets. */
	reset(): void {
		this.#requests = new Map();
		this.#paths = new Set();
		this.#tasks = [];
		this.#firstTasks = new Map();
		this.#duplicates = 0;
		this.#polls = [];
		this.#maxIdsInPoll = 0;
		const { open } = this.#sockets;
		this.#sockets = { opened: 0, refused: 0, open, maxOpen: open };
		this.#uploads = [];
		this.chats.reset();
		this.agents.reset();
		this.#downloads = 0;
		this.#downloadLine = { ...IDLE_LINE };
		this.#leaks = [];
		this.#faults = new Map();
		this.#unauthorized = 0;
		this.#unclearSubmits = 0;
		this.#rateLimited = 0;
		this.bridge.reset();
	}

	#unfinishedOf(owner: Owner): Unfinished {
		const known = this.#unfinished.get(owner);
		if (known !== undefined) return known;
		const none = { all: 0, known: 0 };
		this.#unfinished.set(owner, none);
		return none;
	}
}

function countRequests(counts: ReadonlyMap<RequestKind, number>): Record<RequestKind, number> {
	const of = (kind: RequestKind): number => counts.get(kind) ?? 0;
	return {
		submit: of('submit'),
		info: of('info'),
		upload: of('upload'),
		file: of('file'),
		socket: of('socket'),
		bridge: of('bridge'),
		trap: of('trap'),
		invoke: of('invoke'),
		media: of('media'),
		mediaFile: of('mediaFile'),
		chat: of('chat'),
		models: of('models'),
		other: of('other'),
	};
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
