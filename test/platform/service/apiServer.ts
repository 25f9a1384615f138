import fastify from 'fastify';
import type { FastifyInstance } from 'fastify';
import type { RequestKind } from '../books';
import { CODES, refusal } from '../codes';
import { parseWireJson } from '../wireJson';
import { adminConsole } from './admin.plugin';
import { agentService } from './agent.plugin';
import { chatService } from './chat.plugin';
import { flowTaskService } from './flowTask.plugin';
import type { Parts } from './parts';

declare module 'fastify' {
	interface FastifyContextConfig {
		/** How the books count the calls of a route. */
		kind?: RequestKind;
	}
}

const BODY_LIMIT = 20 * 1024 * 1024;

/** The server of the API origin, with every service and the admin console as plugins. */
export async function apiServer(parts: Parts): Promise<FastifyInstance> {
	const app = fastify({ bodyLimit: BODY_LIMIT, forceCloseConnections: true });
	app.removeContentTypeParser('application/json');
	app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => {
		try {
			done(null, parseWireJson(body.toString()));
		} catch {
			done(Object.assign(new Error('The body is not JSON.'), { statusCode: 400 }));
		}
	});
	app.addHook('onRequest', async (request) => {
		const path = request.url.split('?', 1)[0] ?? '';
		if (!path.startsWith('/admin/')) parts.books.request(request.routeOptions.config.kind ?? 'other', path);
	});
	app.setErrorHandler(async (error, _request, reply) => {
		const status =
			error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number'
				? error.statusCode
				: 500;
		const msg = error instanceof Error ? error.message : 'Internal error';
		const code = status < 500 ? CODES.badBody : CODES.internal;
		return reply.code(status).send(refusal(code, msg));
	});
	app.setNotFoundHandler(async (_request, reply) =>
		reply.code(404).send(refusal(CODES.unknownPath, 'There is no such path')),
	);
	await app.register(flowTaskService, { parts });
	await app.register(chatService, { parts });
	await app.register(agentService, { parts });
	await app.register(adminConsole, { parts, prefix: '/admin' });
	return app;
}
