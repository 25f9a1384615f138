import type { DialectName } from './agents/dialects';
import type { Agent, AgentOptions } from './agents/instances';
import type { Books } from './books';
import type { ChatControl } from './chat/holds';
import type { BridgeChannel, ChannelOptions } from './bridge/channel';
import type { FaultControl } from './faults/faultBoard';
import type { ParameterView } from './hosting/parameterView';
import type { HostedWorkflow } from './hosting/workflow';
import type { AssetKind } from './owners';
import type { OuterStatus } from './service/agentDelivery';
import type { TimeSource } from './time';

export interface PlatformOptions {
	/** Of the API; 0 or missing: a free port. */
	port?: number;
	/** Of the file host; 0 or missing: a free port. */
	filePort?: number;
	/** Tasks that run at once; default 4. */
	runners?: number;
	/** Time of one sampler step; default 5. */
	stepMs?: number;
	/** Run time of every task, in place of steps × stepMs; 0: a task is done as it is submitted. */
	taskMs?: number;
	/** `prepared`: one cached picture for each size, for load tests; default `render`. */
	pictures?: 'render' | 'prepared';
	/** Result files have at least this many bytes and are valid images still. */
	fileBytes?: number;
	/** The line of the file host: all downloads together get so many bytes a second; 0 or missing: no limit. */
	fileBytesPerSecond?: number;
	/** Request-frequency limit of each API key; 0 or missing: none. */
	requestsPerSecond?: number;
	/**
	 * How that limit is counted: `bucket` (default) saves up for one second; a window lets the same number through in each
	 * stretch of `limitWindowSeconds`, by the clock or any.
	 */
	limitCounts?: 'bucket' | 'fixedWindow' | 'slidingWindow';
	/** Default 1. */
	limitWindowSeconds?: number;
	/** So many requests of each API key under way at once; default: no limit. */
	requestsAtOnce?: number;
	/** All keys together have the limits of one, as the keys of an account may. */
	limitIsShared?: boolean;
	/** Whether a refusal for too many requests says when to come back (`Retry-After`); default true. */
	tellsRetryAfter?: boolean;
	/** What it says, whatever would be right; default: the seconds until one may pass. */
	retryAfterSeconds?: number;
	/** For everything random, faults included; default 1. */
	seed?: number;
	/** The key of the owner `default`, for a platform that is started again and again; it begins with `sk-`. */
	apiKey?: string;
	/** Which path forms of the progress WebSocket exist; default `both`. */
	progressPaths?: 'both' | 'mass/api' | 'api/mass';
	/** How long a prompt token is good; default 24 hours. */
	promptTokenSeconds?: number;
	/** The token of the agent `default`, for a platform that is started again and again; it begins with `agt_`. */
	agentToken?: string;
	/** How the agent `default` words its wire; default `usual`. */
	agentDialect?: DialectName;
	/** The outer HTTP status of the agent service's failures: 200, or the envelope's; default `always200`. */
	agentOuterStatus?: OuterStatus;
	/** How long the URL of an uploaded file is good; default one hour. */
	mediaSeconds?: number;
	/** The largest file for agents; default 20 MiB. */
	mediaMaxBytes?: number;
	/** Types of files for agents, such as `image/png` or `image/*`; default: all. */
	mediaTypes?: readonly string[];
	/** Whether the chat service lists its models; default true. */
	models?: boolean;
	/** Default: the system's. */
	time?: TimeSource;
}

export interface LocalPlatform {
	readonly apiUrl: string;
	readonly wsUrl: string;
	/** The file host: another origin than the API. */
	readonly fileUrl: string;
	/** The key of the owner `default`. */
	readonly apiKey: string;
	createOwner(name: string): { apiKey: string };
	/** Uploads a private model; the answer is the name that workflows use for it. */
	addAsset(kind: AssetKind, name: string, options?: { apiKey?: string }): string;
	/** Throws WorkflowRefused. `exported` is the file's content, parsed or as text. */
	hostWorkflow(
		exported: unknown,
		options?: { apiKey?: string; workflowId?: string },
	): Promise<HostedWorkflow>;
	parameterView(workflowId: string): ParameterView;
	/** Creates a WebSocket channel account (§5.4). */
	createChannel(options?: ChannelOptions): BridgeChannel;
	/** The agent `default`. */
	readonly agent: Agent;
	/** Its token. */
	readonly agentToken: string;
	createAgent(options?: AgentOptions): Agent;
	readonly faults: FaultControl;
	/** Lets go on what `[hold after: n]` holds. */
	readonly chat: ChatControl;
	books(): Books;
	resetBooks(): void;
	/** Stops everything and cuts every open socket. */
	close(): Promise<void>;
}
