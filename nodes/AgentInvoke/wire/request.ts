import { badInput, fail, ok, type Failure, type Result } from '../../shared/errors/failure';
import { readExtraBody } from '../../shared/form/extraBody';
import { excerpt, isJsonObject } from '../../shared/text/json';
import type { AgentAccount } from './account';
import { wireRequest, type WireRequest, type WireTurn } from './body';
import type { Wire } from './description';
import { clashWith, mergeDeep, placeholdersOf } from './templates';

export type { WireFile, WireTurn } from './body';

/** A call as it is sent. */
export type AgentRequest = WireRequest;

/** A call; only the session is still open, and empty for a new one. */
export type OpenRequest = (sessionId: string) => AgentRequest;

/** How an item's call is made. */
export interface CallForm {
	readonly stream: boolean;
	readonly extraBody: unknown;
	/** The same for all tries. */
	readonly uuid: string;
}

/** An Invoke call (§4.6), as the wire describes it, with the extra body merged in last. */
export function openRequest(turn: WireTurn, form: CallForm, wire: Wire): Result<OpenRequest> {
	const { stream, extraBody, uuid } = form;
	const extra = readExtraBody(extraBody, '{ "language": "en" }', () => undefined);
	if (!extra.ok) return extra;
	const { message, resume } = wire.request;
	const clash = [message, resume].map((template) => clashWith(template, extra.value)).find(Boolean);
	if (clash !== undefined) {
		const said = `"Extra Body" sets "${excerpt(clash, 60)}", which a field of this node sets`;
		return fail(badInput(said, 'Remove it from "Extra Body".'));
	}
	return ok((sessionId) => {
		const request = wireRequest(wire, turn, { sessionId, stream, uuid });
		const body = mergeDeep(request.body, extra.value);
		return { ...request, body: isJsonObject(body) ? body : {} };
	});
}

/** Where a call goes. */
export function addressOf(
	{ baseUrl, invokePath }: AgentAccount,
	{ path }: Pick<AgentRequest, 'path'>,
): string {
	return `${baseUrl}${path || invokePath}`;
}

interface Needs {
	readonly isResume: boolean;
	readonly hasSession: boolean;
	readonly hasFiles: boolean;
}

/** Why a call with a session or with files cannot be described; they would be lost without a word. */
export function whyNoPlace(
	{ request }: Wire,
	{ isResume, hasSession, hasFiles }: Needs,
): Failure | undefined {
	const { path, headers, message, resume } = request;
	const entry = isResume ? 'request.resume' : 'request.message';
	const places = placeholdersOf([path, headers, isResume ? resume : message]);
	const advice = (placeholder: string, instead: string): string =>
		`Put "$${placeholder}" into "${entry}" of the description in the FlowAgent credential, or ${instead}. Nothing was sent.`;
	if (isResume && Object.keys(resume).length === 0) {
		return badInput(
			'The description does not say how an interrupt is answered',
			'Add "request.resume" to it in the FlowAgent credential. Nothing was sent.',
		);
	}
	// An interrupt may be known by its ID alone.
	if (hasSession && !isResume && !places.has('session') && !places.has('sessionNumber')) {
		return badInput(
			'The description has no placeholder for the session, so each message would begin a new one',
			advice('session', 'set "Session" to "New Each Time"'),
		);
	}
	if (!hasFiles || places.has('files')) return undefined;
	return badInput(
		'The description has no placeholder for the files of this item',
		advice('files', 'remove the files'),
	);
}
