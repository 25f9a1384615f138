import type { FastifyInstance } from 'fastify';
import { MEDIA_FOLDER } from '../agents/mediaStore';
import { onceWhole } from '../service/delivery';
import type { Parts } from '../service/parts';

/** Serves uploaded media on the file host, behind signed links. */
export async function mediaHost(app: FastifyInstance, { parts }: { parts: Parts }): Promise<void> {
	app.addHook('onRequest', async (request) => {
		parts.books.request('mediaFile', `${MEDIA_FOLDER}…`);
		for (const header of ['authorization', 'cookie', 'x-api-key']) {
			if (request.headers[header] !== undefined) parts.books.leak('file host', header);
		}
	});
	app.get(`${MEDIA_FOLDER}*`, async (request, reply) => {
		const url = new URL(request.url, parts.addresses.fileUrl);
		const path = decodeURIComponent(url.pathname);
		const problem = parts.links.problem(path, url.searchParams, parts.agenda.now());
		if (problem === 'expired') return reply.code(403).send({ message: 'Request has expired.' });
		if (problem !== undefined) return reply.code(403).send({ message: 'The signature does not match.' });
		const file = parts.media.find(path);
		if (file === undefined) return reply.code(404).send({ message: 'The file does not exist.' });
		onceWhole(reply.raw, () => {
			if (request.method === 'GET') file.reads++;
		});
		return reply.type(file.mimeType).send(file.content);
	});
}
