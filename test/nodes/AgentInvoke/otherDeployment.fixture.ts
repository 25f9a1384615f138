import type { INodeParameters } from 'n8n-workflow';

import { createHarness, singleNode, type Harness, type HarnessRun, type ItemInput } from '../harness';
import { createDataTables, type DataTables } from '../harness/dataTables';
import { BLOBS_PATH, OtherDeployment, TOKEN, TURNS_PATH } from './otherDeployment';
import type { OtherOptions } from './otherDeployment.plan';

type Fields = Readonly<Record<string, string | boolean>>;

/** What a person reads off the documentation of the second server; nothing in it is a default of the credential. */
const WORDS: Fields = {
	customFields: true,
	invokePath: TURNS_PATH,
	mediaUploadPath: BLOBS_PATH,
	agentToken: TOKEN,
	fileTemplate: '{"at":"$url","called":"$name","media":"$mimeType"}',
	answerPath: 'outcome.blocks[0].text',
	deltaPath: 'bit.text',
	sessionPath: 'talk.no',
	usagePath: 'cost',
	interruptPath: 'open_tickets',
	interruptIdPath: 'ticket',
	interruptToolPath: 'wants.fn',
	interruptArgumentsPath: 'wants.with',
	interruptQuestionPath: 'ask.title',
	requestIdPath: 'trace.id',
	busyCodes: 'LINE_TAKEN',
	notRunCodes: 'KITCHEN_FULL',
	sessionUnknownCodes: 'NO_SUCH_TALK',
	tokenRefusedCodes: 'BADGE_INVALID',
	eventNamePath: 'kind',
	endEvents: 'over',
	errorEvents: 'alarm',
	textEvents: 'bit',
	toolEvents: 'tool_use, result',
	mediaPartField: 'payload',
	mediaUrlPath: 'blob.at',
	mediaExpiryPath: 'blob.good_until',
};

/** The body in full, the message as a list of parts, one of two words for streaming. */
const TEMPLATE: Fields = {
	requestFormat: 'template',
	messageTemplate: JSON.stringify({
		turn: { parts: [{ kind: 'text', body: '$message' }], attachments: '$files' },
		talk: { no: '$session' },
		reply_mode: '$stream(streaming, blocking)',
		profile: { price: '5 $$' },
	}),
	resumeTemplate: JSON.stringify({
		answer_to: { ticket: '$interruptId', value: '$result' },
		talk: { no: '$session' },
		reply_mode: '$stream(streaming, blocking)',
	}),
};

/** The same by the names of fields, which are paths. */
const FIELDS: Fields = {
	requestFormat: 'fields',
	messageField: 'turn.parts',
	sessionField: 'talk.no',
	streamField: 'live',
	filesField: 'turn.attachments',
	interruptResultField: 'answer_to',
	interruptResultTemplate: '{"ticket":"$interruptId","value":"$result"}',
};

const WITH_ENVELOPE: Fields = { envelope: 'required', reasonPath: 'data.reason', detailPath: 'data.words' };
const BARE: Fields = { envelope: 'none', reasonPath: 'fault.code', detailPath: 'fault.words' };

export interface Make {
	readonly options: OtherOptions;
	readonly account: Fields;
}

/** Deployments of that make, each with the credential that describes it. */
export const MAKES: Readonly<Record<string, Make>> = {
	'envelope, by template': { options: {}, account: { ...WORDS, ...WITH_ENVELOPE, ...TEMPLATE } },
	'envelope, by fields': { options: {}, account: { ...WORDS, ...WITH_ENVELOPE, ...FIELDS } },
	'no envelope, by template': { options: { envelope: false }, account: { ...WORDS, ...BARE, ...TEMPLATE } },
	'no envelope, streams that end with their body, by fields': {
		options: { envelope: false, streamEnd: 'body' },
		account: { ...WORDS, ...BARE, ...FIELDS, streamEnd: 'body' },
	},
};

/** The make that is taken where the make does not matter. */
export const ONE_MAKE = 'envelope, by template';

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
	const { options, account: described } = MAKES[make] ?? {};
	// The harness comes first: it also rules the time that the deployment lives in.
	const harness = await createHarness();
	const deployment = await OtherDeployment.open(options);
	let tables = createDataTables();
	const credentials = { flowAgentApi: { baseUrl: deployment.baseUrl, ...described } };
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
					parameters: {
						...{ operation: 'invoke', message: '={{ $json.say }}', sessionMode: 'new', simplify: false },
						options: UNHURRIED,
						...parameters,
					},
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
