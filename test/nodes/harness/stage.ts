import type { INodeParameters } from 'n8n-workflow';

import { startPlatform, type LocalPlatform, type PlatformOptions } from '../../platform';
import {
	createHarness,
	type Harness,
	type HarnessOptions,
	type HarnessRun,
	type ItemInput,
	type LiveRun,
	type RunOptions,
	type SingleNode,
	type WorkflowJson,
} from '.';
import { createDataTables, type DataTables } from './dataTables';

/** A local platform, and n8n-core with the built nodes, connected by real sockets. */
export interface PlatformStage {
	readonly platform: LocalPlatform;
	readonly harness: Harness;
	/** The contents of n8n's Data Tables. */
	readonly tables: DataTables;
	/** Clears the platform's books and faults and the tables. */
	reset(): void;
	close(): Promise<void>;
}

type Account = Record<string, string | boolean>;
type RunSettings = Pick<RunOptions, 'executeWorkflow' | 'mode' | 'startNode' | 'streaming'> & {
	/** Credential fields that override the defaults. */
	account?: Account;
};
/** Settings of a node and of its run. */
export type NodeSettings = Partial<SingleNode> & RunSettings;

/** A platform stage for one node. */
export interface NodeStage<Type extends string> extends PlatformStage {
	readonly credentials: Record<Type, Account>;
	/** A workflow with the node as its only one, with the parameters of its fixture by default. */
	workflow(parameters?: INodeParameters, settings?: Partial<SingleNode>): WorkflowJson;
	start(items: ItemInput[], parameters?: INodeParameters, settings?: NodeSettings): Promise<LiveRun>;
	run(...of: Parameters<NodeStage<Type>['start']>): Promise<HarnessRun>;
	/** Runs a workflow that consists of more than the node. */
	runWorkflow(workflow: WorkflowJson, items?: ItemInput[], settings?: RunSettings): Promise<HarnessRun>;
}

export async function openPlatform(
	options: PlatformOptions = {},
	nodes: HarnessOptions['nodes'] = [],
): Promise<PlatformStage> {
	// The harness is created first, because it also controls the platform's time.
	const harness = await createHarness({ nodes });
	const platform = await startPlatform({ images: 'prepared', seed: 1, ...options });
	let tables = createDataTables();
	return {
		platform,
		harness,
		get tables() {
			return tables;
		},
		reset: () => {
			platform.faults.clear();
			platform.resetBooks();
			tables = createDataTables();
		},
		close: async () => {
			await harness.close();
			await platform.close();
		},
	};
}

export function forNode<Type extends string>(
	stage: PlatformStage,
	credentials: Record<Type, Account>,
	workflow: NodeStage<Type>['workflow'],
): NodeStage<Type> {
	const { harness } = stage;
	const optionsFor = ({ account, executeWorkflow = stage.tables.executeWorkflow, ...how }: RunSettings) => ({
		credentials: Object.fromEntries(
			Object.entries<Account>(credentials).map(([type, fields]) => [type, { ...fields, ...account }]),
		),
		executeWorkflow,
		...how,
	});
	const start: NodeStage<Type>['start'] = async (items, parameters, settings = {}) => {
		const { account, executeWorkflow, mode, startNode, streaming, ...node } = settings;
		const options = optionsFor({ account, executeWorkflow, mode, startNode, streaming });
		return await harness.start({ workflow: workflow(parameters, node), items, ...options });
	};
	return Object.assign(stage, {
		credentials,
		workflow,
		start,
		run: async (...of: Parameters<typeof start>) => await (await start(...of)).done,
		runWorkflow: async (of: WorkflowJson, items?: ItemInput[], settings: RunSettings = {}) =>
			await harness.run({ workflow: of, items, ...optionsFor(settings) }),
	});
}

type Open<Stage, Options extends unknown[]> = (...options: Options) => Promise<Stage>;

/** A stage that is opened before the tests of a file or block and reset before each of them. */
export function sharedStage<Stage extends PlatformStage, Options extends unknown[]>(
	open: Open<Stage, Options>,
	...options: Options
): Stage {
	let stage: Stage;
	beforeAll(async () => {
		stage = await open(...options);
	});
	afterAll(async () => await stage.close());
	beforeEach(() => stage.reset());
	return whicheverIsOpen(() => stage);
}

/** A stage that is opened for each test of a file or block. */
export function freshStage<Stage extends PlatformStage, Options extends unknown[]>(
	open: Open<Stage, Options>,
	...options: Options
): Stage {
	let stage: Stage;
	beforeEach(async () => {
		stage = await open(...options);
	});
	afterEach(async () => await stage.close());
	return whicheverIsOpen(() => stage);
}

function whicheverIsOpen<Stage extends object>(current: () => Stage): Stage {
	return new Proxy<Stage>(Object.create(null), {
		get: (_target, name): unknown => Reflect.get(current(), name),
	});
}

export const RETRY = { retryOnFail: true, maxTries: 3, waitBetweenTries: 1 } as const;

/** Items with the field `say`. */
export function sayings(...texts: string[]): ItemInput[] {
	return texts.map((say) => ({ json: { say } }));
}

/** All text of an execution: items, errors, hints, logs and chunks. */
export function everythingSaid(run: HarnessRun): string {
	return JSON.stringify([run.stored, run.raw.data.resultData, run.error, run.logs, run.chunks]);
}

/** A PNG of one pixel. */
export const PIXEL = Buffer.from(
	'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
	'base64',
);
