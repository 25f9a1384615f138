import { isJsonObject, parseJson } from '../../shared/text/json';
import { redactor, type Redact } from '../../shared/text/redact';
import type { TaskInfo } from './taskInfo';

/**
 * Hides a task's prompt token, which opens its socket for a day (§5.2): a platform that repeats it, in a link or
 * in an error text, must not get it into an item.
 */
export function tokenHider(promptToken: string | undefined): Redact['known'] {
	if (promptToken === undefined) return (text) => text;
	const inJson = JSON.stringify(promptToken).slice(1, -1);
	return redactor([promptToken, encodeURIComponent(promptToken.toWellFormed()), inJson]).known;
}

/** A task's report as it may be shown. Its links may be good for nothing but reading, so download by the true ones. */
export function withoutToken(info: TaskInfo, promptToken: string | undefined): TaskInfo {
	if (promptToken === undefined) return info;
	const hide = tokenHider(promptToken);
	const rawText = JSON.stringify(info.raw);
	const safeText = hide(rawText);
	const raw = safeText === rawText ? info.raw : parseJson(safeText);
	return {
		...info,
		errorMessage: hide(info.errorMessage),
		files: Object.fromEntries(Object.entries(info.files).map(([nodeId, urls]) => [nodeId, urls.map(hide)])),
		finalFiles: info.finalFiles.map(hide),
		raw: isJsonObject(raw) ? raw : {},
	};
}
