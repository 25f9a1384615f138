import { labelOf, type DeploymentField } from '../../credentials/agentFields';
import { badInput, fail, ok, type Failure, type Result } from '../shared/errors/failure';
import { parsePasted, refuseLostDigits } from '../shared/form/pastedJson';
import { openCredential } from '../shared/platform/credential';
import { excerpt, isJsonObject, isTooDeep, type Json, type JsonObject } from '../shared/text/json';
import { pathSteps } from '../shared/text/jsonPath';
import { hasBrokenChoice, placeholdersOf, putAt, STREAM } from './template';

/** The bodies of a deployment's calls, as templates whose placeholders are known to be right. */
export interface RequestShape {
	readonly message: JsonObject;
	readonly resume: JsonObject;
	/** One entry of the list of files. */
	readonly file: Json;
	/** What an extra body must not replace, in a message and in the answer to an interrupt. */
	readonly reservedInMessage: readonly JsonObject[];
	readonly reservedInResume: readonly JsonObject[];
}

export const PLACEHOLDERS = {
	message: 'message',
	session: 'session',
	files: 'files',
	interruptId: 'interruptId',
	result: 'result',
	stream: STREAM,
	url: 'url',
	name: 'name',
	mimeType: 'mimeType',
} as const;

const { message, session, files, interruptId, result, stream, url, name, mimeType } = PLACEHOLDERS;
const OF_A_BODY = [message, session, files, interruptId, result, stream] as const;
const OF_A_FILE = [url, name, mimeType] as const;

/** How deep a template may be: what is put in must leave the body readable. */
const MOST_LEVELS = 100;

type Entered = (field: DeploymentField) => string;
type Given = Readonly<Record<string, unknown>>;

/** Reads how requests are described; both formats come to templates. */
export function readRequestShape(given: Given, entered: Entered): Result<RequestShape> {
	const file = readTemplate(given, entered, 'fileTemplate', OF_A_FILE, url);
	if (!file.ok) return file;
	const isTemplate = entered('requestFormat') === 'template';
	const bodies = isTemplate ? readBodies(given, entered) : bodiesOfFields(given, entered);
	if (!bodies.ok) return bodies;
	const { message: said, resume } = bodies.value;
	return ok({
		...bodies.value,
		file: file.value,
		// Named one by one, all fields are the node's, whichever of them a call needs.
		reservedInMessage: isTemplate ? [said] : [said, resume],
		reservedInResume: isTemplate ? [resume] : [resume, said],
	});
}

type Bodies = Pick<RequestShape, 'message' | 'resume'>;

function readBodies(given: Given, entered: Entered): Result<Bodies> {
	const said = readTemplate(given, entered, 'messageTemplate', OF_A_BODY, message);
	if (!said.ok) return said;
	const resume = readTemplate(given, entered, 'resumeTemplate', OF_A_BODY, result);
	if (!resume.ok) return resume;
	if (!isJsonObject(said.value)) return fail(unusable('messageTemplate', 'is not a JSON object'));
	if (!isJsonObject(resume.value)) return fail(unusable('resumeTemplate', 'is not a JSON object'));
	return ok({ message: said.value, resume: resume.value });
}

function bodiesOfFields(given: Given, entered: Entered): Result<Bodies> {
	const answer = readTemplate(given, entered, 'interruptResultTemplate', [interruptId, result], result);
	if (!answer.ok) return answer;
	const shared = [
		['sessionField', `$${session}`],
		['streamField', `$${stream}`],
	] as const;
	const said = bodyOfFields(
		[['messageField', `$${message}`], ['filesField', `$${files}`], ...shared],
		entered,
	);
	if (!said.ok) return said;
	const resume = bodyOfFields([['interruptResultField', answer.value], ...shared], entered);
	return resume.ok ? ok({ message: said.value, resume: resume.value }) : resume;
}

function bodyOfFields(
	fields: ReadonlyArray<readonly [DeploymentField, Json]>,
	entered: Entered,
): Result<JsonObject> {
	let body: Json = {};
	for (const [field, value] of fields) {
		const path = entered(field);
		// A name without dots and brackets is one step, whatever else stands in it.
		const steps = /[.[]/.test(path) ? pathSteps(path) : [path];
		const put: Result<Json, string> =
			steps.length > 0 ? putAt(body, steps, value) : fail('it names no field');
		if (!put.ok) return fail(unusable(field, `("${excerpt(path, 60)}") cannot be used: ${put.failure}`));
		body = put.value;
	}
	return isJsonObject(body) ? ok(body) : fail(unusable('messageField', 'names no field'));
}

/** Reads a template, and checks all that can be told of it before anything is put in. */
function readTemplate(
	given: Given,
	entered: Entered,
	field: DeploymentField,
	known: readonly string[],
	needed: string,
): Result<Json> {
	const value = given[field];
	// An expression may have given the JSON itself.
	const isJson = typeof value === 'object' && value !== null;
	const text = isJson ? JSON.stringify(value) : entered(field);
	const parsed = parsePasted(text);
	if (!parsed.ok) {
		const why = parsed.failure && `: ${parsed.failure}`;
		return fail(
			unusable(field, `is not JSON${why}`, 'Put placeholders in quotation marks, like any other text.'),
		);
	}
	const lost = refuseLostDigits(labelOf(field), text);
	if (lost) return fail(lost);
	const template = parsed.value;
	if (isTooDeep(template, MOST_LEVELS)) return fail(unusable(field, 'is nested too deeply'));
	const names = placeholdersOf(template);
	const unknown = [...names].find((one) => !known.includes(one));
	if (unknown !== undefined) {
		const list = known.map((one) => `$${one}`).join(', ');
		const advice = `Known here are ${list}. A dollar sign itself is written "$$".`;
		return fail(
			unusable(
				field,
				`contains "$${excerpt(unknown, 40)}", which is not a placeholder of this field`,
				advice,
			),
		);
	}
	if (hasBrokenChoice(template)) {
		return fail(
			unusable(
				field,
				'contains a "$stream(…)" without two words',
				'Enter the word with a stream and the one without, such as "$stream(streaming, blocking)".',
			),
		);
	}
	if (names.has(needed)) return ok(template);
	return fail(
		unusable(field, `has no place for "$${needed}"`, 'Put the placeholder where the value belongs.'),
	);
}

function unusable(field: DeploymentField, why: string, advice = ''): Failure {
	return {
		kind: 'credential',
		message: `"${labelOf(field)}" in the credential ${why}`,
		advice: [advice, `${openCredential('flowAgentApi')} and correct it.`].filter(Boolean).join(' '),
	};
}

/** Why a call with a session or with files cannot be described; they would be lost without a word. */
export function whyNoPlace(
	shape: RequestShape,
	{ hasSession, hasFiles }: { readonly hasSession: boolean; readonly hasFiles: boolean },
): Failure | undefined {
	const places = placeholdersOf(shape.message);
	const advice = (placeholder: string, instead: string): string =>
		`Put "$${placeholder}" into "${labelOf('messageTemplate')}" in the FlowAgent credential, or ${instead}. Nothing was sent.`;
	if (hasSession && !places.has(session)) {
		return badInput(
			'The message template has no place for the session, so each message would begin a new one',
			advice(session, 'set "Session" to "New Each Time"'),
		);
	}
	if (!hasFiles || places.has(files)) return undefined;
	return badInput(
		'The message template has no place for the files of this item',
		advice(files, 'remove the files'),
	);
}
