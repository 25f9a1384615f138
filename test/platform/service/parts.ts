import type { Agenda } from '../agenda';
import type { AgentInstance, AgentInstances } from '../agents/instances';
import type { MediaStore } from '../agents/mediaStore';
import type { BookKeeper } from '../books';
import type { HoldDesk } from '../chat/holds';
import type { FaultBoard } from '../faults/faultBoard';
import type { Line } from '../files/line';
import type { FileLinks } from '../files/links';
import type { UploadStore } from '../files/uploadStore';
import type { WorkflowHost } from '../hosting/workflowHost';
import type { Owner, Owners } from '../owners';
import type { Artist } from '../tasks/artist';
import type { TaskDesk } from '../tasks/taskDesk';
import type { OuterStatus } from './agentDelivery';
import type { RateLimit } from './rateLimit';

/** The parts of the platform. Each service is a Fastify plugin that uses them. */
export interface Parts {
	readonly agenda: Agenda;
	readonly owners: Owners;
	readonly defaultOwner: Owner;
	readonly workflows: WorkflowHost;
	readonly uploads: UploadStore;
	readonly artist: Artist;
	readonly desk: TaskDesk;
	readonly links: FileLinks;
	readonly books: BookKeeper;
	readonly faults: FaultBoard;
	readonly rateLimit: RateLimit;
	readonly tellsRetryAfter: boolean;
	/** The `Retry-After` to send instead of the right one. */
	readonly retryAfterSeconds: number | undefined;
	readonly fileBytes: number;
	/** The line that all downloads share. */
	readonly fileLine: Line;
	readonly holds: HoldDesk;
	readonly agents: AgentInstances;
	readonly defaultAgent: AgentInstance;
	readonly agentOuterStatus: OuterStatus;
	readonly media: MediaStore;
	/** The addresses, which are known once both servers are listening. */
	readonly addresses: { apiUrl: string; fileUrl: string };
}
