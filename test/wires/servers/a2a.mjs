// The reference server of A2A, in the version named by the first argument (0.3 or 1), with an agent that is `script.mjs`.
import { randomUUID } from 'node:crypto';
import express from 'express';
import * as core03 from 'a2a-03/server';
import { A2AExpressApp, UserBuilder as NoUser03 } from 'a2a-03/server/express';
import { Role, TaskState } from 'a2a-1';
import * as core1 from 'a2a-1/server';
import { jsonRpcHandler, UserBuilder as NoUser1 } from 'a2a-1/server/express';
import { answerAfter, answerTo, asksOf, listens, refusalOf } from './script.mjs';

const PATH = '/a2a';
const isOld = process.argv[2] === '0.3';
const STATES = {
	working: TaskState.TASK_STATE_WORKING,
	'input-required': TaskState.TASK_STATE_INPUT_REQUIRED,
	completed: TaskState.TASK_STATE_COMPLETED,
	failed: TaskState.TASK_STATE_FAILED,
};

/** What the two versions call the same things. */
const form = isOld
	? {
			text: (text) => ({ kind: 'text', text }),
			data: (data) => ({ kind: 'data', data }),
			message: (more) => ({ kind: 'message', role: 'agent', ...more }),
			state: (state) => state,
			task: (task) => ({ kind: 'task', ...task }),
			status: (update, isLast) => ({ kind: 'status-update', final: isLast, ...update }),
			artifact: (update) => ({ kind: 'artifact-update', ...update }),
			textOf: (part) => part.text ?? '',
			urlOf: (part) => part.file?.uri ?? '',
		}
	: {
			text: (value) => ({ content: { $case: 'text', value }, filename: '', mediaType: '' }),
			data: (value) => ({ content: { $case: 'data', value }, filename: '', mediaType: '' }),
			message: (more) => ({ role: Role.ROLE_AGENT, extensions: [], referenceTaskIds: [], ...more }),
			state: (state) => STATES[state],
			task: (task) => core1.AgentEvent.task({ artifacts: [], ...task }),
			status: (update) => core1.AgentEvent.statusUpdate(update),
			artifact: (update) => core1.AgentEvent.artifactUpdate(update),
			textOf: ({ content }) => (content?.$case === 'text' ? content.value : ''),
			urlOf: ({ content }) => (content?.$case === 'url' ? content.value : ''),
		};

/** The numbers of messages by context: the protocol leaves them to the agent. */
const turns = new Map();

const executor = {
	cancelTask: async () => {},
	async execute({ taskId, contextId, task, userMessage }, bus) {
		const ids = { taskId, contextId };
		const said = userMessage.parts.map((part) => form.textOf(part)).join('');
		const files = userMessage.parts.map((part) => form.urlOf(part)).filter(Boolean);
		const timestamp = new Date().toISOString();
		const say = (state, ...parts) => {
			const message = parts.length > 0 ? form.message({ ...ids, messageId: randomUUID(), parts }) : undefined;
			const isLast = state !== 'working';
			bus.publish(form.status({ ...ids, status: { state: form.state(state), message, timestamp } }, isLast));
		};
		try {
			if (!task) turns.set(contextId, (turns.get(contextId) ?? 0) + 1);
			const status = { state: form.state('working'), timestamp };
			// Also a resumed run has to begin with its task, says version 1.
			bus.publish(form.task({ ...(task ?? { id: taskId, contextId, history: [userMessage] }), status }));
			const asks = task ? [] : asksOf(said);
			if (asks.length > 0) {
				const parts = asks.map((args) => form.data({ name: 'pay', args }));
				return say('input-required', form.text('Pay?'), ...parts);
			}
			const words = [said, ...files].join(' ');
			let append = false;
			for await (const text of task ? answerAfter([said]) : answerTo(words, turns.get(contextId))) {
				const artifact = { artifactId: `answer-${taskId}`, name: 'answer', description: '', extensions: [] };
				bus.publish(
					form.artifact({
						...ids,
						append,
						lastChunk: false,
						artifact: { ...artifact, parts: [form.text(text)] },
					}),
				);
				append = true;
			}
			say('completed');
		} catch (error) {
			say('failed', form.text(error.message));
		} finally {
			bus.finished();
		}
	},
};

const modes = ['text/plain', 'image/png'];
const card = {
	name: 'script',
	description: 'Answers from a script.',
	version: '1.0.0',
	protocolVersion: '0.3.0',
	url: `http://127.0.0.1${PATH}`,
	supportedInterfaces: [
		{ url: `http://127.0.0.1${PATH}`, protocolBinding: 'JSONRPC', tenant: '', protocolVersion: '1.0' },
	],
	capabilities: { streaming: true, pushNotifications: false, extensions: [] },
	defaultInputModes: modes,
	defaultOutputModes: modes,
	skills: [
		{
			id: 'any',
			name: 'any',
			description: 'Anything.',
			tags: [],
			examples: [],
			inputModes: modes,
			outputModes: modes,
			securityRequirements: [],
		},
	],
	securitySchemes: {},
	securityRequirements: [],
	signatures: [],
};
const app = express();
app.use((request, response, next) => {
	const status = refusalOf(request.get('authorization'));
	if (status)
		response.status(status).json({ message: status === 429 ? 'Too many requests' : 'Unauthorized' });
	else next();
});
const core = isOld ? core03 : core1;
const requestHandler = new core.DefaultRequestHandler(card, new core.InMemoryTaskStore(), executor);
if (isOld) new A2AExpressApp(requestHandler, NoUser03.noAuthentication).setupRoutes(app, PATH);
else app.use(PATH, jsonRpcHandler({ requestHandler, userBuilder: NoUser1.noAuthentication }));
const server = app.listen(Number(process.env.PORT) || 0, '127.0.0.1', () => listens(server.address().port));
