import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { MEDIA_FOLDER } from '../agents/mediaStore';
import type { RequestKind } from '../books';
import type { Fault } from '../faults/faultBoard';
import { deliver, faultAnswer, onceWhole, resetConnection } from '../service/delivery';
import type { HttpAnswer } from '../service/delivery';
import type { Parts } from '../service/parts';
import type { ImageRecipe } from '../tasks/recipe';
import { pause } from '../time';
import type { Line } from './line';
import { paddedPng } from './paddedFile';
import type { FileContent } from './paddedFile';

function xmlAnswer(status: number, code: string, message: string): HttpAnswer {
	const body =
		'<?xml version="1.0" encoding="UTF-8"?>\n' +
		`<Error><Code>${code}</Code><Message>${message}</Message></Error>\n`;
	return { status, headers: { 'content-type': 'application/xml' }, body };
}

const EXPIRED = xmlAnswer(403, 'AccessDenied', 'Request has expired.');
const BAD_SIGNATURE = xmlAnswer(403, 'SignatureDoesNotMatch', 'The signature does not match the request.');
const NO_FILE = xmlAnswer(404, 'NoSuchKey', 'The file does not exist.');

function findImage(parts: Parts, path: string): ImageRecipe | undefined {
	const [, , taskId = '', nodeId = '', name = ''] = path.split('/');
	const output = parts.desk.find(taskId)?.execution?.outputs.find((entry) => entry.nodeId === nodeId);
	return output?.images[output.names.indexOf(name)];
}

function decodedPath(url: URL): string {
	try {
		return url.pathname.split('/').map(decodeURIComponent).join('/');
	} catch {
		return url.pathname;
	}
}

async function* slowly(chunks: Generator<Buffer>, length: number, ms: number): AsyncGenerator<Buffer> {
	const part = Math.max(1, Math.ceil(length / 10));
	for (const chunk of chunks) {
		for (let offset = 0; offset < chunk.length; offset += part) {
			const slice = chunk.subarray(offset, offset + part);
			await pause((ms * slice.length) / length);
			yield slice;
		}
	}
}

/** Sends the first half of the file with the length of the whole, then cuts the connection. */
async function* cutInHalf(content: FileContent, cut: () => void): AsyncGenerator<Buffer> {
	let left = Math.floor(content.length / 2);
	for (const chunk of content.chunks()) {
		yield chunk.subarray(0, left);
		left -= chunk.length;
		if (left <= 0) break;
	}
	await pause(5);
	cut();
	// The stream never ends by itself, because the half would then look like the whole file.
	await new Promise(() => undefined);
}

function sendFile(
	reply: FastifyReply,
	content: FileContent,
	faults: readonly Fault[],
	line: Line,
	whenWhole: () => void,
): FastifyReply {
	void reply.header('content-type', 'image/png').header('content-length', content.length);
	if (faults.some(({ kind }) => kind === 'fileReset')) {
		const half = cutInHalf(content, () => resetConnection(reply.raw));
		return reply.send(Readable.from(half));
	}
	onceWhole(reply.raw, whenWhole);
	const slow = faults.find(({ kind }) => kind === 'slowBody');
	const chunks =
		slow === undefined ? content.chunks() : slowly(content.chunks(), content.length, slow.rule.ms ?? 500);
	return reply.send(Readable.from(line.carry(chunks), { objectMode: false, highWaterMark: 256 * 1024 }));
}

async function answerFile(parts: Parts, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
	const url = new URL(request.url, parts.addresses.fileUrl);
	const path = decodedPath(url);
	const faults = parts.faults.draw('file', () => path);
	const before = faults.find(({ phase }) => phase === 'before');
	if (before?.kind === 'resetBefore') {
		reply.hijack();
		resetConnection(reply.raw);
		return reply;
	}
	if (before?.kind === 'expiredLink') return deliver(reply, EXPIRED);
	if (before !== undefined) {
		const answer = faultAnswer(before, `${parts.addresses.fileUrl}/trap`);
		return answer === undefined ? reply.hijack() : deliver(reply, answer, faults);
	}
	const problem = parts.links.problem(path, url.searchParams, parts.agenda.now());
	if (problem !== undefined) return deliver(reply, problem === 'expired' ? EXPIRED : BAD_SIGNATURE);
	const recipe = findImage(parts, path);
	if (recipe === undefined) return deliver(reply, NO_FILE);
	const content = paddedPng(await parts.artist.image(recipe), parts.fileBytes);
	const sinceMs = parts.agenda.now();
	return sendFile(reply, content, faults, parts.fileLine, () => {
		if (request.method === 'GET') parts.books.download(content.length, sinceMs);
	});
}

/** Answers with a file for agents. */
function answerMedia(parts: Parts, request: FastifyRequest, reply: FastifyReply): FastifyReply {
	const url = new URL(request.url, parts.addresses.fileUrl);
	const path = decodedPath(url);
	const problem = parts.links.problem(path, url.searchParams, parts.agenda.now());
	if (problem === 'expired') return reply.code(403).send({ message: 'Request has expired.' });
	if (problem !== undefined) return reply.code(403).send({ message: 'The signature does not match.' });
	const file = parts.media.find(path);
	if (file === undefined) return reply.code(404).send({ message: 'The file does not exist.' });
	onceWhole(reply.raw, () => {
		if (request.method === 'GET') file.reads++;
	});
	return reply.type(file.mimeType).send(file.content);
}

/** How the books name a path of the file host; the names of files would fill them. */
function kindOf(path: string): readonly [RequestKind, string] {
	if (path.startsWith('/files/')) return ['file', '/files/…'];
	if (path.startsWith(MEDIA_FOLDER)) return ['mediaFile', `${MEDIA_FOLDER}…`];
	return [path === '/trap' ? 'trap' : 'other', path];
}

/** The file host, with result images and files for agents behind signed links, and the trap to which redirects lead. */
export async function fileHost(app: FastifyInstance, { parts }: { parts: Parts }): Promise<void> {
	app.addHook('onRequest', async (request) => {
		const [kind, path] = kindOf(request.url.split('?', 1)[0] ?? '');
		parts.books.request(kind, path);
		for (const header of ['authorization', 'cookie', 'x-api-key']) {
			if (request.headers[header] !== undefined) {
				parts.books.leak(kind === 'trap' ? 'trap' : 'file host', header);
			}
		}
	});
	// The trap accepts any body that a redirect carries along, in order to record it.
	app.removeAllContentTypeParsers();
	app.addContentTypeParser('*', (_request, payload, done) => {
		payload.resume();
		payload.on('end', () => done(null));
	});
	app.get('/files/*', async (request, reply) => answerFile(parts, request, reply));
	app.get(`${MEDIA_FOLDER}*`, async (request, reply) => answerMedia(parts, request, reply));
	app.all('/trap', async (_request, reply) =>
		reply.send({
			code: 0,
			msg: 'Success',
			data: { prompt_id: 'trap', prompt_token: 'trap', image_id: 'trap', flow_task_info: [] },
		}),
	);
}
