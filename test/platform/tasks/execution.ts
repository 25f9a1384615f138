import type { Overrides } from '../hosting/overrides';
import { EXAMPLE_IMAGE } from '../hosting/nodeClasses';
import { modelStanding } from '../hosting/valueRules';
import type { HostedWorkflow, NodeLink, WorkflowNode } from '../hosting/workflow';
import type { Owner, Owners } from '../owners';
import { exactInteger } from '../wireJson';
import { samplingOf } from './recipe';
import type { LatentRecipe, ImageRecipe } from './recipe';

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
	readonly failure?: { readonly status: 4 | 5; readonly errMsg: string };
}

export interface ExecutionSurroundings {
	readonly owners: Owners;
	readonly imageExists: (owner: Owner, imageId: string) => boolean;
}

/** The value of one output of a node. */
type Slot =
	| { readonly type: 'models'; readonly names: readonly string[] }
	| { readonly type: 'conditioning'; readonly text: string }
	| { readonly type: 'latents'; readonly latents: readonly LatentRecipe[] }
	| { readonly type: 'images'; readonly images: readonly ImageRecipe[] };

class TaskStop extends Error {
	constructor(
		readonly status: 4 | 5,
		message: string,
	) {
		super(message);
	}
}

/** A run of a graph, node after node. */
class Run {
	readonly outputs: TaskOutput[] = [];
	readonly texts: string[] = [];
	steps = 0;
	readonly #slots = new Map<string, readonly Slot[]>();

	constructor(
		private readonly owner: Owner,
		private readonly overrides: Overrides,
		private readonly surroundings: ExecutionSurroundings,
	) {}

	execute(node: WorkflowNode): void {
		this.#checkModels(node);
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

	#slot(link: NodeLink | undefined): Slot | undefined {
		return link === undefined ? undefined : this.#slots.get(link.nodeId)?.[link.slot];
	}

	#images(node: WorkflowNode, name: string): readonly ImageRecipe[] {
		const slot = this.#slot(node.links.get(name));
		return slot?.type === 'images' ? slot.images : [];
	}

	#models(node: WorkflowNode, name: string): readonly string[] {
		const slot = this.#slot(node.links.get(name));
		return slot?.type === 'models' ? slot.names : [];
	}

	#latents(node: WorkflowNode, name: string): readonly LatentRecipe[] {
		const slot = this.#slot(node.links.get(name));
		return slot?.type === 'latents' ? slot.latents : [];
	}

	#conditioning(node: WorkflowNode, name: string): string {
		const slot = this.#slot(node.links.get(name));
		return slot?.type === 'conditioning' ? slot.text : '';
	}

	#checkModels(node: WorkflowNode): void {
		for (const [name, input] of Object.entries(node.nodeClass.values)) {
			if (input.type !== 'model') continue;
			const model = this.#text(node, name);
			const standing = modelStanding(input, model, this.owner, this.surroundings.owners);
			if (standing === 'usable') continue;
			throw new TaskStop(5, `Node ${node.id} (${node.title}): no permission to use the model ${model}`);
		}
	}

	#runClass(node: WorkflowNode): readonly Slot[] {
		switch (node.classType) {
			case 'CheckpointLoaderSimple': {
				const model: Slot = { type: 'models', names: [this.#text(node, 'ckpt_name')] };
				return [model, model, model];
			}
			case 'VAELoader':
				return [{ type: 'models', names: [this.#text(node, 'vae_name')] }];
			case 'LoraLoader': {
				const lora = `${this.#text(node, 'lora_name')}@${this.#number(node, 'strength_model')}`;
				const model: Slot = { type: 'models', names: [...this.#models(node, 'model'), lora] };
				return [model, { type: 'models', names: this.#models(node, 'clip') }];
			}
			case 'CLIPTextEncode': {
				const text = this.#text(node, 'text');
				this.texts.push(text);
				return [{ type: 'conditioning', text }];
			}
			case 'EmptyLatentImage':
				return [this.#blank(node)];
			case 'KSampler':
				return [this.#sample(node)];
			case 'VAEEncode': {
				const images = this.#images(node, 'pixels');
				const latents = images.map((image, index) => ({ kind: 'encoded', image, index }) as const);
				return [{ type: 'latents', latents }];
			}
			case 'VAEDecode': {
				const latents = this.#latents(node, 'samples');
				const images = latents.map((latent) => ({ kind: 'decoded', latent }) as const);
				return [{ type: 'images', images }];
			}
			default:
				return this.#runImageClass(node);
		}
	}

	#runImageClass(node: WorkflowNode): readonly Slot[] {
		switch (node.classType) {
			case 'LoadImage':
				return [{ type: 'images', images: [this.#load(node)] }];
			case 'ImageScale': {
				const width = this.#number(node, 'width');
				const height = this.#number(node, 'height');
				const method = this.#text(node, 'upscale_method');
				const crop = this.#text(node, 'crop');
				const images = this.#images(node, 'image').map(
					(from) => ({ kind: 'scaled', from, width, height, method, crop }) as const,
				);
				return [{ type: 'images', images }];
			}
			case 'SaveImage':
			case 'PreviewImage':
				this.#deliver(node);
				return [];
			default:
				throw new TaskStop(4, `Node ${node.id} (${node.title}): ${node.classType} cannot be run`);
		}
	}

	#blank(node: WorkflowNode): Slot {
		const width = this.#number(node, 'width');
		const height = this.#number(node, 'height');
		const length = this.#number(node, 'batch_size');
		const latents = Array.from({ length }, (_, index) => ({ kind: 'blank', width, height, index }) as const);
		return { type: 'latents', latents };
	}

	#sample(node: WorkflowNode): Slot {
		const sampling = {
			seed: (exactInteger(this.#value(node, 'seed')) ?? 0n).toString(),
			steps: this.#number(node, 'steps'),
			cfg: this.#number(node, 'cfg'),
			sampler: this.#text(node, 'sampler_name'),
			scheduler: this.#text(node, 'scheduler'),
			denoise: this.#number(node, 'denoise'),
			models: this.#models(node, 'model'),
			positive: this.#conditioning(node, 'positive'),
			negative: this.#conditioning(node, 'negative'),
		};
		this.steps += sampling.steps;
		const latents = this.#latents(node, 'latent_image').map(
			(from) => ({ kind: 'sampled', sampling, from }) as const,
		);
		return { type: 'latents', latents };
	}

	#load(node: WorkflowNode): ImageRecipe {
		const imageId = this.#text(node, 'image');
		if (imageId !== EXAMPLE_IMAGE && !this.surroundings.imageExists(this.owner, imageId)) {
			const advice = 'upload one and pass its image_id';
			throw new TaskStop(4, `Node ${node.id} (${node.title}): there is no image ${imageId}; ${advice}`);
		}
		return { kind: 'loaded', imageId };
	}

	#deliver(node: WorkflowNode): void {
		const final = node.nodeClass.images === 'final';
		const images = this.#images(node, 'images');
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
	surroundings: ExecutionSurroundings,
): Execution {
	const run = new Run(owner, overrides, surroundings);
	try {
		for (const node of workflow.order) run.execute(node);
	} catch (error) {
		if (!(error instanceof TaskStop)) throw error;
		const failure = { status: error.status, errMsg: error.message };
		return { outputs: [], steps: Math.max(1, run.steps), texts: run.texts, failure };
	}
	return { outputs: run.outputs, steps: Math.max(1, run.steps), texts: run.texts };
}
