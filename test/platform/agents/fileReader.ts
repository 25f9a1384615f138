import type { SeenFile } from './agentBooks';
import { AgentRefusal } from './envelope';
import type { FileReference } from './invokeCall';
import { MEDIA_FOLDER } from './mediaStore';

const FORBIDDEN = 403;

function isOwn(url: string, fileUrl: string): boolean {
	return url.startsWith(`${fileUrl}${MEDIA_FOLDER}`);
}

async function read(file: FileReference, fileUrl: string): Promise<SeenFile> {
	const { url } = file;
	const told = { url, name: file.name ?? null, mimeType: file.mimeType ?? null };
	// A development server fetches nothing from other hosts.
	if (!isOwn(url, fileUrl)) return { ...told, bytes: null };
	const response = await fetch(url).catch(() => undefined);
	if (response === undefined) throw new AgentRefusal('file_unreadable', 'A file could not be fetched.');
	const content = await response.arrayBuffer();
	if (response.status === FORBIDDEN && Buffer.from(content).includes('has expired')) {
		throw new AgentRefusal('file_expired', 'The URL of a file has expired: upload the file again.');
	}
	if (!response.ok) throw new AgentRefusal('file_unreadable', `A file answered HTTP ${response.status}.`);
	const name = decodeURIComponent(new URL(url).pathname.split('/').at(-1) ?? '');
	return {
		url,
		name: told.name ?? name,
		mimeType: told.mimeType ?? response.headers.get('content-type'),
		bytes: content.byteLength,
	};
}

/** Fetches the files as the agent itself would. Throws AgentRefusal. */
export async function readFiles(files: readonly FileReference[], fileUrl: string): Promise<SeenFile[]> {
	return Promise.all(files.map(async (file) => read(file, fileUrl)));
}

export function describeFiles(files: readonly SeenFile[]): string {
	if (files.length === 0) return 'There are no files.';
	return files
		.map(({ name, mimeType, bytes, url }) => {
			const size = bytes === null ? 'not fetched' : `${bytes} bytes`;
			return `${name ?? url} (${mimeType ?? 'unknown type'}, ${size})`;
		})
		.join(', ');
}
