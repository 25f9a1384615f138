import { ok, type Result } from '../../../shared/errors/failure';
import { shownRequest } from '../../../shared/form/previewRequest';
import type { JsonObject } from '../../../shared/text/json';
import { redactJson } from '../../../shared/text/redact';
import { submitCall } from '../../api/api';
import type { TaskJob } from '../../tasks/engine';
import type { ImageInput, SubmitStart } from '../../tasks/submit';
import { imageValuesIn } from '../../workflow/imageValues';
import { withInputs, type PromptInput } from '../../workflow/prompt';
import type { NodeRun } from '../run';
import type { PrepareItem } from './inputs/readTask';
import { prepareItems } from './runItems';

/** An item has an entry for each of its tasks. */
type Previews = ReadonlyArray<readonly [itemIndex: number, preview: Result<JsonObject>]>;

/** Previews one task after the other, because their images are held in memory. */
export async function previewTasks(
	run: NodeRun,
	itemIndexes: readonly number[],
	readTasks: PrepareItem,
): Promise<Result<Previews>> {
	const prepared = prepareItems(run, itemIndexes, readTasks);
	if (!prepared.ok) return prepared;
	const previews: Array<Previews[number]> = [];
	for (const { itemIndex, task } of prepared.value) {
		if (run.signal.aborted) break;
		previews.push([itemIndex, task.ok ? await previewTask(run, task.value) : task]);
	}
	return ok(previews);
}

async function previewTask(run: NodeRun, job: TaskJob): Promise<Result<JsonObject>> {
	const { start, facts } = job;
	if (start.kind !== 'submit') {
		const notes = ['An earlier try of this execution made this task, so nothing would be submitted.'];
		return ok({ taskId: start.taskId, notes });
	}
	const images = hostedImages(run, job, start);
	const imageIds: PromptInput[] = [];
	for (const image of start.images) {
		const upload = await previewUpload(image);
		if (!upload.ok) return upload;
		const { nodeId, parameter } = image;
		const { name, shown } = upload.value;
		images.push({ nodeId, parameter, ...shown });
		imageIds.push({ nodeId, parameter, value: `<image ID of "${name}", once it is uploaded>` });
	}
	const { path, json } = submitCall(start.workflowId, withInputs(start.prompt, imageIds));
	const shown = {
		...shownRequest(`${run.client.baseUrl}${path}`, 'API key', json),
		seeds: { ...facts.seeds },
		...(facts.variant !== undefined && { variant: facts.variant }),
		images,
		...(start.idempotency && { idempotencyKey: start.idempotency.key }),
		...checksOf(run, job, start),
	};
	return ok(redactJson(shown, run.redact.known));
}

/** Image inputs that are set to the ID of an uploaded image. */
function hostedImages({ workflows }: NodeRun, { itemIndex }: TaskJob, { prompt }: SubmitStart): JsonObject[] {
	const known = workflows.knowledge(itemIndex);
	if (!known.ok || !known.value.definition) return [];
	return imageValuesIn(prompt, known.value.definition, () => false).map(
		({ nodeId, parameter, source, value }) => ({
			nodeId,
			parameter,
			source,
			imageId: value,
		}),
	);
}

/** Opens a file as its upload would, so that the preview fails in the same way. A URL is not opened. */
async function previewUpload({ load, url }: ImageInput) {
	if (url !== undefined) return ok({ name: url, shown: { source: 'link', url } });
	const opened = await load(Infinity);
	if (!opened.ok) return opened;
	const { name, type: mimeType, size: bytes } = opened.value.file;
	opened.value.close();
	return ok({ name, shown: { source: 'file field', fileName: name, mimeType, bytes } });
}

/** What the inputs were checked against, and how the run may differ from the preview. */
function checksOf(
	{ context, workflows }: NodeRun,
	{ itemIndex, facts }: TaskJob,
	{ idempotency, images }: SubmitStart,
): JsonObject {
	const known = workflows.knowledge(itemIndex);
	const definition = known.ok && known.value.definition ? ['Workflow Definition'] : [];
	const view = known.ok && known.value.view.size > 0 ? ['Parameter View'] : [];
	const checkedAgainst = [...definition, ...view];
	const notes = [
		checkedAgainst.length === 0 &&
			"The inputs were not checked. To have them checked, choose a workflow that was saved with its export, or fill in 'Workflow Definition'.",
		context.getNodeParameter('options.seedMode', itemIndex, 'random') === 'random' &&
			Object.keys(facts.seeds ?? {}).length > 0 &&
			"'Seed Mode' is Random, so the run will use another seed, unless you entered one.",
		images.length > 0 && 'Identical images are uploaded only once per run.',
		images.some(({ url }) => url !== undefined) && 'Images given by URL were not fetched.',
		idempotency !== undefined &&
			'If the idempotency key already has a task, the run returns that task; the preview does not look for it.',
	];
	return { checkedAgainst, notes: notes.filter((note) => note !== false) };
}
