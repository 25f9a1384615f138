import type { Clock } from '../../shared/time/clock';
import { fail, failInput, ok, type Failure, type Result } from '../../shared/errors/failure';
import { excerpt, jsonText } from '../../shared/text/json';
import { sha256 } from '../../shared/text/sha256';
import { SEND_AGAIN } from '../../shared/form/sharedFields';
import {
	due,
	shownKey,
	Ticket,
	type EffectMemory,
	type KeyWords,
	type Reused,
} from '../../shared/effects/due';
import type { Ledger } from '../../shared/effects/ledger';
import type { SubmittedTask, TaskApi } from '../api/api';
import { LONGEST_ID_CHARS } from '../api/taskInfo';
import { explainSubmit, namedTask, notSubmitted, type StopReason } from './failures';
import type { UploadedImages } from './memory';
import { withInputs, type Prompt, type PromptInput } from '../workflow/prompt';
import { createImageUploads, type LoadImage, type UploadImage } from './uploads';

export interface SubmitStart {
	readonly kind: 'submit';
	readonly workflowId: string;
	readonly prompt: Prompt;
	readonly images: readonly ImageInput[];
	/** With what will be sent, but without what differs in each run; left out if the item has no idempotency key. */
	readonly idempotency?: { readonly key: string; readonly payload: string } | undefined;
	/** Present if a submit of an earlier try got no clear answer; `taskId` if the answer named a task. */
	readonly lost?: { readonly taskId?: string } | undefined;
}

/** An image that must be uploaded; its `image_id` becomes this input's value (§4.1, rule 5). */
export interface ImageInput {
	readonly nodeId: string;
	readonly parameter: string;
	readonly load: LoadImage;
	/** The most memory that the image may take, 0 if it is streamed; left out if unknown before it is read. */
	readonly bytes?: number | undefined;
	readonly url?: string | undefined;
}

/** The item's task: created by this run, found by its idempotency key, or known from an earlier try or the item. */
export interface ItemTask extends SubmittedTask {
	readonly submittedAtMs: number | undefined;
	/** What this run sent; left out if another run submitted the task. */
	readonly sent?: Prompt;
	/** Whether another execution or another item made it. */
	readonly reused: boolean;
	/** Whether another execution saw the task end. */
	readonly finished?: boolean;
	/** Is told how the task ended. */
	readonly ticket: Ticket;
}

export interface SubmitClient {
	readonly api: Pick<TaskApi, 'submit' | 'upload'>;
	/** Images that an earlier try of the same run uploaded to this account. */
	readonly images?: UploadedImages | undefined;
	/** Distinguishes the account in idempotency keys; left out if the node always uses the same one. */
	readonly account?: string | undefined;
}

/** Uploads what an item needs and submits it, or finds the task of its idempotency key. */
export class TaskSubmitter {
	private readonly upload: UploadImage;
	/** The digest of the request that made each task, by task ID. */
	private readonly made = new Map<string, string>();

	constructor(
		private readonly client: SubmitClient,
		private readonly clock: Clock,
		private readonly stopReason: () => StopReason | undefined,
		private readonly ledger: Ledger | undefined,
	) {
		this.upload = createImageUploads(client.api, client.images);
	}

	/**
	 * Claims the item's key, if it has one, and sends; claims again if the claim expired before the request was sent.
	 * @param admit called before anything is sent; with a key, after the uploads, if the key has no task
	 */
	async submit(
		start: SubmitStart,
		memory: EffectMemory | undefined,
		admit?: () => Promise<Result<undefined>>,
	): Promise<Result<ItemTask>> {
		const { ledger } = this;
		const { account } = this.client;
		const idempotency = ledger && start.idempotency;
		const words = wordsFor(account);
		// A key stands for its images, too, so they are uploaded before it is claimed. Without one, a limit is asked first.
		const askedBeforeUploads = idempotency
			? undefined
			: await due(ledger, { entry: undefined, admit, memory, words });
		if (askedBeforeUploads?.ok === false) return askedBeforeUploads;
		const ready = await this.uploadImages(start);
		if (!ready.ok) return ready;
		const { prompt, placed } = ready.value;
		const entry = idempotency && {
			key: idempotency.key,
			payloadHash: sha256(
				JSON.stringify([start.workflowId, idempotency.payload, placed, ...(account ? [account] : [])]),
			),
			whyStop: () => this.whyStop(),
		};
		for (;;) {
			const stop = this.whyStop();
			if (stop) return fail(stop);
			const asked = askedBeforeUploads ?? (await due(ledger, { entry, admit, memory, words }));
			if (!asked.ok) return asked;
			if (asked.value.kind === 'reuse') return reuse(entry?.key ?? '', asked.value.known, memory, this.clock);
			const sent = await this.send(start, prompt, asked.value.ticket);
			const isExpired = entry && !sent.ok && sent.failure.kind === 'cancelled' && !this.whyStop();
			if (!isExpired) return sent;
		}
	}

	/** @returns in `placed`, each image's input and digest, which, unlike the `image_id`, is the same in each run */
	private async uploadImages(start: SubmitStart) {
		const imageIds: PromptInput[] = [];
		const placed: string[][] = [];
		for (const { load, bytes, nodeId, parameter } of start.images) {
			const stop = this.whyStop();
			if (stop) return fail(stop);
			const uploaded = await this.upload(load, bytes);
			if (!uploaded.ok) return fail(this.heldBack(uploaded.failure));
			imageIds.push({ nodeId, parameter, value: uploaded.value.imageId });
			placed.push([nodeId, parameter, uploaded.value.digest]);
		}
		return ok({ prompt: withInputs(start.prompt, imageIds), placed });
	}

	private async send(start: SubmitStart, prompt: Prompt, ticket: Ticket): Promise<Result<ItemTask>> {
		const stop = this.whyStop();
		if (stop) {
			ticket.refused();
			return fail(stop);
		}
		const answered = await this.client.api.submit(start.workflowId, prompt, ticket.maySend);
		const submitted = answered.ok ? this.asOwn(answered.value, start.workflowId, prompt) : answered;
		if (submitted.ok) {
			const { taskId, promptToken } = submitted.value;
			const submittedAtMs = this.clock.wallNow();
			ticket.sent(taskId, submittedAtMs);
			return ok({ taskId, promptToken, submittedAtMs, sent: prompt, reused: false, ticket });
		}
		if (submitted.failure.kind === 'unclear') ticket.unclear(namedTask(submitted.failure));
		else ticket.refused();
		return fail(explainSubmit(this.heldBack(submitted.failure)));
	}

	/** Refuses a task that an earlier request got for other inputs; for equal inputs, a platform may return it again. */
	private asOwn(task: SubmittedTask, workflowId: string, prompt: Prompt): Result<SubmittedTask> {
		const asked = sha256(jsonText([workflowId, prompt]) ?? '');
		const before = this.made.get(task.taskId);
		if (before === undefined || before === asked) {
			this.made.set(task.taskId, asked);
			return ok(task);
		}
		const shown = excerpt(task.taskId, 100);
		return fail({
			kind: 'unclear',
			message: `The platform answered with the ID of a task that this run had made before, ${shown}`,
			advice: '',
			details: { answeredId: task.taskId },
		});
	}

	/** The failure, or why the run stopped if the request was not sent for that reason. */
	private heldBack(failure: Failure): Failure {
		return (failure.kind === 'cancelled' ? this.whyStop() : undefined) ?? failure;
	}

	private whyStop(): Failure | undefined {
		const reason = this.stopReason();
		return reason && notSubmitted(reason);
	}
}

function reuse(key: string, known: Reused, memory: EffectMemory | undefined, clock: Clock): Result<ItemTask> {
	const { by } = known;
	const taskId = known.reference.trim();
	// People may edit the table.
	if (taskId.length > LONGEST_ID_CHARS) {
		const shown = shownKey(key);
		return failInput(
			`The Data Table flow_task_ledger contains no task ID for the idempotency key "${shown}"`,
			`Nothing was submitted. The value under "reference" is longer than ${LONGEST_ID_CHARS} characters: enter the task's ID there, or delete the key's rows to create a new task.`,
			{ idempotencyKey: shown },
		);
	}
	memory?.sent?.(taskId, by.atMs ?? clock.wallNow(), true);
	return ok({
		taskId,
		promptToken: undefined,
		submittedAtMs: by.atMs,
		reused: true,
		finished: known.finished,
		ticket: new Ticket(memory, known),
	});
}

function wordsFor(account: string | undefined): KeyWords {
	return {
		otherUse: `other inputs${account ? ' or with another API key' : ''}`,
		conflictAdvice:
			'Nothing was submitted. An idempotency key belongs to one set of inputs: use another key for other inputs, or delete the rows of this key in the Data Table flow_task_ledger.',
		unknown: (key, who) =>
			`A task may have been created for the idempotency key "${key}" by ${who}, but its ID is unknown`,
		unknownAdvice: `Nothing was submitted, so nothing is paid for twice. Look for the task in the platform's console. To submit the item anyway, ${SEND_AGAIN}.`,
		unknownDetails: { status: 'unknown', mayExist: true },
	};
}
