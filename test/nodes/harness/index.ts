import { CredentialTestContext, FileLocation } from 'n8n-core';
import {
	createRunExecutionData,
	NodeHelpers,
	type IBinaryData,
	type ICredentialDataDecryptedObject,
	type INodeCredentialTestResult,
	type INodeExecutionData,
	type IWorkflowBase,
	type WorkflowExecuteMode,
} from 'n8n-workflow';
import path from 'node:path';
import { ActiveTrigger } from './active.trigger';
import type { ExecuteWorkflow } from './additional.data';
import type { CredentialStore } from './credentials.helper';
import { dataForResume, dataForRetry, Executor, type LiveRun } from './execution';
import { acquireHost, releaseHost, type Host, type Passing } from './host';
import type { LogLine } from './log.capture';
import type { HarnessRun } from './run.result';
import { TypeRegistry, type NodeClass } from './type.registry';
import { buildWorkflow, findStartNode, savedWorkflow, type WorkflowJson } from './workflow.json';

export type { ActiveTrigger, ExecuteWorkflow, CredentialStore, LiveRun, LogLine, HarnessRun, WorkflowJson };
export { stopwatch, type Stopwatch } from './stopwatch';
export {
	NODE_NAME,
	repeated,
	singleNode,
	to,
	toolOf,
	TRIGGER_NAME,
	type NodeJson,
	type SingleNode,
} from './workflow.json';

/** A binary property given as bytes, which is stored in n8n's binary store before the run starts. */
export interface BinaryInput {
	data: Buffer;
	fileName?: string;
	mimeType?: string;
}

export type ItemInput = Omit<INodeExecutionData, 'json' | 'binary'> & {
	json?: INodeExecutionData['json'];
	binary?: Record<string, BinaryInput | IBinaryData>;
};

export interface HarnessOptions {
	/** Node types of the test. A `description.name` "x" is registered as "harness.x"; a name with a dot is kept. */
	nodes?: NodeClass[];
	/** How time passes; by default quickly, which needs jest. */
	passTime?: Passing;
}

export interface RunOptions {
	workflow: WorkflowJson;
	/** The items that the trigger outputs; by default, one empty item. */
	items?: ItemInput[];
	/** Decrypted data by credential type or ID. Nodes without credentials get those of their types. */
	credentials?: CredentialStore;
	/** Default: a production run by a trigger. Messages to the UI require "manual". */
	mode?: WorkflowExecuteMode;
	startNode?: string;
	/** Streams as for a chat or a streaming webhook: `isStreaming()` is true in manual, webhook and chat mode. */
	streaming?: boolean;
	/** Executes inline sub-workflows; by default, as an n8n without Data Tables. */
	executeWorkflow?: ExecuteWorkflow;
}

const REPOSITORY = path.resolve(__dirname, '../../..');

export class Harness {
	private readonly triggers: ActiveTrigger[] = [];

	constructor(
		/** Full names of the package's node types. */
		readonly packageNodes: string[],
		private readonly types: TypeRegistry,
		private readonly host: Host,
		private readonly executor = new Executor(types, host),
	) {}

	/** Lines that n8n logged outside any run, such as while it loaded the package. */
	get logs(): LogLine[] {
		return this.host.logs;
	}

	/** Runs a workflow until success, error or waiting. Rejects only if the harness itself fails. */
	async run(options: RunOptions): Promise<HarnessRun> {
		const live = await this.start(options);
		return await live.done;
	}

	async start(options: RunOptions): Promise<LiveRun> {
		const { items = [{}], credentials = {}, mode = 'trigger', streaming, executeWorkflow } = options;
		const workflow = this.save(options.workflow, credentials);
		const executionId = this.executor.nextExecutionId();
		const startNode = findStartNode(buildWorkflow(workflow, this.types), options.startNode);
		const stored = await Promise.all(
			items.map(
				async (item) => await this.storeItem(item, FileLocation.ofExecution(workflow.id, executionId)),
			),
		);
		const nodeExecutionStack = [{ node: startNode, data: { main: [stored] }, source: null }];
		const data = createRunExecutionData({ executionData: { nodeExecutionStack } });
		const request = { executionId, workflow, data, mode, credentials };
		return this.executor.start({ ...request, streaming, executeWorkflow });
	}

	/** Retries with `edited`, like "Retry with currently saved workflow", or else with the workflow that ran. */
	async retry(run: HarnessRun, edited?: WorkflowJson): Promise<HarnessRun> {
		const workflow = edited && this.save(edited, run.origin.credentials);
		const data = dataForRetry(run, workflow && buildWorkflow(workflow, this.types));
		const executionId = this.executor.nextExecutionId();
		const request = { ...run.origin, ...(workflow && { workflow }), mode: 'retry' } as const;
		return await this.executor.start({ ...request, data, executionId, retryOf: run.executionId }).done;
	}

	/** Resumes a suspended execution as n8n would, but without waiting for its time. */
	async resume(run: HarnessRun): Promise<HarnessRun> {
		const data = dataForResume(run);
		return await this.executor.start({ ...run.origin, data, restartExecutionId: run.executionId }).done;
	}

	/** Activates a workflow: its trigger runs until it is closed, and each `emit` starts an execution. */
	async activate({
		workflow: json,
		credentials = {},
	}: Pick<RunOptions, 'workflow' | 'credentials'>): Promise<ActiveTrigger> {
		const saved = this.save(json, credentials);
		const workflow = buildWorkflow(saved, this.types);
		const trigger = new ActiveTrigger({
			executor: this.executor,
			saved,
			workflow,
			node: findStartNode(workflow),
			credentials,
			additionalData: this.executor.outsideExecutions(saved, credentials),
		});
		this.triggers.push(trigger);
		await trigger.open();
		return trigger;
	}

	/** Tests a credential as its form does. Mirrors credentials-tester.service of n8n's `cli` package. */
	async testCredential(
		type: string,
		data: ICredentialDataDecryptedObject,
	): Promise<INodeCredentialTestResult> {
		if (this.types.getCredentialType(type).test) throw new Error(`The test of ${type} is not a function`);
		for (const name of this.packageNodes) {
			const node = NodeHelpers.getVersionedNodeType(this.types.getByName(name));
			const used = (node.description.credentials ?? []).find((credential) => credential.name === type);
			const test =
				typeof used?.testedBy === 'string' ? node.methods?.credentialTest?.[used.testedBy] : undefined;
			if (!test) continue;
			const saved = savedWorkflow({ nodes: [], connections: {} }, this.types);
			const additionalData = this.executor.outsideExecutions(saved, { [type]: data });
			const withDefaults = await additionalData.credentialsHelper.getDecrypted(
				additionalData,
				{ id: type, name: type },
				type,
				'internal',
			);
			const context = new CredentialTestContext(additionalData);
			return await test.call(context, { id: type, name: type, type, data: withDefaults });
		}
		throw new Error(`No node tests ${type}`);
	}

	/** Cancels everything that is still running and removes the temporary folder with all binary data. */
	async close(): Promise<void> {
		await Promise.allSettled(this.triggers.map(async (trigger) => await trigger.close()));
		await this.executor.stopAll();
		await releaseHost();
	}

	private save(json: WorkflowJson, credentials: CredentialStore): IWorkflowBase {
		const workflow = savedWorkflow(json, this.types);
		for (const node of workflow.nodes) {
			if (node.credentials) continue;
			const { description } = this.types.getByNameAndVersion(node.type, node.typeVersion);
			const given = (description.credentials ?? []).filter(({ name }) => credentials[name]);
			if (given.length > 0) {
				node.credentials = Object.fromEntries(given.map(({ name }) => [name, { id: name, name }]));
			}
		}
		return workflow;
	}

	private async storeItem(
		{ json = {}, binary, ...rest }: ItemInput,
		location: ReturnType<typeof FileLocation.ofExecution>,
	): Promise<INodeExecutionData> {
		if (!binary) return { ...rest, json };
		const stored = await Promise.all(
			Object.entries(binary).map(async ([name, input]): Promise<[string, IBinaryData]> => {
				if (!isBytes(input)) return [name, input];
				const { data, fileName, mimeType = 'application/octet-stream' } = input;
				return [name, await this.host.binaryData.store(location, data, { data: '', fileName, mimeType })];
			}),
		);
		return { ...rest, json, binary: Object.fromEntries(stored) };
	}
}

/**
 * Loads n8n's services and the package, which is slow: call it in `beforeAll`, and `close()` in `afterAll`.
 *
 * ```ts
 * const run = await harness.run({
 * 	workflow: singleNode({ type: 'n8n-nodes-flowtask.flowTask', parameters: { operation: 'run' } }),
 * 	items: [{ json: { prompt: 'a cat' }, binary: { data: { data: bytes, mimeType: 'image/png' } } }],
 * 	credentials: { flowPlatformApi: { apiKey: 'sk-test', baseUrl: platform.url } },
 * });
 * expect(run.status).toBe('success');
 * const picture = await run.binary(run.output('Node')[0]);
 * ```
 *
 * It runs the package's built files, so run `npm run build` first.
 */
export async function createHarness(options: HarnessOptions = {}): Promise<Harness> {
	const host = await acquireHost(options.passTime);
	try {
		const types = new TypeRegistry(options.nodes ?? []);
		const packageNodes = await types.loadPackage(REPOSITORY);
		return new Harness(packageNodes, types, host);
	} catch (error) {
		await releaseHost();
		throw error;
	}
}

function isBytes(input: BinaryInput | IBinaryData): input is BinaryInput {
	return Buffer.isBuffer(input.data);
}
