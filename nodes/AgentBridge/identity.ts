import { sha256 } from '../shared/text/sha256';

/** n8n stores the key in a column of 255 characters. */
const LONGEST_ID_CHARS = 100;

/** An id of a platform as it may be kept: one that is too long is replaced by its SHA-256. */
export function shortId(id: string): string {
	return id.length <= LONGEST_ID_CHARS ? id : sha256(id, 'hex');
}

/**
 * The key by which n8n runs a frame once, even across restarts. n8n has one index of them for the whole
 * instance, so workflow and node are part of it. A batch of several frames is one execution and has no key: the
 * same frames come in another batch next time.
 */
export function deduplicationKey(
	workflowId: string,
	nodeId: string,
	batch: ReadonlyArray<{ readonly id: string | undefined }>,
): string | undefined {
	const [only, ...more] = batch;
	if (only?.id === undefined || more.length > 0) return undefined;
	return `flowbridge:${workflowId}:${nodeId}:${shortId(only.id)}`;
}
