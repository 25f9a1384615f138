import type { INodeParameters } from 'n8n-workflow';

import { createHarness, singleNode, type Harness, type HarnessRun, type ItemInput } from '../harness';
import { describedBy, type Changes } from '../../unit/AgentInvoke/wire/wire.fixture';
import { AgentInvoke } from '../../../nodes/AgentInvoke/AgentInvoke.node';
import { createDataTables, type DataTables } from '../harness/dataTables';
import { inGroups } from '../optionGroups';
import { BLOBS_PATH, OtherDeployment, TOKEN, TURNS_PATH } from './otherDeployment';
import type { OtherOptions } from './otherDeployment.plan';

type Fields = Readonly<Record<string, string>>;

const SESSION = { talk: { no: '$session' }, reply_mode: '$stream(streaming, blocking)' };
const TEXT = 'outcome.blocks[0].text';

/** What a person reads off the documentation of the second server; nothing in it is an entry of the standard. */
const WORDS = {
	request: {
		message: {
			turn: { parts: [{ kind: 'text', body: '$message' }], attachments: '$files' },
			...SESSION,
			profile: { price: '5 $$' },
		},
		resume: { answer_to: { ticket: '$interruptId', value: '$result' }, ...SESSION },
		file: { at: '$url', called: '$name', media: '$mimeType' },
	},
	answer: {
		...{ text: TEXT, session: 'talk.no', usage: 'cost', requestId: 'trace.id' },
		interrupt: {
			...{
				at: 'open_tickets',
				id: 'ticket',
				tool: 'wants.fn',
				arguments: 'wants.with',
				question: 'ask.title',
			},
		},
	},
	stream: {
		event: 'kind',
		rules: [
			{ on: ['alarm'], fail: 'data.words || fault.words' },
			{ on: ['tool_use', 'result'], step: true },
			{ on: ['bit'], delta: 'bit.text' },
			{ on: ['over'], whole: TEXT, end: true },
		],
	},
	refusal: {
		...{ code: 'data.reason', detail: 'data.words' },
		busy: ['LINE_TAKEN'],
		notRun: ['KITCHEN_FULL'],
		sessionUnknown: ['NO_SUCH_TALK'],
		tokenRefused: ['BADGE_INVALID'],
		only: [
			...['success_response', 'http_status_code', 'data', 'reason', 'words', 'fault', 'code', 'trace', 'id'],
			'kind',
		],
	},
	upload: {
		part: 'payload',
		url: 'data.blob.at || blob.at',
		expires: 'data.blob.good_until || blob.good_until',
	},
} satisfies Changes;

const BARE = {
	...WORDS,
	answer: { ...WORDS.answer, envelope: false },
	refusal: { ...WORDS.refusal, code: 'fault.code', detail: 'fault.words' },
} satisfies Changes;

export interface Make {
	readonly options: OtherOptions;
	readonly wire: Changes;
}

/** Deployments of that make, each with the description that a credential holds. */
export const MAKES: Readonly<Record<string, Make>> = {
	envelope: { options: {}, wire: WORDS },
	'no envelope': { options: { envelope: false }, wire: BARE },
	'no envelope, streams that end with their body': {
		options: { envelope: false, streamEnd: 'body' },
		wire: { ...BARE, stream: { ...BARE.stream, end: 'body' } },
	},
};

/** The make that is taken where the make does not matter. */
export const ONE_MAKE = 'envelope';

/** The credential of a make whose description has some other entries. */
export function accountOf(make: string, changes: Changes = {}): Fields {
	const { wire = {} } = MAKES[make] ?? {};
	const { request, answer, stream, refusal, upload } = changes;
	return {
		...{ invokePath: TURNS_PATH, mediaUploadPath: BLOBS_PATH, agentToken: TOKEN },
		...describedBy({
			request: { ...wire.request, ...request },
			answer: { ...wire.answer, ...answer },
			stream: { ...wire.stream, ...stream },
			refusal: { ...wire.refusal, ...refusal },
			upload: { ...wire.upload, ...upload },
		}),
	};
}

export interface OtherStage {
	readonly deployment: OtherDeployment;
	readonly harness: Harness;
	readonly tables: DataTables;
	readonly credentials: { readonly flowAgentApi: Record<string, string | boolean> };
	run(
		items: readonly ItemInput[],
		parameters?: INodeParameters,
		account?: Readonly<Record<string, string | boolean>>,
	): Promise<HarnessRun>;
	/** New books, empty tables. */
	reset(): void;
	close(): Promise<void>;
}

/** One deployment of the second make, and n8n-core with the built nodes: the local platform has no part in it. */
export async function openOtherStage(make = ONE_MAKE): Promise<OtherStage> {
	const { options } = MAKES[make] ?? {};
	// The harness comes first: it also rules the time that the deployment lives in.
	const harness = await createHarness();
	const deployment = await OtherDeployment.open(options);
	let tables = createDataTables();
	const credentials = { flowAgentApi: { baseUrl: deployment.baseUrl, ...accountOf(make) } };
	return {
		deployment,
		harness,
		credentials,
		get tables() {
			return tables;
		},
		run: async (items, parameters = {}, account = {}) =>
			await harness.run({
				workflow: singleNode({
					type: 'n8n-nodes-flowtask.agentInvoke',
					parameters: inGroups(
						{
							...{ operation: 'invoke', message: '={{ $json.say }}', sessionMode: 'new', simplify: false },
							options: UNHURRIED,
							...parameters,
						},
						new AgentInvoke().description,
					),
					onError: 'continueRegularOutput',
				}),
				items: [...items],
				credentials: { flowAgentApi: { ...credentials.flowAgentApi, ...account } },
				executeWorkflow: tables.executeWorkflow,
			}),
		reset: () => {
			deployment.reset();
			tables = createDataTables();
		},
		close: async () => {
			await harness.close();
			await deployment.close();
		},
	};
}

/** No limit of its own, and time for whoever waits its turn. */
export const UNHURRIED = { requestsPerSecond: 0, timeoutSeconds: 120 };
