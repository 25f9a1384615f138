import multipart from '@fastify/multipart';
import type { FastifyInstance } from 'fastify';
import { CODES, refusal, success } from '../codes';
import type { Envelope } from '../codes';
import { readOverrides } from '../hosting/overrides';
import type { Task } from '../tasks/task';
import { taskInfo } from '../tasks/taskInfo';
import { isRecord } from '../wireJson';
import type { JsonRecord } from '../wireJson';
import { linkSeconds, orderedOutcome, spoilInfo, withoutSome } from './answerFaults';
import { endpoint } from './endpoint';
import type { Visit, WorkDone } from './endpoint';
import type { Parts } from './parts';

const BASE = '/api/maas/flow_task_api';
const DEFAULT_LINK_SECONDS = 3600;
const MAX_UPLOAD_BYTES = 100 * 1024 * 1024;

/** Whether a body is an object of these fields and no others (§4.1, §4.2). */
function hasOnly(body: unknown, fields: readonly string[]): body is JsonRecord {
	return isRecord(body) && Object.keys(body).every((name) => fields.includes(name));
}

function submit(parts: Parts, { owner, request, faults }: Visit): WorkDone {
	const refused = (code: number, msg: string): WorkDone => ({ envelope: refusal(code, msg) });
	const { body } = request;
	if (!hasOnly(body, ['workflow_id', 'prompt'])) {
		return refused(CODES.badBody, 'The body must be a JSON object of workflow_id and prompt.');
	}
	const { workflow_id: workflowId, prompt } = body;
	if (typeof workflowId !== 'string' || workflowId === '') {
		return refused(CODES.badWorkflowId, 'workflow_id is required: a string.');
	}
	const workflow = parts.workflows.find(workflowId);
	if (workflow === undefined) return refused(CODES.unknownWorkflow, `There is no workflow ${workflowId}.`);
	if (workflow.owner !== owner) {
		return refused(CODES.foreignWorkflow, `The workflow ${workflowId} belongs to another account.`);
	}
	const read = readOverrides(prompt, workflow, {
		owner,
		imageExists: (who, imageId) => parts.uploads.has(who, imageId),
	});
	if ('problems' in read) {
		const [first] = read.problems;
		return refused(first?.code ?? CODES.badPrompt, read.problems.map(({ msg }) => msg).join(' '));
	}
	const task = parts.desk.submit({
		owner,
		workflow,
		overrides: read.overrides,
		prompt: isRecord(prompt) ? prompt : {},
		outcome: orderedOutcome(faults),
	});
	return {
		envelope: success({ prompt_id: task.id, prompt_token: task.token }),
		delivered: () => {
			task.delivered = true;
		},
	};
}

function isListOfTexts(value: unknown): value is string[] {
	return Array.isArray(value) && value.every((entry) => typeof entry === 'string');
}

function info(parts: Parts, { owner, request, faults }: Visit): Envelope {
	const { body } = request;
	if (!hasOnly(body, ['flow_task_ids', 'url_expire_period'])) {
		return refusal(CODES.badBody, 'The body must be a JSON object of flow_task_ids and url_expire_period.');
	}
	const { flow_task_ids: ids, url_expire_period: period = DEFAULT_LINK_SECONDS } = body;
	if (!isListOfTexts(ids))
		return refusal(CODES.badTaskIds, 'flow_task_ids is required: an array of strings.');
	if (typeof period !== 'number' || !Number.isInteger(period) || period < 1) {
		return refusal(CODES.badExpirePeriod, 'url_expire_period must be a positive integer (seconds).');
	}
	parts.agenda.advance();
	const tasks: Task[] = [];
	for (const id of ids) {
		const task = parts.desk.find(id);
		if (task?.owner === owner) tasks.push(task);
	}
	parts.books.poll(owner, ids);
	const seconds = linkSeconds(period, faults);
	const items = withoutSome(tasks, faults).map((task) =>
		spoilInfo(taskInfo(task, parts.desk, parts.links, parts.agenda, seconds), faults),
	);
	return success({ flow_task_info: items });
}

async function upload(parts: Parts, { owner, request }: Visit): Promise<Envelope> {
	const missing = refusal(CODES.fileMissing, 'source_file is required: one form part of type file.');
	if (!request.isMultipart()) return missing;
	let answer: Envelope | undefined;
	for await (const part of request.parts()) {
		// A part that is not read to its end would block the parts that follow.
		if (part.type !== 'file' || part.fieldname !== 'source_file' || answer !== undefined) {
			if (part.type === 'file') part.file.resume();
			answer = missing;
			continue;
		}
		const { filename, mimetype } = part;
		const image = await parts.uploads.save(part.file, filename, owner);
		if (part.file.truncated) answer = refusal(CODES.fileTooLarge, 'source_file is larger than 100 MB.');
		else if (image === 'empty') answer = refusal(CODES.fileEmpty, 'source_file is empty.');
		else if (image === 'notAnImage') answer = refusal(CODES.notAnImage, 'source_file is not an image.');
		else {
			const { imageId, bytes, sha256 } = image;
			parts.books.upload({ imageId, owner: owner.name, filename, contentType: mimetype, bytes, sha256 });
			answer = success({ image_id: imageId });
		}
	}
	return answer ?? missing;
}

/** The HTTP calls of the workflow service. */
export async function flowTaskService(app: FastifyInstance, { parts }: { parts: Parts }): Promise<void> {
	await app.register(multipart, { limits: { fileSize: MAX_UPLOAD_BYTES }, throwFileSizeLimit: false });
	app.post(
		`${BASE}/prompt`,
		{ config: { kind: 'submit' } },
		endpoint(parts, 'submit', async (visit) => submit(parts, visit)),
	);
	app.post(
		`${BASE}/get_task_info`,
		{ config: { kind: 'info' } },
		endpoint(parts, 'info', async (visit) => ({ envelope: info(parts, visit) })),
	);
	app.post(
		`${BASE}/upload/image`,
		{ config: { kind: 'upload' } },
		endpoint(parts, 'upload', async (visit) => ({ envelope: await upload(parts, visit) })),
	);
}
