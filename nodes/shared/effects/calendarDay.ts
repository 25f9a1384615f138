import { digestOf } from '../text/sha256';

export interface NodeIds {
	readonly workflowId: string;
	readonly nodeId: string;
}

/** The digest of a node, for work that is counted per node. */
export function nodeOwner({ workflowId, nodeId }: NodeIds): string {
	return digestOf('node', workflowId, nodeId);
}

/** The digest by which the table finds an owner's rows of one day. */
export function ownerDay(owner: string, day: string): string {
	return digestOf(owner, day);
}

/** Cached, because creating a format is slow, and each task and turn asks for its day. */
const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(timeZone: string): Intl.DateTimeFormat {
	const format =
		formats.get(timeZone) ??
		new Intl.DateTimeFormat('en-US', {
			timeZone: isTimeZone(timeZone) ? timeZone : 'UTC',
			calendar: 'gregory',
			numberingSystem: 'latn',
			year: 'numeric',
			month: '2-digit',
			day: '2-digit',
		});
	formats.set(timeZone, format);
	return format;
}

/** The day of a time in a time zone, as 2030-01-31; in UTC if the time zone is unknown. */
export function dayOf(wallMs: number, timeZone: string): string {
	const parts = formatOf(timeZone).formatToParts(wallMs);
	const part = (type: string): string => parts.find((one) => one.type === type)?.value ?? '';
	return `${part('year')}-${part('month')}-${part('day')}`;
}

export function isTimeZone(timeZone: string): boolean {
	try {
		return Boolean(new Intl.DateTimeFormat('en-US', { timeZone }));
	} catch {
		return false;
	}
}

const MS_PER_DAY = 86_400_000;

/** @param day as `dayOf` returns it */
export function dayAfter(day: string): string {
	return new Date(Date.parse(day) + MS_PER_DAY).toISOString().slice(0, 10);
}
