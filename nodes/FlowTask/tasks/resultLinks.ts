import type { DownloadRequest } from '../../shared/files/download';
import { shortStem } from '../../shared/files/fileName';
import { ENDING } from '../../shared/files/fileType';
import { decodePercents, isWebAddress } from '../../shared/text/webAddress';
import type { TaskInfo } from '../api/taskInfo';

/** Which result links of a task to get: the final ones, or those of all or some output nodes. */
export type FileSelection = 'finalFiles' | 'all' | readonly string[];

export interface FileLink {
	/** The output node that made the file; `null` if the platform does not say. */
	readonly nodeId: string | null;
	/** Position among the selected links of the task, from 0. */
	readonly index: number;
	readonly url: string;
}

/**
 * The links to download, in a stable order and, unless nodes were chosen, without duplicates. If a platform reports
 * files but no final ones, all files are final. A file whose node is not reported belongs to no node.
 */
export function linksOf(info: TaskInfo, selection: FileSelection): FileLink[] {
	if (typeof selection !== 'string') {
		const ofNodes = [...new Set(selection)].flatMap((nodeId) =>
			(info.files.get(nodeId) ?? []).map((url) => ({ nodeId, url })),
		);
		return ofNodes.map((link, index) => ({ ...link, index }));
	}
	const byNode = [...info.files].flatMap(([nodeId, urls]) => urls.map((url) => ({ nodeId, url })));
	const chosen = new Map<string, string | null>();
	if (byNode.length === 0 || (selection === 'finalFiles' && info.finalFiles.length > 0)) {
		// If several nodes list a link, it belongs to the first one.
		const nodes = new Map(byNode.toReversed().map(({ nodeId, url }) => [url, nodeId]));
		const sameFiles = byFile(byNode);
		for (const url of info.finalFiles)
			chosen.set(url, nodes.get(url) ?? onlyNode(sameFiles.get(fileIn(url))));
	} else {
		for (const { nodeId, url } of byNode) if (!chosen.has(url)) chosen.set(url, nodeId);
	}
	return [...chosen].map(([url, nodeId], index) => ({ nodeId, index, url }));
}

/** The node of links that differ only in their signature; `null` unless exactly one node made them. */
function onlyNode(files: ReadonlyArray<Pick<FileLink, 'nodeId'>> = []): string | null {
	const [nodeId = null, ...others] = new Set(files.map((file) => file.nodeId));
	return others.length === 0 ? nodeId : null;
}

export type FindLink = (link: FileLink) => FileLink | undefined;

/**
 * Finds files' links among fresh ones, which may be in another order, repeated or missing.
 * @param before the links of the task as first reported
 * @returns finds the fresh link for one of these; `undefined` if none certainly leads to the same file
 */
export function linkFinder(before: readonly FileLink[], fresh: readonly FileLink[]): FindLink {
	const filesBefore = byFile(before);
	const freshFiles = byFile(fresh);
	return (link) => {
		const file = fileIn(link.url);
		const own = filesBefore.get(file) ?? [];
		const alike = freshFiles.get(file) ?? [];
		if (own.length === 1 && alike.length > 0) return alike[0];
		// If nothing else distinguishes files, their order does.
		if (alike.length > 0) return alike.length === own.length ? alike[own.indexOf(link)] : undefined;
		const inPlace = fresh.length === before.length ? fresh[link.index] : undefined;
		return inPlace && !filesBefore.has(fileIn(inPlace.url)) ? inPlace : undefined;
	};
}

function byFile<Link extends Pick<FileLink, 'url'>>(links: readonly Link[]): Map<string, Link[]> {
	return Map.groupBy(links, ({ url }) => fileIn(url));
}

/** Whether an entry is not a link but the output of a text node, which some platforms list among the files. */
export function isPlainText(entry: string): boolean {
	return !isWebAddress(entry) && (/\s/.test(entry.trim()) || !/[:/]/.test(entry));
}

/** The parts of a link that a new signature does not change: its path and the parameters that name the file. */
function fileIn(url: string): string {
	const [path = '', query = ''] = url.split('?');
	const parameters = new URLSearchParams(query);
	return JSON.stringify([path, ...['filename', 'subfolder', 'type'].map((name) => parameters.get(name))]);
}

/** The file's name: the last segment of the path or, if that has no extension, the `filename` parameter. */
export function nameInLink(url: string): string {
	const { pathname = '', searchParams } = URL.parse(url) ?? {};
	const last = pathname.split('/').at(-1) ?? '';
	const named = searchParams?.get('filename');
	return named && !ENDING.test(last) ? named : decodePercents(last);
}

/** Inserts a mark before a name's extension: `cat.png`, `2` -> `cat_2.png`. */
export function markName(name: string, mark: string): string {
	const dot = name.lastIndexOf('.');
	return dot > 0 ? `${name.slice(0, dot)}_${mark}${name.slice(dot)}` : `${name}_${mark}`;
}

/** What distinguishes the files of one task from those of the run's other tasks. */
export interface TaskLabel {
	/** Put into names from links, unique within the run; left out if the run has only one task. */
	readonly mark?: string | undefined;
	/** The name of the task's files, unique within the run; left out if they keep the names in their links. */
	readonly stem?: string | undefined;
}

/**
 * Names that collide neither with each other nor with those of other items, because platforms often reuse names. The
 * stations of a name: the stem that the form asks for or the prompt gives (`fileStem` in taskMaker.ts), unique in the
 * run (`uniqueStems`), or else the name in the link (`nameInLink`) or in the header of the download (`nameBySaid`); a
 * mark here for each of several files; and `safeFileName` with the true extension once the bytes are there
 * (`store` in download.ts).
 */
export function namesFor(links: readonly FileLink[], { mark, stem }: TaskLabel): NamedLink[] {
	const owners = new Map<string, number>();
	const take = (raw: string, index: number): string => {
		const plain = shortName(raw) || 'image';
		const linked = mark === undefined ? plain : markName(plain, mark);
		// Without an extension, a dot within the stem would count as the start of one.
		const ofItem = stem === undefined ? linked : stem + (ENDING.exec(raw)?.[0] ?? '.bin');
		let name = ofItem;
		// Each mark makes the name longer, so hostile names cannot make this take long.
		while ((owners.get(name.toLowerCase()) ?? index) !== index) name = markName(name, `f${index + 1}`);
		owners.set(name.toLowerCase(), index);
		return name;
	};
	return links.map((link, index) => ({
		link,
		fileName: take(nameInLink(link.url), index),
		nameBySaid: (said) => take(said.split(/[\\/]/).at(-1) ?? '', index),
	}));
}

export interface NamedLink extends Required<Pick<DownloadRequest, 'fileName' | 'nameBySaid'>> {
	readonly link: FileLink;
}

/** Shortens a long name, because storing would cut off its end, and with it the mark that distinguishes it. */
function shortName(name: string): string {
	const dot = name.lastIndexOf('.');
	const stem = dot > 0 ? name.slice(0, dot) : name;
	return shortStem(stem) + name.slice(stem.length);
}
