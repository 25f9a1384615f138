import { failInput, ok, type Result } from '../../shared/errors/failure';
import type { WorkflowDefinition } from './definition';
import { graphOf, holderOf, isSeedName, sourceOf } from './graph';
import { inputsIn, withInput, type Prompt } from './prompt';
import { describeSpec, type ParameterView } from './parameterView';

/** How seeds are set: with the one in the export, every run would give the same image. */
export type SeedMode = 'keep' | 'random' | 'fixed' | 'increment';

export interface SeedPlan {
	readonly mode: SeedMode;
	/** The first or only seed of `fixed` and `increment`. */
	readonly base: number;
	/** `node.parameter`, separated by commas; empty = every seed of the definition and of the item's overrides. */
	readonly targets: string;
	readonly definition?: WorkflowDefinition | undefined;
	readonly view?: ParameterView | undefined;
}

export interface SeededPrompt {
	readonly prompt: Prompt;
	/** `node.parameter` -> the seed that is sent. */
	readonly seeds: Readonly<Record<string, number>>;
	/** Whether a new seed was wanted, but nothing is known of the workflow's seeds. */
	readonly isUnknown?: boolean;
}

/** Some samplers refuse seeds beyond 32 bits. */
const LARGEST_RANDOM_SEED = 2 ** 32 - 1;

/** Draws a seed from a range, both ends included. */
export type RandomSeed = (least: number, most: number) => number;

/**
 * Sets the seeds of one item's prompt.
 * @param itemIndex added to the base in mode `increment`
 * @param randomSeed draws a seed; called once per item, so that all its samplers share it
 */
export function applySeed(
	prompt: Prompt,
	plan: SeedPlan,
	itemIndex: number,
	randomSeed: RandomSeed,
): Result<SeededPrompt> {
	const hosted = seedsIn(plan.definition);
	const isHosted = new Set(hosted.map(keyOf));
	const named = inputsIn(prompt).filter((input) => isSeedName(input.parameter) || isHosted.has(keyOf(input)));
	const entered = Object.fromEntries(
		named.flatMap((input) => (typeof input.value === 'number' ? [[keyOf(input), input.value] as const] : [])),
	);
	if (plan.mode === 'keep') return ok({ prompt, seeds: entered });
	const targets = readTargets(plan.targets);
	if (!targets.ok) return targets;
	const all = withoutRepeats(targets.value.length > 0 ? targets.value : [...named, ...hosted]);
	// Random is the default: a seed that somebody entered is meant, and a workflow without one is no mistake.
	const isByDefault = plan.mode === 'random' && targets.value.length === 0;
	const chosen = all.filter((input) => !isByDefault || !Object.hasOwn(entered, keyOf(input)));
	if (isByDefault && chosen.length === 0) {
		const isUnknown = all.length === 0 && !plan.definition;
		return ok({ prompt, seeds: entered, isUnknown });
	}
	if (chosen.length === 0) return noSeed(plan.definition);
	const limits = limitsOf(chosen, plan.view);
	const seed = plan.mode === 'random' ? drawSeed(limits, randomSeed) : countSeed(plan, itemIndex, limits);
	if (!seed.ok) return seed;
	return ok({
		prompt: chosen.reduce(
			(changed, { nodeId, parameter }) => withInput(changed, nodeId, parameter, seed.value),
			prompt,
		),
		seeds: {
			...(isByDefault && entered),
			...Object.fromEntries(chosen.map((target) => [keyOf(target), seed.value])),
		},
	});
}

/** The range that all of the chosen inputs accept, as numbers and in words. */
interface SeedLimits {
	readonly least: number;
	readonly most: number;
	readonly words: string;
}

function limitsOf(chosen: readonly SeedTarget[], view: ParameterView | undefined): SeedLimits {
	const specs = chosen.map((target) => {
		const { min, max } = view?.get(target.nodeId)?.get(target.parameter) ?? {};
		return { target, min, max };
	});
	return {
		least: Math.max(0, ...specs.map(({ min = 0 }) => Math.ceil(min))),
		most: Math.min(Number.MAX_SAFE_INTEGER, ...specs.map(({ max = Infinity }) => Math.floor(max))),
		words: specs
			.map(({ target, min, max }) => ({ target, range: describeSpec({ min, max }) }))
			.filter(({ range }) => range)
			.map(({ target, range }) => `${keyOf(target)} takes a number ${range}`)
			.join(', '),
	};
}

function drawSeed({ least, most, words }: SeedLimits, randomSeed: RandomSeed): Result<number> {
	if (least <= most) return ok(randomSeed(least, Math.min(most, Math.max(LARGEST_RANDOM_SEED, least))));
	return failInput(
		`"Seed Mode" finds no seed that fits all of its inputs: ${words}`,
		'List under "Seed Targets" only inputs that accept the same seed. Nothing was submitted for this item.',
	);
}

function countSeed({ mode, base }: SeedPlan, itemIndex: number, limits: SeedLimits): Result<number> {
	const seed = base + (mode === 'increment' ? itemIndex : 0);
	if (!Number.isSafeInteger(seed) || seed < 0) {
		return failInput(`"Seed" is not a whole number, 0 or more: ${seed}`, 'Enter a whole number such as 42.');
	}
	if (seed >= limits.least && seed <= limits.most) return ok(seed);
	const counted = mode === 'increment' ? `${base}, which with Increment by Item gives ${seed} here` : seed;
	return failInput(
		`"Seed" is ${counted}, but ${limits.words}`,
		'Enter another "Seed" that leaves room for all items. Nothing was submitted for this item.',
	);
}

export interface SeedTarget {
	readonly nodeId: string;
	readonly parameter: string;
}

/** `node.parameter`, as "Seed Targets" has it. */
export function keyOf({ nodeId, parameter }: SeedTarget): string {
	return `${nodeId}.${parameter}`;
}

/** Every seed of a workflow that can be set; one that comes from another node is followed to where it is held. */
export function seedsIn(definition: WorkflowDefinition | undefined): SeedTarget[] {
	if (!definition) return [];
	const graph = graphOf(definition);
	const seeds = definition.nodes.flatMap((node) =>
		node.inputs
			.filter(({ name }) => isSeedName(name))
			.map((input) => (input.isLink ? holderOf(graph, input) : { node, input })),
	);
	return withoutRepeats(
		seeds.flatMap((seed) => (seed ? [{ nodeId: seed.node.nodeId, parameter: seed.input.name }] : [])),
	);
}

function noSeed(definition: WorkflowDefinition | undefined): Result<never> {
	const graph = definition && graphOf(definition);
	const linked = definition?.nodes
		.flatMap((node) => node.inputs.map((input) => ({ node, input })))
		.find(({ input }) => input.isLink && isSeedName(input.name));
	const source = graph && linked && sourceOf(graph, linked.input);
	const from = source ? `${source.title} (node ${source.nodeId}), which calculates it` : 'another node';
	const why = linked ? `: ${linked.node.title} (node ${linked.node.nodeId}) takes its seed from ${from}` : '';
	const orPaste = definition ? '' : ', paste the workflow\'s export into "Workflow Definition"';
	return failInput(
		`"Seed Mode" cannot tell which input is the seed${why}`,
		`Enter it under "Seed Targets" as node ID and parameter, e.g. 3.seed${orPaste}, or set "Seed Mode" to Keep.`,
	);
}

function withoutRepeats(targets: readonly SeedTarget[]): SeedTarget[] {
	return [...new Map(targets.map((target) => [keyOf(target), target])).values()];
}

function readTargets(text: string): Result<SeedTarget[]> {
	const names = text.split(/[,\n]/).map((name) => name.trim());
	const targets: SeedTarget[] = [];
	for (const name of names.filter(Boolean)) {
		const dot = name.indexOf('.');
		if (dot <= 0 || dot === name.length - 1) {
			return failInput(
				`"Seed Targets" contains "${name}", which is not an input`,
				'Write node ID, dot, parameter, e.g. 3.seed; separate several by commas.',
			);
		}
		targets.push({ nodeId: name.slice(0, dot).trim(), parameter: name.slice(dot + 1).trim() });
	}
	return ok(targets);
}
