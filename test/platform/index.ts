import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import fastify from 'fastify';
import type { FastifyInstance } from 'fastify';
import { Agenda } from './agenda';
import { AgentInstances } from './agents/instances';
import { MediaStore } from './agents/mediaStore';
import { BookKeeper } from './books';
import { BridgeEndpoint } from './bridge/bridgeEndpoint';
import { HoldDesk } from './chat/holds';
import type { LocalPlatform, PlatformOptions } from './contract';
import { FaultBoard } from './faults/faultBoard';
import { fileHost } from './files/fileHost.plugin';
import { Line } from './files/line';
import { FileLinks } from './files/links';
import { UploadStore } from './files/uploadStore';
import { TEST_HOST } from './host';
import { WorkflowHost } from './hosting/workflowHost';
import { Owners } from './owners';
import { ownerWithKey } from './service/admin.plugin';
import { apiServer } from './service/apiServer';
import type { Parts } from './service/parts';
import { ProgressChannel } from './service/progressChannel';
import { RateLimit } from './service/rateLimit';
import { UpgradeRouter } from './service/upgrades';
import { Artist } from './tasks/artist';
import { TaskDesk } from './tasks/taskDesk';

export { PROMPT_TOKEN_PREFIX } from './tasks/task';
export type { Books, PollEntry, RequestKind, SocketCounts, TaskEntry, UploadEntry } from './books';
export type { AgentRecords, InvocationEntry, MediaEntry, SessionEntry } from './agents/agentBooks';
export type { Agent, AgentOptions, AgentRight } from './agents/instances';
export type { ChatControl } from './chat/holds';
export type { ChatEnd, ChatEntry } from './chat/ledger';
export { CHAT_MODELS } from './chat/models';
export type { BridgeBooks, BridgeConnection, BridgeExchange } from './bridge/bridgeBooks';
export { BRIDGE_CLOSE } from './bridge/bridgeEndpoint';
export type { BridgeFrame } from './bridge/bridgeFrames';
export type { BridgeChannel, ChannelOptions } from './bridge/channel';
export type { LocalPlatform, PlatformOptions } from './contract';
export { CODES } from './codes';
export type { FaultControl, FaultHandle } from './faults/faultBoard';
export type { Campaign, FaultKind, FaultRule, FaultTarget } from './faults/rules';
export type { ParameterSpec, ParameterView, ParameterViewNode, SpecNumber } from './hosting/parameterView';
export { WorkflowRefused } from './hosting/workflow';
export type { HostedWorkflow, RefusalReason } from './hosting/workflow';
export { SAMPLE_WORKFLOWS } from './samples';
export { HandWoundTime } from './time';
export type { TimeSource } from './time';

/** Listeners to changes of tasks; the progress channel is added once it exists. */
interface Ears {
	changed: () => void;
}

const MEDIA_SECONDS = 3600;
const MEDIA_MAX_BYTES = 20 * 1024 * 1024;

function assembleAgents(
	options: PlatformOptions,
	links: FileLinks,
	agenda: Agenda,
): Pick<Parts, 'agents' | 'defaultAgent' | 'agentOuterStatus' | 'media'> {
	const { mediaMaxBytes: maxBytes = MEDIA_MAX_BYTES } = options;
	const agents = new AgentInstances(() => agenda.now());
	return {
		agents,
		defaultAgent: agents.create({ name: 'default', token: options.agentToken }),
		agentOuterStatus: options.agentOuterStatus ?? 'always200',
		media: new MediaStore({ seconds: MEDIA_SECONDS, maxBytes, types: options.mediaTypes }, links),
	};
}

function assemble(options: PlatformOptions, ears: Ears): Parts {
	const { runners = 4, taskMs, images = 'render', seed = 1 } = options;
	const agenda = new Agenda(options.time);
	const owners = new Owners();
	const books = new BookKeeper(agenda);
	const uploads = new UploadStore();
	const links = new FileLinks();
	const artist = new Artist(uploads, images);
	const desk = new TaskDesk(
		{ runners, taskMs },
		agenda,
		artist,
		(owner, imageId) => uploads.has(owner, imageId),
		{
			made: (task) => books.taskMade(task),
			changed: () => ears.changed(),
			finished: (task) => books.taskFinished(task),
		},
	);
	return {
		agenda,
		owners,
		defaultOwner: owners.create('default', options.apiKey),
		workflows: new WorkflowHost(),
		uploads,
		artist,
		desk,
		links,
		books,
		faults: new FaultBoard(seed, books),
		rateLimit: new RateLimit(options, agenda),
		tellsRetryAfter: options.tellsRetryAfter ?? true,
		retryAfterSeconds: options.retryAfterSeconds,
		fileBytes: options.fileBytes ?? 0,
		fileLine: new Line(options.fileBytesPerSecond ?? 0),
		holds: new HoldDesk(),
		...assembleAgents(options, links, agenda),
		addresses: { apiUrl: '', fileUrl: '' },
	};
}

/** Tracks every connection, including those that a fault took out of Fastify's control. */
function trackSockets(server: Server): Set<Socket> {
	const sockets = new Set<Socket>();
	server.on('connection', (socket: Socket) => {
		sockets.add(socket);
		socket.once('close', () => sockets.delete(socket));
	});
	return sockets;
}

async function closeServer(app: FastifyInstance, sockets: ReadonlySet<Socket>): Promise<void> {
	const closing = app.close();
	for (const socket of sockets) socket.destroy();
	await closing;
}

/** Starts a platform on this machine; several can run in parallel. */
export async function startPlatform(options: PlatformOptions = {}): Promise<LocalPlatform> {
	const ears: Ears = { changed: () => undefined };
	const parts = assemble(options, ears);
	const api = await apiServer(parts);
	const files = fastify({ forceCloseConnections: true });
	await files.register(fileHost, { parts });
	const router = new UpgradeRouter(parts);
	const channel = new ProgressChannel(parts, router);
	const bridge = new BridgeEndpoint(parts, router);
	ears.changed = () => channel.changed();
	router.attach(api.server);
	const apiSockets = trackSockets(api.server);
	const fileSockets = trackSockets(files.server);
	const apiUrl = await api.listen({ host: TEST_HOST, port: options.port ?? 0 });
	const fileUrl = await files.listen({ host: TEST_HOST, port: options.filePort ?? 0 });
	Object.assign(parts.addresses, { apiUrl, fileUrl });
	parts.links.setOrigin(fileUrl);
	return {
		apiUrl,
		wsUrl: apiUrl.replace(/^http/, 'ws'),
		fileUrl,
		apiKey: parts.defaultOwner.apiKey,
		createOwner: (name) => ({ apiKey: parts.owners.create(name).apiKey }),
		hostWorkflow: async (exported, { apiKey, workflowId } = {}) =>
			parts.workflows.host(exported, ownerWithKey(parts, apiKey), workflowId),
		parameterView: (workflowId) => parts.workflows.parameterView(workflowId),
		createChannel: (options) => bridge.createChannel(options),
		agent: parts.defaultAgent,
		agentToken: parts.defaultAgent.token,
		createAgent: (agentOptions) => parts.agents.create(agentOptions),
		faults: parts.faults,
		chat: parts.holds,
		books: () => {
			parts.agenda.advance();
			return parts.books.snapshot();
		},
		resetBooks: () => parts.books.reset(),
		close: async () => {
			parts.agenda.close();
			parts.agents.releaseAll();
			channel.close();
			bridge.close();
			await Promise.all([closeServer(api, apiSockets), closeServer(files, fileSockets)]);
			await parts.uploads.close();
		},
	};
}
