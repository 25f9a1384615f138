import { STANDARD_WIRE } from '../../../../credentials/standardWire';
import { readWire, type Wire } from '../../../../nodes/AgentInvoke/wire/description';
import { valueOf } from '../../results';

type Entries = Readonly<Record<string, unknown>>;

/** Entries, by section, that a description replaces or adds. */
export interface Changes {
	readonly request?: Entries;
	readonly answer?: Entries;
	readonly stream?: Entries;
	readonly refusal?: Entries;
	readonly upload?: Entries;
}

/** The standard description, as JSON, with the given entries replaced or added. */
export function descriptionOf(changes: Changes = {}): string {
	const standard = Object.entries(JSON.parse(STANDARD_WIRE) as Record<string, Entries>);
	const own = new Map(Object.entries<Entries>({ ...changes }));
	return JSON.stringify(
		Object.fromEntries(standard.map(([name, entries]) => [name, { ...entries, ...own.get(name) }])),
	);
}

/** The fields of a credential with this description. */
export function describedBy(changes: Changes): { readonly wire: string; readonly description: string } {
	return { wire: 'described', description: descriptionOf(changes) };
}

/** The standard wire with the given entries replaced or added. */
export const wireWith = (changes: Changes = {}): Wire => valueOf(readWire(descriptionOf(changes)));
