import {
	NodeConnectionTypes,
	NodeOperationError,
	sleep,
	type ICredentialDataDecryptedObject,
	type ICredentialType,
	type IDataObject,
	type IExecuteFunctions,
	type IHttpRequestMethods,
	type IHttpRequestOptions,
	type INodeExecutionData,
	type INodeType,
	type INodeTypeDescription,
	type IRun,
	type ITriggerFunctions,
	type ITriggerResponse,
} from 'n8n-workflow';

/* Sample nodes for the harness's own tests; each does one thing that the package's nodes do. */

function describe(
	name: string,
	over: Partial<INodeTypeDescription> = {},
	parameters: string[] = [],
): INodeTypeDescription {
	return {
		displayName: name,
		name,
		group: ['transform'],
		version: 1,
		description: 'Sample',
		defaults: { name },
		inputs: [NodeConnectionTypes.Main],
		outputs: [NodeConnectionTypes.Main],
		properties: parameters.map((parameter) => ({
			displayName: parameter,
			name: parameter,
			type: 'string',
			default: '',
		})),
		...over,
	};
}

function text(context: IExecuteFunctions, parameter: string, itemIndex = 0): string {
	const value = context.getNodeParameter(parameter, itemIndex, '');
	return typeof value === 'string' ? value : '';
}

/** A credential with `authenticate` as a function, which can refuse a key with a message to the user. */
export class FunctionApi implements ICredentialType {
	name = 'functionApi';
	displayName = 'Function API';
	properties: ICredentialType['properties'] = [
		{ displayName: 'API Key', name: 'apiKey', type: 'string', default: '' },
		{ displayName: 'Base URL', name: 'baseUrl', type: 'string', default: 'http://default.invalid' },
	];

	async authenticate(
		credentials: ICredentialDataDecryptedObject,
		requestOptions: IHttpRequestOptions,
	): Promise<IHttpRequestOptions> {
		const key = credentials.apiKey;
		if (typeof key !== 'string' || !key.startsWith('sk-'))
			throw new Error(`This is no key of ${this.displayName}`);
		requestOptions.headers = { ...requestOptions.headers, Authorization: `Bearer ${key}` };
		return requestOptions;
	}
}

export class GenericApi implements ICredentialType {
	name = 'genericApi';
	displayName = 'Generic API';
	properties: ICredentialType['properties'] = [
		{ displayName: 'API Key', name: 'apiKey', type: 'string', default: '' },
		{ displayName: 'Base URL', name: 'baseUrl', type: 'string', default: 'http://default.invalid' },
	];

	authenticate: ICredentialType['authenticate'] = {
		type: 'generic',
		properties: { headers: { Authorization: '=Bearer {{$credentials.apiKey}}' } },
	};
}

/** Sends one authenticated request per item to `<baseUrl><path>`, and outputs the answer as JSON. */
export class Request implements INodeType {
	description = describe(
		'request',
		{
			credentials: [
				{ name: 'functionApi', required: false },
				{ name: 'genericApi', required: false },
			],
		},
		['credential', 'method', 'path'],
	);

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		const type = text(this, 'credential');
		const { baseUrl } = await this.getCredentials<{ baseUrl: string }>(type);
		const items: INodeExecutionData[] = [];
		for (const [item] of this.getInputData().entries()) {
			const json: IDataObject = await this.helpers.httpRequestWithAuthentication.call(this, type, {
				method: text(this, 'method', item) as IHttpRequestMethods,
				url: `${baseUrl}${text(this, 'path', item)}`,
				json: true,
			});
			items.push({ json, pairedItem: item });
		}
		return [items];
	}
}

/** Puts `url` into the binary store, as a stream or as bytes, and reads the input's file. */
export class Download implements INodeType {
	description = describe('download', {}, ['url', 'mimeType', 'encoding']);

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		const url = text(this, 'url');
		const mimeType = text(this, 'mimeType') || undefined;
		const encoding = this.getNodeParameter('encoding', 0) === 'bytes' ? 'arraybuffer' : 'stream';
		const body = await this.helpers.httpRequest({ url, encoding });
		const data = await this.helpers.prepareBinaryData(body, mimeType && 'result.png', mimeType);
		const input = await this.helpers.getBinaryDataBuffer(0, 'data').catch(() => Buffer.alloc(0));
		return [[{ json: { inputBytes: input.length }, binary: { data } }]];
	}
}

/** Counts its tries in the node context, and fails for the first `failures` tries. */
export class Flaky implements INodeType {
	description = describe('flaky', {}, ['failures', 'by']);

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		const context = this.getContext('node');
		const tries = Number(context.tries ?? 0) + 1;
		context.tries = tries;
		if (tries > Number(this.getNodeParameter('failures', 0))) return [[{ json: { tries } }]];
		if (this.getNodeParameter('by', 0) === 'item') return [[{ json: { error: `Try ${tries} failed` } }]];
		throw new NodeOperationError(this.getNode(), `Try ${tries} failed`, {
			description: 'Try again',
			itemIndex: 0,
		});
	}
}

/** Outputs one error item in each form that a node could use. */
export class ErrorItems implements INodeType {
	description = describe('errorItems');

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		const details = { taskId: 't-42', status: 4 };
		const error = new NodeOperationError(this.getNode(), 'Task t-42 failed');
		return [
			[
				{ json: { error: 'Task t-42 failed', message: 'Look at it', details }, pairedItem: { item: 0 } },
				{ json: { error: 'Task t-41 failed' }, pairedItem: 0 },
				{ json: { taskId: 't-42' }, error, pairedItem: 0 },
				{ json: { error: 'Task t-42 failed', taskId: 't-42' }, pairedItem: 0 },
				{ json: { taskId: 't-43' }, pairedItem: 0 },
			],
		];
	}
}

/** Throws regardless of "On Error". */
export class Thrower implements INodeType {
	description = describe('thrower');

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		throw new NodeOperationError(this.getNode(), 'Thrown all the same');
	}
}

/** Waits for the cancel signal, or ends by itself after a minute, and logs something afterwards. */
export class Patient implements INodeType {
	description = describe('patient');

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		this.logger.info('Task t-1 submitted');
		const signal = this.getExecutionCancelSignal();
		await sleep(60_000, signal).catch(() => {});
		this.logger.info(`Task t-1 left behind, aborted: ${String(signal?.aborted)}`);
		return [[{ json: { late: true } }]];
	}
}

/** Suspends the execution until it has polled `looks` times; outputs "Check Again" and "Done". */
export class Suspender implements INodeType {
	description = describe('suspender', { outputs: [NodeConnectionTypes.Main, NodeConnectionTypes.Main] }, [
		'looks',
	]);

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		const context = this.getContext('node');
		const looks = Number(context.looks ?? 0) + 1;
		context.looks = looks;
		if (looks > Number(this.getNodeParameter('looks', 0))) return [[], this.getInputData()];
		await this.putExecutionToWait(new Date(Date.now() + 60_000));
		return [this.getInputData(), []];
	}
}

/** Sends a message in every way that n8n has. */
export class Talker implements INodeType {
	description = describe('talker');

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		this.addExecutionHints({ message: '37 done, 2 failed', type: 'warning', location: 'outputPane' });
		this.logger.info('A line', { error: new Error('inner', { cause: new Error('root') }) });
		this.sendMessageToUI('8 %');
		const streaming = this.isStreaming();
		if (streaming) {
			this.sendChunk('begin', 0);
			this.sendChunk('item', 0, 'Hello');
			this.sendChunk('end', 0);
		}
		return [[{ json: { streaming } }]];
	}
}

/** Runs an inline sub-workflow that adds `seen: true` to its items. */
export class Caller implements INodeType {
	description = describe('caller');

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		const start = { id: 'a', name: 'Start', type: 'n8n-nodes-base.executeWorkflowTrigger', typeVersion: 1.1 };
		const fields = { id: 'b', name: 'Set', type: 'harness.set', typeVersion: 1 };
		const code = {
			id: '',
			name: 'Inline',
			active: false,
			activeVersionId: null,
			isArchived: false,
			createdAt: new Date(),
			updatedAt: new Date(),
			nodes: [
				{ ...start, position: [0, 0] as [number, number], parameters: {} },
				{ ...fields, position: [0, 0] as [number, number], parameters: { json: '={{ { seen: true } }}' } },
			],
			connections: { Start: { main: [[{ node: 'Set', type: NodeConnectionTypes.Main, index: 0 }]] } },
		};
		const { data } = await this.executeWorkflow({ code }, this.getInputData());
		return data.map((items) => items ?? []);
	}
}

/** Emits three numbered items, one of them twice, then fails for good. */
export class Ticker implements INodeType {
	description = describe('ticker', { group: ['trigger'], inputs: [] });

	async trigger(this: ITriggerFunctions): Promise<ITriggerResponse> {
		this.logger.info('Listening');
		const tick = async () => {
			for (const n of [1, 2, 2, 3]) {
				const done = this.helpers.createDeferredPromise<IRun>();
				this.emit([[{ json: { n } }]], undefined, done, `ticker-${n}`);
				await done.promise;
			}
		};
		if (this.getMode() !== 'manual') {
			void tick().then(() => this.emitError(new Error('The other side hung up')));
		}
		return {
			manualTriggerFunction: async () => this.emit([[{ json: { n: 1 } }]]),
			closeFunction: async () => this.logger.info('Closed'),
		};
	}
}

/** A node that is usable as a tool: adds two numbers, or says why it cannot. */
export class Adder implements INodeType {
	description = describe('adder', { usableAsTool: true, description: 'Adds two numbers' }, ['a', 'b']);

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		const sum = Number(text(this, 'a')) + Number(text(this, 'b'));
		if (Number.isNaN(sum)) {
			throw new NodeOperationError(this.getNode(), 'No numbers', { description: 'Give digits' });
		}
		return [[{ json: { sum, as: this.getNode().type } }]];
	}
}
