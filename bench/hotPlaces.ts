// Reads from a CPU profile where the time went.
import { basename } from 'node:path';
import type { CallFrame, CpuProfile } from './inspector';

export interface HotPlace {
	readonly place: string;
	/** The share of all time in which the process was busy. */
	readonly share: number;
}

const IDLE = new Set(['(idle)', '(root)']);

/** The functions with the most self time, and the packages that they belong to. */
export function hotPlaces(profile: CpuProfile, count: number): { functions: HotPlace[]; owners: HotPlace[] } {
	const frames = new Map(profile.nodes.map(({ id, callFrame }) => [id, callFrame]));
	const byFunction = new Map<string, number>();
	const byOwner = new Map<string, number>();
	let total = 0;
	for (const [index, id] of profile.samples.entries()) {
		const frame = frames.get(id);
		if (!frame || IDLE.has(frame.functionName)) continue;
		const spent = profile.timeDeltas[index] ?? 0;
		total += spent;
		const owner = ownerOf(frame);
		add(byOwner, owner, spent);
		add(byFunction, `${frame.functionName || '(anonymous)'} (${owner})`, spent);
	}
	const hottest = (times: Map<string, number>): HotPlace[] =>
		[...times]
			.sort(([, left], [, right]) => right - left)
			.slice(0, count)
			.map(([place, spent]) => ({ place, share: spent / total }));
	return { functions: hottest(byFunction), owners: hottest(byOwner) };
}

function add(times: Map<string, number>, place: string, spent: number): void {
	times.set(place, (times.get(place) ?? 0) + spent);
}

function ownerOf({ url, functionName }: CallFrame): string {
	const owner = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)?.[1];
	if (owner !== undefined) return owner;
	if (url.startsWith('node:')) return url;
	return functionName.startsWith('(') || url === '' ? 'V8' : basename(url);
}
