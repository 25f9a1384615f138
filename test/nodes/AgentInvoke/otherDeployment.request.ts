/** A file that a turn brings with it. */
export interface Attachment {
	readonly at: string;
	readonly called: string | undefined;
	readonly media: string | undefined;
}

/** A call of the second server, read. */
export interface AskedTurn {
	/** As it came. */
	readonly body: unknown;
	/** Empty where a new one is wanted. */
	readonly session: string;
	readonly said: string | undefined;
	readonly answerTo: { readonly ticket: string; readonly value: unknown } | undefined;
	readonly attachments: readonly Attachment[];
	readonly isLive: boolean;
	/** The code of what is wrong with it. */
	readonly why: string | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

const ALLOWED = ['turn', 'talk', 'answer_to', 'reply_mode', 'live', 'profile'];

/**
 * `{ turn: { parts, attachments }, talk: { no }, answer_to: { ticket, value }, reply_mode, profile }`, where `parts` is a
 * list of `{ kind: "text", body }` or one text, and `live: true` says the same as `reply_mode: "streaming"`. Anything else
 * is refused: what a node sends beside what was described would otherwise go unnoticed.
 */
export function readTurn(text: string): AskedTurn {
	const body = parsed(text);
	const { turn, talk, answer_to: answer, reply_mode: mode, live } = fields(body);
	const { parts, attachments } = fields(turn);
	const said = textOf(parts);
	const { ticket, value } = fields(answer);
	const hasOdd = Object.keys(fields(body)).some((key) => !ALLOWED.includes(key));
	const isOdd = body === undefined || hasOdd || !isMode(mode, live) || !isList(attachments);
	return {
		body,
		session: written(fields(talk).no),
		said,
		answerTo: answer === undefined ? undefined : { ticket: written(ticket), value },
		attachments: (Array.isArray(attachments) ? attachments : []).map((entry: unknown) => {
			const { at, called, media } = fields(entry);
			return { at: written(at), called: name(called), media: name(media) };
		}),
		isLive: mode === 'streaming' || live === true,
		why: isOdd ? 'BODY_ODD' : said === undefined && answer === undefined ? 'NOTHING_SAID' : undefined,
	};
}

function parsed(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch {
		return undefined;
	}
}

function fields(value: unknown): Fields {
	return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function isMode(mode: unknown, live: unknown): boolean {
	const isWord = mode === undefined || mode === 'streaming' || mode === 'blocking';
	return isWord && (live === undefined || typeof live === 'boolean');
}

function isList(attachments: unknown): boolean {
	return attachments === undefined || Array.isArray(attachments);
}

/** @returns undefined where nothing was said */
function textOf(parts: unknown): string | undefined {
	if (typeof parts === 'string') return parts;
	if (!Array.isArray(parts)) return undefined;
	const texts = parts.flatMap((part: unknown) => {
		const { kind, body } = fields(part);
		return kind === 'text' && typeof body === 'string' ? [body] : [];
	});
	return texts.length > 0 ? texts.join('\n') : undefined;
}

/** Numbers are taken as they are written: one that was rounded on its way is another one. */
function written(value: unknown): string {
	return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

function name(value: unknown): string | undefined {
	return typeof value === 'string' ? value : undefined;
}

export interface UploadedPart {
	readonly name: string;
	readonly type: string;
	readonly bytes: number;
}

/** The file in a part of a multipart body. */
export function readPart(contentType: string, body: Buffer, part: string): UploadedPart | undefined {
	const boundary = /boundary="?([^";]+)/.exec(contentType)?.[1];
	if (boundary === undefined) return undefined;
	// As latin1, in which a character is a byte.
	for (const piece of body.toString('latin1').split(`--${boundary}`)) {
		const headEnd = piece.indexOf('\r\n\r\n');
		const head = Buffer.from(piece.slice(0, Math.max(0, headEnd)), 'latin1').toString();
		const name = /filename="([^"]*)"/.exec(head)?.[1];
		if (!head.includes(`name="${part}"`) || name === undefined) continue;
		const type = /content-type: *([^\r\n]*)/i.exec(head)?.[1] ?? '';
		return { name, type, bytes: piece.length - headEnd - '\r\n\r\n'.length - '\r\n'.length };
	}
	return undefined;
}
