import { setTimeout as sleep } from 'node:timers/promises';
import { readExecution } from './executionData';
import type { BinaryFile, Execution, ExecutionStatus } from './executionData';
import { noteSecrets } from './secretHunt';
import type { WorkflowDocument } from './workflowTemplate';

export interface Login {
	email: string;
	password: string;
}

/** The owner of each instance; n8n requires eight characters, a digit and a capital. Only loopback reaches the instance. */
export const OWNER: Login = { email: 'owner@example.com', password: 'FlowTask-demo-1' };

export interface SavedWorkflow extends WorkflowDocument {
	id: string;
	versionId: string;
}

export interface SavedCredential {
	id: string;
	name: string;
	type: string;
}

interface Publication {
	status: 'not_published' | 'in_progress' | 'published' | 'partial' | 'failed';
	triggers: Array<{ nodeId: string; errorMessage: string | null }>;
}

const FINAL: ExecutionStatus[] = ['success', 'error', 'canceled', 'crashed'];

const LOOK_EVERY_MS = 100;
const PUBLISH_DEADLINE_MS = 30_000;
const EXECUTION_DEADLINE_MS = 120_000;
const WEBHOOK_DEADLINE_MS = 15_000;

/** Makes the calls that n8n's own editor makes, as the owner. */
export class N8nClient {
	/** Paths of what this client created, the newest last. */
	private readonly created: string[] = [];

	constructor(
		readonly url: string,
		/** n8n's home, which is searched for the secrets of its credentials when n8n ends. */
		private readonly userFolder: string,
		/** The cookie of a session, for a client that is logged in already. */
		private cookie = '',
	) {}

	/** Claims a new instance; logs in to one that has been claimed. */
	async signIn(login: Login = OWNER): Promise<void> {
		const setup = await this.send('POST', '/rest/owner/setup', {
			...login,
			firstName: 'Flow',
			lastName: 'Owner',
		});
		if (!setup.ok) await this.logIn(login);
	}

	async logIn({ email, password }: Login): Promise<void> {
		const body = { emailOrLdapLoginId: email, password };
		await this.read(await this.send('POST', '/rest/login', body), 'Log in');
	}

	async createCredential(
		type: string,
		name: string,
		data: Record<string, unknown>,
	): Promise<SavedCredential> {
		noteSecrets(this.userFolder, data);
		const saved = await this.call<SavedCredential>('POST', '/rest/credentials', { type, name, data });
		this.created.push(`/rest/credentials/${saved.id}`);
		return saved;
	}

	async createWorkflow(workflow: WorkflowDocument): Promise<SavedWorkflow> {
		const { name, nodes, connections, settings = {} } = workflow;
		const body = { name, nodes, connections, settings };
		const saved = await this.call<SavedWorkflow>('POST', '/rest/workflows', body);
		this.created.push(`/rest/workflows/${saved.id}`);
		return saved;
	}

	/** Removes the workflows, with their executions, and the credentials that this client created. */
	async removeCreated(): Promise<void> {
		for (const path of this.created.splice(0).reverse()) {
			if (path.startsWith('/rest/workflows/')) await this.call('POST', `${path}/archive`, {});
			await this.remove(path);
		}
	}

	/** n8n refuses to remove an archived workflow while it ends its triggers in the background. */
	private async remove(path: string): Promise<void> {
		const deadline = Date.now() + PUBLISH_DEADLINE_MS;
		for (;;) {
			const response = await this.send('DELETE', path);
			if (response.status !== 409 || Date.now() > deadline) {
				await this.read(response, `DELETE ${path}`);
				return;
			}
			await response.arrayBuffer();
			await sleep(LOOK_EVERY_MS);
		}
	}

	/** Publishes the workflow and waits until its triggers are live, because n8n activates them in the background. */
	async activate({ id, name, versionId }: SavedWorkflow): Promise<void> {
		await this.call('POST', `/rest/workflows/${id}/activate`, { versionId });
		const deadline = Date.now() + PUBLISH_DEADLINE_MS;
		for (;;) {
			const path = `/rest/workflows/${id}/publication-status`;
			const response = await this.send('GET', path);
			// An older n8n activates them before it answers, and has no such status.
			if (response.status === 404) return;
			const { status, triggers } = (await this.read(response, path)) as Publication;
			if (status === 'published') return;
			const isPending = status === 'in_progress' || status === 'not_published';
			if (!isPending || Date.now() > deadline) {
				const reasons = triggers.flatMap(({ errorMessage }) => errorMessage ?? []).join('; ');
				throw new Error(`Workflow "${name}" is not published (${status}): ${reasons}`);
			}
			await sleep(LOOK_EVERY_MS);
		}
	}

	async deactivate({ id }: SavedWorkflow): Promise<void> {
		await this.call('POST', `/rest/workflows/${id}/deactivate`, {});
	}

	/** Runs a workflow as "Execute workflow" in the editor does. Returns the execution's ID at once. */
	async run({ id }: SavedWorkflow, triggerName: string): Promise<string> {
		const body = { triggerToStartFrom: { name: triggerName } };
		const answer = await this.call<{ executionId?: string }>('POST', `/rest/workflows/${id}/run`, body);
		if (answer.executionId === undefined) {
			throw new Error(`"${triggerName}" waits for an outside event and cannot be run by hand.`);
		}
		return answer.executionId;
	}

	async getExecution(id: string): Promise<Execution> {
		return readExecution(await this.call('GET', `/rest/executions/${id}`));
	}

	/** Lists the executions of a workflow, the newest first. */
	async listExecutions({ id }: Pick<SavedWorkflow, 'id'>): Promise<Execution[]> {
		const filter = encodeURIComponent(JSON.stringify({ workflowId: id }));
		const page = await this.call<{ results: Execution[] }>('GET', `/rest/executions?filter=${filter}`);
		return page.results;
	}

	async waitForExecution(
		id: string,
		{
			until = FINAL,
			timeoutMs = EXECUTION_DEADLINE_MS,
		}: { until?: ExecutionStatus[]; timeoutMs?: number } = {},
	): Promise<Execution> {
		const deadline = Date.now() + timeoutMs;
		for (;;) {
			const execution = await this.getExecution(id);
			if (until.includes(execution.status)) return execution;
			if (FINAL.includes(execution.status) || Date.now() > deadline) {
				throw new Error(`Execution ${id} is ${execution.status}, not ${until.join(' or ')}.`);
			}
			await sleep(LOOK_EVERY_MS);
		}
	}

	async stopExecution(id: string): Promise<void> {
		await this.call('POST', `/rest/executions/${id}/stop`, {});
	}

	async download(file: BinaryFile): Promise<Buffer> {
		if (file.id === undefined) return Buffer.from(file.data, 'base64');
		const query = new URLSearchParams({ id: file.id, action: 'download' });
		const response = await this.send('GET', `/rest/binary-data?${query.toString()}`);
		if (!response.ok) throw new Error(`n8n has no binary data "${file.id}" (HTTP ${response.status}).`);
		return Buffer.from(await response.arrayBuffer());
	}

	/**
	 * Calls a published webhook from outside, without the owner's session. Right after a start, or in queue mode, n8n may not
	 * know it yet and answers 404.
	 */
	async callWebhook(path: string, body: unknown, timeoutMs = WEBHOOK_DEADLINE_MS): Promise<Response> {
		const deadline = Date.now() + timeoutMs;
		for (;;) {
			const response = await fetch(`${this.url}/webhook/${path}`, {
				method: 'POST',
				headers: { 'content-type': 'application/json' },
				body: JSON.stringify(body),
			});
			if (response.status !== 404 || Date.now() > deadline) return response;
			await response.arrayBuffer();
			await sleep(LOOK_EVERY_MS);
		}
	}

	/** Makes any other call of the editor's interface; n8n wraps its answers in `data`. */
	async call<Answer>(method: string, path: string, body?: unknown): Promise<Answer> {
		return (await this.read(await this.send(method, path, body), `${method} ${path}`)) as Answer;
	}

	private async send(method: string, path: string, body?: unknown): Promise<Response> {
		const headers: Record<string, string> = {};
		if (this.cookie !== '') headers.cookie = this.cookie;
		if (body !== undefined) headers['content-type'] = 'application/json';
		const response = await fetch(`${this.url}${path}`, {
			method,
			headers,
			body: body === undefined ? undefined : JSON.stringify(body),
		});
		const session = response.headers.getSetCookie().find((cookie) => cookie.startsWith('n8n-auth='));
		if (session !== undefined) this.cookie = session.split(';', 1)[0] ?? '';
		return response;
	}

	private async read(response: Response, what: string): Promise<unknown> {
		const text = await response.text();
		if (!response.ok) {
			throw new Error(`${what}: n8n answered ${response.status}: ${text.slice(0, 1000)}`);
		}
		const parsed: unknown = text === '' ? {} : JSON.parse(text);
		return typeof parsed === 'object' && parsed !== null && 'data' in parsed ? parsed.data : parsed;
	}
}
