import type { FastifyInstance } from 'fastify';
import * as v from 'valibot';
import { campaignSchema, faultRuleSchema } from '../faults/rules';
import { WorkflowRefused } from '../hosting/workflow';
import type { Owner } from '../owners';
import type { Parts } from './parts';

const workflowBody = v.object({
	export: v.unknown(),
	workflowId: v.optional(v.string()),
	apiKey: v.optional(v.string()),
});
const ownerBody = v.object({ name: v.pipe(v.string(), v.minLength(1)) });

/** Finds the owner with this key; without a key, it is the default owner. */
export function ownerWithKey(parts: Parts, apiKey: string | undefined): Owner {
	const owner = apiKey === undefined ? parts.defaultOwner : parts.owners.withKey(apiKey);
	if (owner === undefined) throw new Error('There is no owner with this API key.');
	return owner;
}

function workflowRoutes(app: FastifyInstance, parts: Parts): void {
	app.get('/workflows', async () =>
		parts.workflows.list().map(({ workflowId, owner }) => ({ workflowId, owner: owner.name })),
	);
	app.post('/workflows', async (request, reply) => {
		const body = v.parse(workflowBody, request.body);
		try {
			const { workflowId } = parts.workflows.host(
				body.export,
				ownerWithKey(parts, body.apiKey),
				body.workflowId,
			);
			return await reply.code(201).send({ workflowId });
		} catch (error) {
			if (!(error instanceof WorkflowRefused)) throw error;
			return reply.code(422).send({ reason: error.reason, message: error.message });
		}
	});
	app.get<{ Params: { id: string } }>('/workflows/:id/parameters', async ({ params: { id } }, reply) => {
		if (parts.workflows.find(id) === undefined) {
			return reply.code(404).send({ message: `There is no workflow ${id}.` });
		}
		// Fastify's own serializer does not support integers above 2^53.
		const view = JSON.stringify(parts.workflows.parameterView(id));
		return reply.type('application/json; charset=utf-8').send(view);
	});
}

function faultRoutes(app: FastifyInstance, parts: Parts): void {
	app.post('/faults', async (request, reply) => {
		const { id } = parts.faults.add(v.parse(faultRuleSchema, request.body));
		return reply.code(201).send({ id });
	});
	app.post('/faults/campaign', async (request, reply) => {
		parts.faults.campaign(v.parse(campaignSchema, request.body));
		return reply.code(204).send();
	});
	app.delete('/faults', async (_request, reply) => {
		parts.faults.clear();
		return reply.code(204).send();
	});
}

/** The platform's console, for people and tests. It does not belong to the service, and its calls are not in the books. */
export async function adminConsole(app: FastifyInstance, { parts }: { parts: Parts }): Promise<void> {
	app.setErrorHandler(async (error, _request, reply) => {
		const message = error instanceof Error ? error.message : String(error);
		return reply.code(400).send({ message });
	});
	app.get('/books', async (_request, reply) => {
		parts.agenda.advance();
		const books = JSON.stringify(parts.books.snapshot());
		return reply.type('application/json; charset=utf-8').send(books);
	});
	app.delete('/books', async (_request, reply) => {
		parts.books.reset();
		return reply.code(204).send();
	});
	app.post('/owners', async (request, reply) => {
		const { apiKey } = parts.owners.create(v.parse(ownerBody, request.body).name);
		return reply.code(201).send({ apiKey });
	});
	workflowRoutes(app, parts);
	faultRoutes(app, parts);
}
