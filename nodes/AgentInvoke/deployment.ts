import { DEPLOYMENT_DEFAULTS, type DeploymentField } from '../../credentials/agentFields';
import { ok, type Result } from '../shared/errors/failure';
import { textOf } from '../shared/text/textOf';
import { readWords, type WordList } from './codes';
import { readPaths, type Paths } from './paths';
import { readRequestShape, type RequestShape } from './requestShape';

export { DEPLOYMENT_DEFAULTS } from '../../credentials/agentFields';

/**
 * How a deployment words what the interface leaves open (§4.6: body fields other than the envelope; §4.8). Beside the
 * envelope and the statuses of HTTP nothing else decides what an answer means.
 */
export interface Deployment {
	readonly request: RequestShape;
	/** Whether answers have the envelope of §4.6; without it the HTTP status decides. */
	readonly hasEnvelope: boolean;
	readonly paths: ReturnType<typeof pathsOf>;
	readonly words: ReturnType<typeof wordsOf>;
	/** Whether the end of the body ends a stream. */
	readonly endsWithBody: boolean;
	/** Name of the form part of an upload. */
	readonly mediaPart: string;
}

/**
 * Reads the fields of a credential; one that is left empty keeps its default.
 * @returns or else which field cannot be used, and why
 */
export function readDeployment(credential: Readonly<Record<string, unknown>>): Result<Deployment> {
	const given = credential.customFields === true ? credential : {};
	const entered = (field: DeploymentField): string =>
		textOf(given[field]).trim() || (DEPLOYMENT_DEFAULTS[field] ?? '');
	const request = readRequestShape(given, entered);
	if (!request.ok) return request;
	return ok({
		request: request.value,
		hasEnvelope: entered('envelope') !== 'none',
		paths: pathsOf((field) => readPaths(entered(field))),
		words: wordsOf((field) => readWords(entered(field), DEPLOYMENT_DEFAULTS[field] ?? '')),
		endsWithBody: entered('streamEnd') === 'body',
		mediaPart: entered('mediaPartField'),
	});
}

function pathsOf(read: (field: DeploymentField) => Paths) {
	return {
		// Into the data.
		answer: read('answerPath'),
		delta: read('deltaPath'),
		session: read('sessionPath'),
		usage: read('usagePath'),
		interrupt: read('interruptPath'),
		mediaUrl: read('mediaUrlPath'),
		mediaExpiry: read('mediaExpiryPath'),
		// Into an interrupt.
		interruptId: read('interruptIdPath'),
		interruptTool: read('interruptToolPath'),
		interruptArguments: read('interruptArgumentsPath'),
		interruptQuestion: read('interruptQuestionPath'),
		interruptKind: read('interruptKindPath'),
		// Into the whole answer.
		requestId: read('requestIdPath'),
		reason: read('reasonPath'),
		detail: read('detailPath'),
		eventName: read('eventNamePath'),
	};
}

function wordsOf(read: (field: DeploymentField) => WordList) {
	return {
		busy: read('busyCodes'),
		notRun: read('notRunCodes'),
		sessionUnknown: read('sessionUnknownCodes'),
		tokenRefused: read('tokenRefusedCodes'),
		failed: read('failedCodes'),
		emptyFailed: read('emptyFailedCodes'),
		interrupt: read('interruptCodes'),
		question: read('questionKinds'),
		refusalFields: read('refusalFields'),
		endEvents: read('endEvents'),
		errorEvents: read('errorEvents'),
		textEvents: read('textEvents'),
		toolEvents: read('toolEvents'),
	};
}
