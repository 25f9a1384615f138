import type { Clock } from './clock';

/** A stopped node has to end within a second. */
const AFTER_CANCEL_MS = 700;

/**
 * Waits for what a node run still writes as it ends; after a cancel not for long, and what is then not written yet
 * is written all the same.
 * @param written comes to false where something could not be written
 */
export async function lastWrites(
	written: Promise<boolean>,
	isCancelled: boolean,
	clock: Clock,
): Promise<boolean> {
	if (!isCancelled) return await written;
	const settled = new AbortController();
	const late = clock.sleep(AFTER_CANCEL_MS, settled.signal).then(() => true);
	try {
		return await Promise.race([written, late]);
	} finally {
		// Only now: an early wake would win the race.
		settled.abort();
	}
}
