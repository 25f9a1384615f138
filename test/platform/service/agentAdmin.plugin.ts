import type { FastifyInstance } from 'fastify';
import * as v from 'valibot';
import { AGENT_RIGHTS } from '../agents/instances';
import type { AgentInstance } from '../agents/instances';
import type { Parts } from './parts';

const agentBody = v.object({
	name: v.optional(v.string()),
	token: v.optional(v.string()),
	rights: v.optional(v.array(v.picklist(AGENT_RIGHTS))),
	sessionMs: v.optional(v.number()),
});
const debugTokenBody = v.object({ validMs: v.number() });
const expireBody = v.optional(v.object({ sessionId: v.optional(v.string()) }));

/** The console's calls for agents, which a test in another process needs. */
export async function agentAdmin(app: FastifyInstance, { parts }: { parts: Parts }): Promise<void> {
	const agentOf = ({ id }: { id: string }): AgentInstance => {
		const agent = parts.agents.withId(id);
		if (agent === undefined) throw new Error(`There is no agent ${id}.`);
		return agent;
	};
	app.setErrorHandler(async (error, _request, reply) => {
		const message = error instanceof Error ? error.message : String(error);
		return reply.code(400).send({ message });
	});
	app.get('/agents', async () =>
		parts.agents.list().map(({ agentId, name, token, held }) => ({ agentId, name, token, held })),
	);
	app.post('/agents', async (request, reply) => {
		const { agentId, name, token } = parts.agents.create(v.parse(agentBody, request.body));
		return reply.code(201).send({ agentId, name, token });
	});
	app.post<{ Params: { id: string } }>('/agents/:id/debug-token', async ({ params, body }, reply) => {
		const token = agentOf(params).debugToken(v.parse(debugTokenBody, body).validMs);
		return reply.code(201).send({ token });
	});
	app.post<{ Params: { id: string } }>('/agents/:id/expire-sessions', async ({ params, body }, reply) => {
		agentOf(params).expireSessions(v.parse(expireBody, body)?.sessionId);
		return reply.code(204).send();
	});
	app.post<{ Params: { id: string } }>('/agents/:id/release', async ({ params }, reply) => {
		agentOf(params).release();
		return reply.code(204).send();
	});
}
