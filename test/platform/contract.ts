import type { Agent, AgentOptions } from './agents/instances';
import type { Books } from './books';
import type { ChatControl } from './chat/holds';
import type { BridgeChannel, ChannelOptions } from './bridge/channel';
import type { FaultControl } from './faults/faultBoard';
import type { ParameterView } from './hosting/parameterView';
import type { HostedWorkflow } from './hosting/workflow';
import type { OuterStatus } from './service/agentDelivery';
import type { TimeSource } from './time';

export interface PlatformOptions {
	/** The port of the API; 0 or missing: a free port. */
	port?: number;
	/** The port of the file host; 0 or missing: a free port. */
	filePort?: number;
	/** How many tasks run at once; default 4. */
	runners?: number;
	/** The run time of every task; default: 5 for each sampler step; 0: a task is done when it is submitted. */
	taskMs?: number;
	/** How images are made; `prepared`: one cached image for each size, for load tests; default `render`. */
	images?: 'render' | 'prepared';
	/** The minimum size of result files, which remain valid images. */
	fileBytes?: number;
	/** The bandwidth of the file host, which all downloads share; 0 or missing: no limit. */
	fileBytesPerSecond?: number;
	/** The request-frequency limit of each API key; 0 or missing: none. */
	requestsPerSecond?: number;
	/**
	 * How that limit is counted: a `bucket` (default) saves up for one second; a window lets the same number through in each
	 * second, fixed by the clock or sliding.
	 */
	limitCounts?: 'bucket' | 'fixedWindow' | 'slidingWindow';
	/** Whether all keys share the limits of one, as the keys of an account may. */
	limitIsShared?: boolean;
	/** Whether a refusal for too many requests says when to retry (`Retry-After`); default true. */
	tellsRetryAfter?: boolean;
	/** The value of `Retry-After`, right or wrong; default: the seconds until a request may pass. */
	retryAfterSeconds?: number;
	/** The seed of everything random, faults included; default 1. */
	seed?: number;
	/** The key of the owner `default`, for a platform that is started again and again; it begins with `sk-`. */
	apiKey?: string;
	/** The token of the agent `default`, for a platform that is started again and again; it begins with `agt_`. */
	agentToken?: string;
	/** The outer HTTP status of the agent service's failures: 200, or the envelope's; default `always200`. */
	agentOuterStatus?: OuterStatus;
	/** The largest file for agents; default 20 MiB. */
	mediaMaxBytes?: number;
	/** The allowed types of files for agents, such as `image/png` or `image/*`; default: all. */
	mediaTypes?: readonly string[];
	/** The source of time; default: the system's. */
	time?: TimeSource;
}

export interface LocalPlatform {
	readonly apiUrl: string;
	readonly wsUrl: string;
	/** The address of the file host, which has a different origin from the API. */
	readonly fileUrl: string;
	/** The key of the owner `default`. */
	readonly apiKey: string;
	createOwner(name: string): { apiKey: string };
	/** Hosts a workflow. Throws WorkflowRefused. @param exported the file's content, parsed or as text */
	hostWorkflow(
		exported: unknown,
		options?: { apiKey?: string; workflowId?: string },
	): Promise<HostedWorkflow>;
	parameterView(workflowId: string): ParameterView;
	/** Creates a WebSocket channel account (§5.4). */
	createChannel(options?: ChannelOptions): BridgeChannel;
	/** The agent `default`. */
	readonly agent: Agent;
	/** The token of the agent `default`. */
	readonly agentToken: string;
	createAgent(options?: AgentOptions): Agent;
	readonly faults: FaultControl;
	/** Releases the answers that `[hold after: n]` holds. */
	readonly chat: ChatControl;
	books(): Books;
	resetBooks(): void;
	/** Stops everything and cuts every open socket. */
	close(): Promise<void>;
}
