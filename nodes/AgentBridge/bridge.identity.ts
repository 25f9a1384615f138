import { createHash } from 'crypto';

/** n8n stores the key in a column of 255 characters. */
const LONGEST_ID_CHARS = 100;

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
	const id =
		only.id.length <= LONGEST_ID_CHARS ? only.id : createHash('sha256').update(only.id).digest('hex');
	return `flowbridge:${workflowId}:${nodeId}:${id}`;
}
