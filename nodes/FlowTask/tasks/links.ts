import type { TaskInfo } from './taskInfo';

/** Which of a task's result links are wanted: the last ones, or those of every output node. */
export type FileSelection = 'finalFiles' | 'all';

export interface FileLink {
	/** The output node that made the file; `null` where the platform does not say. */
	readonly nodeId: string | null;
	/** Position among the links of the task. */
	readonly index: number;
	readonly url: string;
}

/**
 * The links to download, in a steady order. A platform that reports files but no final ones (both are
 * shown as optional in samples) is taken by its word: then all are final.
 */
export function linksOf(info: TaskInfo, selection: FileSelection): FileLink[] {
	const byNode = Object.entries(info.files).flatMap(([nodeId, urls]) => urls.map((url) => ({ nodeId, url })));
	const nodeOfUrl = new Map(byNode.map(({ nodeId, url }) => [url, nodeId]));
	const nodeOfFile = new Map(byNode.map(({ nodeId, url }) => [fileIn(url), nodeId]));
	const nodeOf = (url: string): string | null => nodeOfUrl.get(url) ?? nodeOfFile.get(fileIn(url)) ?? null;
	const useFinal = selection === 'finalFiles' && info.finalFiles.length > 0;
	const chosen = useFinal
		? info.finalFiles.map((url) => ({ nodeId: nodeOf(url), url }))
		: byNode.length > 0
			? byNode
			: info.finalFiles.map((url) => ({ nodeId: null, url }));
	const seen = new Set<string>();
	return chosen
		.filter(({ url }) => {
			const fresh = !seen.has(url);
			seen.add(url);
			return fresh;
		})
		.map(({ nodeId, url }, index) => ({ nodeId, index, url }));
}

/** What stays the same of a link when it is signed anew: its path, and what names a file in its query. */
function fileIn(url: string): string {
	const [path = '', query = ''] = url.split('?');
	const parameters = new URLSearchParams(query);
	return JSON.stringify([path, ...['filename', 'subfolder', 'type'].map((name) => parameters.get(name))]);
}

/** The file's name as the link has it: its `filename` parameter, or the last part of its path. */
export function nameInLink(url: string): string {
	try {
		const { pathname, searchParams } = new URL(url);
		const last = pathname.split('/').at(-1) ?? '';
		const named = searchParams.get('filename');
		if (named && !/\.[A-Za-z0-9]{1,8}$/.test(last)) return named;
		return decodeURIComponent(last);
	} catch {
		return '';
	}
}

/** Puts a mark before a name's ending: `cat.png`, `2` -> `cat_2.png`. */
export function markName(name: string, mark: string): string {
	const dot = name.lastIndexOf('.');
	return dot > 0 ? `${name.slice(0, dot)}_${mark}${name.slice(dot)}` : `${name}_${mark}`;
}

/**
 * Names for a task's files that do not collide: neither among each other, nor with those of other items,
 * which platforms tend to name alike.
 * @param itemNumber counted from 1; `undefined` where the run has one task only
 */
export function namesFor(links: readonly FileLink[], itemNumber: number | undefined): string[] {
	const used = new Set<string>();
	return links.map(({ url }, index) => {
		const plain = shortened(nameInLink(url)) || 'image';
		const ofItem = itemNumber === undefined ? plain : markName(plain, String(itemNumber));
		let name = ofItem;
		for (let mark = index + 1; used.has(name.toLowerCase()); mark++) name = markName(ofItem, `f${mark}`);
		used.add(name.toLowerCase());
		return name;
	});
}

const LONG_NAME_BYTES = 160;
const LONG_NAME_CHARS = 80;
const SHORT_NAME_CHARS = 40;

/** Long names are cut when they are stored, and what tells them apart stands at their end. */
function shortened(name: string): string {
	const dot = name.lastIndexOf('.');
	const stem = dot > 0 ? name.slice(0, dot) : name;
	if (stem.length <= LONG_NAME_CHARS && Buffer.byteLength(stem) <= LONG_NAME_BYTES) return name;
	return [...stem].slice(0, SHORT_NAME_CHARS).join('') + (dot > 0 ? name.slice(dot) : '');
}
