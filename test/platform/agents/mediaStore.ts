import { randomBytes } from 'node:crypto';
import type { FileLinks } from '../files/links';
import { AgentRefusal } from './envelope';

export const MEDIA_FOLDER = '/media/';

export interface MediaFile {
	readonly path: string;
	readonly agentId: string;
	readonly name: string;
	readonly mimeType: string;
	readonly content: Buffer;
	readonly expiresAtMs: number;
	reads: number;
}

export interface MediaLimits {
	/** How long the URL of an uploaded file is valid. */
	readonly seconds: number;
	readonly maxBytes: number;
	/** The allowed types, such as `image/png` or `image/*`; undefined: all. */
	readonly types: readonly string[] | undefined;
}

/** Stores files for agents, each behind a signed URL that is valid for some time. */
export class MediaStore {
	readonly #files = new Map<string, MediaFile>();

	constructor(
		readonly limits: MediaLimits,
		private readonly links: FileLinks,
	) {}

	mustAccept(mimeType: string): void {
		const { types } = this.limits;
		const [family = ''] = mimeType.split('/');
		if (types !== undefined && !types.includes(mimeType) && !types.includes(`${family}/*`)) {
			throw new AgentRefusal('file_type_refused', `Files of the type ${mimeType} are not accepted.`);
		}
	}

	/** Saves a file. Throws AgentRefusal. */
	save(agentId: string, name: string, mimeType: string, content: Buffer, nowMs: number): MediaFile {
		if (content.length === 0) throw new AgentRefusal('file_empty', 'file is empty.');
		const path = `${MEDIA_FOLDER}${randomBytes(8).toString('hex')}/${name}`;
		const expiresAtMs = nowMs + this.limits.seconds * 1000;
		const file = { path, agentId, name, mimeType, content, expiresAtMs, reads: 0 };
		this.#files.set(path, file);
		return file;
	}

	find(path: string): MediaFile | undefined {
		return this.#files.get(path);
	}

	/** The URL of a file; unlike the links of result files it is plain, because it is passed on to the agent unchanged. */
	url({ path }: MediaFile, untilMs: number): string {
		return this.links.link(path, Math.round(untilMs) / 1000).replaceAll('\\u0026', '&');
	}
}
