import { failInput, ok, type Result } from '../../shared/errors/failure';
import { excerpt, type Json } from '../../shared/text/json';
import type { WorkflowDefinition } from '../../shared/workflow/definition';
import { describeSpec, type ParameterView } from '../../shared/workflow/parameterView';
import { graphOf, holderOf, isSeedName } from './graph';
import { inputsIn, withInput, type Prompt, type PromptInput } from './prompt';

/** How seeds are set. With the seed in the export, every run would make the same image. */
export type SeedMode = 'keep' | 'random' | 'fixed' | 'increment';

export interface SeedPlan {
	readonly mode: SeedMode;
	/** The seed of the first image, in the modes `fixed` and `increment`. */
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
	/** Whether a new seed was wanted, but the workflow's seeds are not known. */
	readonly isUnknown?: boolean;
}

/** One of the images that an item makes; each has its own seed. */
interface Variant {
	/** Counted from 0. */
	readonly index: number;
	readonly count: number;
}

const ONLY_VARIANT: Variant = { index: 0, count: 1 };

/** Some samplers refuse seeds of more than 32 bits. */
const LARGEST_RANDOM_SEED = 2 ** 32 - 1;

/** Draws a seed from a range, both ends included. */
export type RandomSeed = (least: number, most: number) => number;

/**
 * Sets the seeds of one image's prompt, which count up with the variants of an item.
 * @param before number of images of all earlier items, added to the base in mode `increment`
 * @param randomSeed must return the same for all variants of an item
 */
export function applySeed(
	prompt: Prompt,
	plan: SeedPlan,
	before: number,
	randomSeed: RandomSeed,
	variant = ONLY_VARIANT,
): Result<SeededPrompt> {
	const hosted = seedsIn(plan.definition);
	const isHosted = new Set(hosted.map(keyOf));
	const named = inputsIn(prompt).filter((input) => isSeedName(input.parameter) || isHosted.has(keyOf(input)));
	const own = countable(named);
	if (plan.mode === 'keep') {
		const isNamed = new Set(named.map(keyOf));
		const held = countable(hosted).filter(
			(seed) => Number.isSafeInteger(seed.value) && !isNamed.has(keyOf(seed)),
		);
		if (variant.count > 1 && own.length + held.length === 0) return noVariants(variant.count, plan);
		// Hosted seeds are sent only if they are counted up.
		return countUp(prompt, variant.index > 0 ? [...own, ...held] : own, variant);
	}
	const targets = readTargets(plan.targets);
	if (!targets.ok) return targets;
	const all = withoutRepeats<SeedTarget>(targets.value.length > 0 ? targets.value : [...named, ...hosted]);
	// Random is the default, so an entered seed takes precedence, and a workflow without a seed is accepted.
	const isByDefault = plan.mode === 'random' && targets.value.length === 0;
	// An entered seed with too many digits counts too: the checks refuse it, so that no other seed is paid for.
	const isEntered = new Set(named.filter(({ value }) => readsAsSeed(value)).map(keyOf));
	const chosen = all.filter((input) => !isByDefault || !isEntered.has(keyOf(input)));
	if (chosen.length === 0 && !isByDefault) return noSeed(plan.definition);
	if (chosen.length === 0 && variant.count > 1 && own.length === 0) return noVariants(variant.count, plan);
	const counted = countUp(prompt, isByDefault ? own : [], variant);
	if (!counted.ok) return counted;
	if (chosen.length === 0) return ok({ ...counted.value, isUnknown: all.length === 0 && !plan.definition });
	const seed =
		plan.mode === 'random'
			? drawSeed(chosen, plan.view, randomSeed, variant)
			: wholeSeed('Seed', plan.base + (plan.mode === 'increment' ? before : 0) + variant.index);
	if (!seed.ok) return seed;
	return ok(chosen.reduce((seeded, target) => withSeed(seeded, target, seed.value), counted.value));
}

function withSeed({ prompt, seeds }: SeededPrompt, target: SeedTarget, seed: number): SeededPrompt {
	return {
		prompt: withInput(prompt, target.nodeId, target.parameter, seed),
		seeds: { ...seeds, [keyOf(target)]: seed },
	};
}

/** The inputs whose value is a number, or text of digits that a number can represent exactly. */
function countable(inputs: readonly PromptInput[]): FirstSeed[] {
	return inputs.flatMap(({ nodeId, parameter, value }) => {
		const seed = Number(value);
		const isHeld = typeof value === 'number' || (readsAsSeed(value) && Number.isSafeInteger(seed));
		return isHeld ? [{ nodeId, parameter, value: seed }] : [];
	});
}

/** Whether a value reads as a seed: a number, with or without the quotation marks that an expression in JSON needs. */
function readsAsSeed(value: Json): boolean {
	return typeof value === 'number' || (typeof value === 'string' && /^\s*\d+\s*$/.test(value));
}

/** An entered or hosted seed, which the first variant keeps. */
interface FirstSeed extends SeedTarget {
	readonly value: number;
}

/** Each variant after the first adds 1. Whether the workflow accepts the seeds is checked later, with all inputs. */
function countUp(prompt: Prompt, seeds: readonly FirstSeed[], { index }: Variant): Result<SeededPrompt> {
	let counted: SeededPrompt = { prompt, seeds: {} };
	for (const target of seeds) {
		const seed = index === 0 ? ok(target.value) : wholeSeed(keyOf(target), target.value + index);
		if (!seed.ok) return seed;
		counted = withSeed(counted, target, seed.value);
	}
	return ok(counted);
}

/** Refuses variants, because without a seed that can be set, each of several equal images would be paid for. */
function noVariants(count: number, { definition }: SeedPlan): Result<never> {
	const orPaste = definition ? '' : 'Paste the workflow\'s export into "Workflow Definition", or set ';
	return failInput(
		`"Variants" is ${count}, but the node knows no seed of the workflow that it can set: all ${count} images would be the same`,
		`${orPaste || 'Set '}"Seed Mode" to Random and enter the seed under "Seed Targets" as node ID and parameter, e.g. 3.seed; or set "Variants" to 1. Nothing was submitted for this item.`,
	);
}

/** Draws the seed of an image from the range that all of the chosen inputs accept, because they share it. */
function drawSeed(
	chosen: readonly SeedTarget[],
	view: ParameterView | undefined,
	randomSeed: RandomSeed,
	{ index, count }: Variant,
): Result<number> {
	const specs = chosen.map((target) => {
		const { min, max } = view?.get(target.nodeId)?.get(target.parameter) ?? {};
		return { target, min, max };
	});
	const least = Math.max(0, ...specs.map(({ min = 0 }) => Math.ceil(min)));
	const most = Math.min(Number.MAX_SAFE_INTEGER, ...specs.map(({ max = Infinity }) => Math.floor(max)));
	const lastFirst = Math.min(most, Math.max(LARGEST_RANDOM_SEED, least + count - 1)) - (count - 1);
	if (least <= lastFirst) return ok(randomSeed(least, lastFirst) + index);
	const ranges = specs.flatMap(({ target, min, max }) => {
		const range = describeSpec({ min, max });
		return range ? [`${keyOf(target)} accepts a number ${range}`] : [];
	});
	return failInput(
		`Too few seeds fit all inputs that "Seed Mode" sets: ${ranges.join(', ')}`,
		'List under "Seed Targets" only inputs that accept the same seed, or make fewer variants. Nothing was submitted for this item.',
	);
}

/** @param name of the field or the input, for the message */
function wholeSeed(name: string, seed: number): Result<number> {
	if (Number.isSafeInteger(seed) && seed >= 0) return ok(seed);
	const given = Number.isNaN(seed) ? 'no number was given' : seed;
	return failInput(
		`"${name}" must be a whole number from 0 to ${Number.MAX_SAFE_INTEGER}: ${given}`,
		'Enter a whole number such as 42.',
	);
}

type SeedTarget = Pick<PromptInput, 'nodeId' | 'parameter'>;

/** `node.parameter`, as in "Seed Targets". */
export function keyOf({ nodeId, parameter }: SeedTarget): string {
	return `${nodeId}.${parameter}`;
}

/** Every seed of a workflow that can be set; a linked one is followed to the node that holds the number. */
export function seedsIn(definition: WorkflowDefinition | undefined): PromptInput[] {
	if (!definition) return [];
	const graph = graphOf(definition);
	const seeds = definition.nodes.flatMap((node) =>
		node.inputs
			.filter(({ name }) => isSeedName(name))
			.flatMap((input) => (input.isLink ? (holderOf(graph, input) ?? []) : { node, input })),
	);
	return withoutRepeats(
		seeds.map(({ node, input }) => ({ nodeId: node.nodeId, parameter: input.name, value: input.value })),
	);
}

function noSeed(definition: WorkflowDefinition | undefined): Result<never> {
	const linked = definition?.nodes.find(({ inputs }) =>
		inputs.some(({ name, isLink }) => isLink && isSeedName(name)),
	);
	const why = linked ? `: ${linked.title} (node ${linked.nodeId}) takes its seed from another node` : '';
	const orPaste = definition ? '' : ', paste the workflow\'s export into "Workflow Definition"';
	return failInput(
		`"Seed Mode" cannot tell which input is the seed${why}`,
		`Enter it under "Seed Targets" as node ID and parameter (e.g. 3.seed)${orPaste}, or set "Seed Mode" to Keep.`,
	);
}

function withoutRepeats<Target extends SeedTarget>(targets: readonly Target[]): Target[] {
	return [...new Map(targets.map((target) => [keyOf(target), target])).values()];
}

function readTargets(text: string): Result<SeedTarget[]> {
	const names = text.split(/[,\n]/).map((name) => name.trim());
	const targets: SeedTarget[] = [];
	for (const name of names.filter(Boolean)) {
		const dot = name.indexOf('.');
		if (dot <= 0 || dot === name.length - 1) {
			return failInput(
				`"Seed Targets" contains "${excerpt(name, 60)}", which is not an input`,
				'Write the node ID, a dot and the parameter, e.g. 3.seed; separate several inputs by commas.',
			);
		}
		targets.push({ nodeId: name.slice(0, dot).trim(), parameter: name.slice(dot + 1).trim() });
	}
	return ok(targets);
}
