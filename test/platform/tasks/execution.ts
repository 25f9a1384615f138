import type { Overrides } from '../hosting/overrides';
import { EXAMPLE_IMAGE } from '../hosting/nodeClasses';
import type { HostedWorkflow, WorkflowNode } from '../hosting/workflow';
import type { Owner } from '../owners';
import { exactInteger } from '../wireJson';
import { samplingOf } from './recipe';
import type { ImageRecipe, Size } from './recipe';

/** The output of one output node of a task. */
export interface TaskOutput {
	readonly nodeId: string;
	readonly final: boolean;
	readonly names: readonly string[];
	readonly images: readonly ImageRecipe[];
	/** After how many sampler steps the images exist. */
	readonly afterSteps: number;
}

export interface Execution {
	readonly outputs: readonly TaskOutput[];
	/** The number of steps, at least 1, so that a workflow without a sampler has progress too. */
	readonly steps: number;
	/** Every text among the inputs of the nodes that ran. */
	readonly texts: readonly string[];
	/** Why the task failed. */
	readonly failure?: string;
}

export type ImageExists = (owner: Owner, imageId: string) => boolean;

/** The value of one output of a node, of which only one field has a content. */
interface Slot {
	readonly models?: readonly string[];
	readonly conditioning?: string;
	/** Images, or the latents that decode to them. */
	readonly images?: readonly ImageRecipe[];
}

class TaskStop extends Error {}

/** A run of a graph, node after node. */
class Run {
	readonly outputs: TaskOutput[] = [];
	readonly texts: string[] = [];
	steps = 0;
	readonly #slots = new Map<string, readonly Slot[]>();

	constructor(
		private readonly owner: Owner,
		private readonly overrides: Overrides,
		private readonly imageExists: ImageExists,
	) {}

	execute(node: WorkflowNode): void {
		this.#slots.set(node.id, this.#runClass(node));
	}

	#value(node: WorkflowNode, name: string): unknown {
		const changed = this.overrides.get(node.id);
		return changed?.has(name) ? changed.get(name) : node.values.get(name);
	}

	#text(node: WorkflowNode, name: string): string {
		const value = this.#value(node, name);
		return typeof value === 'string' ? value : '';
	}

	#number(node: WorkflowNode, name: string): number {
		const value = this.#value(node, name);
		return typeof value === 'number' ? value : Number(exactInteger(value) ?? 0n);
	}

	/** The value that arrives by a link. */
	#linked(node: WorkflowNode, name: string): Slot {
		const link = node.links.get(name);
		return (link && this.#slots.get(link.nodeId)?.[link.slot]) ?? {};
	}

	#runClass(node: WorkflowNode): readonly Slot[] {
		switch (node.classType) {
			case 'CheckpointLoaderSimple': {
				const model = { models: [this.#text(node, 'ckpt_name')] };
				return [model, model, model];
			}
			case 'VAELoader':
				return [{ models: [this.#text(node, 'vae_name')] }];
			case 'LoraLoader': {
				const lora = `${this.#text(node, 'lora_name')}@${this.#number(node, 'strength_model')}`;
				const { models = [] } = this.#linked(node, 'model');
				return [{ models: [...models, lora] }, this.#linked(node, 'clip')];
			}
			case 'CLIPTextEncode': {
				const conditioning = this.#text(node, 'text');
				this.texts.push(conditioning);
				return [{ conditioning }];
			}
			case 'KSampler':
				return [this.#sample(node)];
			default:
				return this.#runImageClass(node);
		}
	}

	#runImageClass(node: WorkflowNode): readonly Slot[] {
		switch (node.classType) {
			case 'EmptyLatentImage': {
				const blank = { kind: 'blank', ...this.#size(node) } as const;
				return [{ images: Array.from({ length: this.#number(node, 'batch_size') }, () => blank) }];
			}
			case 'VAEEncode':
				return [this.#linked(node, 'pixels')];
			case 'VAEDecode':
				return [this.#linked(node, 'samples')];
			case 'LoadImage':
				return [{ images: [this.#load(node)] }];
			case 'ImageScale': {
				const method = this.#text(node, 'upscale_method');
				const crop = this.#text(node, 'crop');
				const { images = [] } = this.#linked(node, 'image');
				const size = this.#size(node);
				return [{ images: images.map((from) => ({ kind: 'scaled', from, method, crop, ...size })) }];
			}
			case 'SaveImage':
			case 'PreviewImage':
				this.#deliver(node);
				return [];
			default:
				throw new TaskStop(`Node ${node.id} (${node.title}): ${node.classType} cannot be run`);
		}
	}

	#size(node: WorkflowNode): Size {
		return { width: this.#number(node, 'width'), height: this.#number(node, 'height') };
	}

	#sample(node: WorkflowNode): Slot {
		const sampling = {
			seed: (exactInteger(this.#value(node, 'seed')) ?? 0n).toString(),
			steps: this.#number(node, 'steps'),
			cfg: this.#number(node, 'cfg'),
			sampler: this.#text(node, 'sampler_name'),
			scheduler: this.#text(node, 'scheduler'),
			denoise: this.#number(node, 'denoise'),
			models: this.#linked(node, 'model').models ?? [],
			positive: this.#linked(node, 'positive').conditioning ?? '',
			negative: this.#linked(node, 'negative').conditioning ?? '',
		};
		this.steps += sampling.steps;
		const { images = [] } = this.#linked(node, 'latent_image');
		return { images: images.map((from, index) => ({ kind: 'sampled', sampling, index, from })) };
	}

	#load(node: WorkflowNode): ImageRecipe {
		const imageId = this.#text(node, 'image');
		if (imageId !== EXAMPLE_IMAGE && !this.imageExists(this.owner, imageId)) {
			const advice = 'upload one and pass its image_id';
			throw new TaskStop(`Node ${node.id} (${node.title}): there is no image ${imageId}; ${advice}`);
		}
		return { kind: 'loaded', imageId };
	}

	#deliver(node: WorkflowNode): void {
		const final = node.nodeClass.images === 'final';
		const { images = [] } = this.#linked(node, 'images');
		const prefix = final ? this.#text(node, 'filename_prefix') : 'preview';
		const stem = prefix.replace(/[^\p{L}\p{N}._-]+/gu, '_').replace(/^\.+/, '') || 'image';
		this.outputs.push({
			nodeId: node.id,
			final,
			names: images.map((_, index) => `${stem}_${String(index + 1).padStart(5, '0')}_.png`),
			images: final ? images.map(signed) : images,
			afterSteps: this.steps,
		});
	}
}

/** Adds to the foot of a saved image what it was made from. */
function signed(from: ImageRecipe): ImageRecipe {
	const sampling = samplingOf(from);
	if (sampling === undefined) return from;
	const { positive, seed, steps, cfg, sampler, denoise } = sampling;
	const strength = denoise < 1 ? ` · denoise ${denoise}` : '';
	const lines = [positive, `seed ${seed} · ${steps} steps · cfg ${cfg} · ${sampler}${strength}`];
	return { kind: 'signed', from, lines };
}

/** Runs a workflow's graph with a task's overrides. @returns its outputs, and after how many steps each exists */
export function executeGraph(
	workflow: HostedWorkflow,
	owner: Owner,
	overrides: Overrides,
	imageExists: ImageExists,
): Execution {
	const run = new Run(owner, overrides, imageExists);
	try {
		for (const node of workflow.order) run.execute(node);
	} catch (error) {
		if (!(error instanceof TaskStop)) throw error;
		return { outputs: [], steps: Math.max(1, run.steps), texts: run.texts, failure: error.message };
	}
	return { outputs: run.outputs, steps: Math.max(1, run.steps), texts: run.texts };
}
