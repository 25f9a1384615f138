import { badInput, fail, ok, type Result } from '../shared/errors/failure';
import { excerpt, isJsonObject, jsonText, parseJson, type Json } from '../shared/text/json';
import { lostDigits } from '../shared/form/pastedJson';

/** How the connection is authenticated; the two ways are mutually exclusive (§5.4). */
export type AuthMode = 'subprotocol' | 'inFrame';

/** Stands for the token in a frame template. No braces: n8n would take them for an expression. */
export const TOKEN_PLACEHOLDER = '$token';

/**
 * The frame of in-frame authentication. Its shape is not shown (§5.4), so it is the operator's template; the
 * token gets into it here, and the filled frame goes nowhere but into the socket.
 */
export function fillAuthFrame(template: unknown, token: string): Result<string> {
	const frame = typeof template === 'string' ? parseJson(template) : template;
	if (!isJsonObject(frame)) {
		return fail(
			badInput(
				'The authentication frame is not a JSON object',
				`Enter the frame that your platform expects, with ${TOKEN_PLACEHOLDER} where the token belongs, e.g. {"type": "auth", "token": "${TOKEN_PLACEHOLDER}"}`,
			),
		);
	}
	const rounded = lostDigits(typeof template === 'string' ? template : (jsonText(template) ?? ''));
	if (rounded !== undefined) {
		return fail(
			badInput(
				`The authentication frame holds the number ${excerpt(rounded, 40)}, of which digits would be lost`,
				`Enter a number up to ${Number.MAX_SAFE_INTEGER}, or a text, in quotation marks.`,
			),
		);
	}
	const filled = jsonText(fill(frame, token));
	if (filled === undefined || filled === jsonText(frame)) {
		return fail(
			badInput(
				`The authentication frame has no place for the token: ${TOKEN_PLACEHOLDER} is nowhere in it`,
				`Write ${TOKEN_PLACEHOLDER} where the token belongs. It is put in as the connection opens and never shown.`,
			),
		);
	}
	return ok(filled);
}

/** The token is put into texts after parsing, so that no token can break out of its JSON string. */
function fill(value: Json, token: string): Json {
	if (typeof value === 'string') return value.replaceAll(TOKEN_PLACEHOLDER, () => token);
	if (Array.isArray(value)) return value.map((entry) => fill(entry, token));
	if (!isJsonObject(value)) return value;
	return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, fill(entry, token)]));
}
