import { failInput, ok, type Result } from '../../shared/errors/failure';
import type { Json } from '../../shared/text/json';
import type { WorkflowDefinition } from './definition';
import { graphOf, holderOf, isSeedName, sourceOf } from './graph';
import { inputsIn, withInput, type Prompt, type PromptInput } from './prompt';
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

/** Which of the images that one item makes; each has a seed of its own. */
export interface Variant {
	/** Counted from 0. */
	readonly index: number;
	readonly count: number;
	/** `node.parameter` -> seed of the item's other images, those of earlier tries too: none is drawn twice. */
	readonly others: ReadonlyArray<Readonly<Record<string, number>>>;
}

/** The variant of an item that makes one image. */
const ONLY_VARIANT: Variant = { index: 0, count: 1, others: [] };

/** Some samplers refuse seeds beyond 32 bits. */
const LARGEST_RANDOM_SEED = 2 ** 32 - 1;

/** Draws a seed from a range, both ends included. */
export type RandomSeed = (least: number, most: number) => number;

/**
 * Sets the seeds of one image's prompt. What is not drawn counts up with the variants of an item.
 * @param before images of the items before, added to the base in mode `increment`
 * @param randomSeed draws a seed; called once per image, so that all its samplers share it
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
	const own = enteredSeeds(named);
	if (plan.mode === 'keep') return countUp(prompt, own, heldSeeds(hosted, named, plan), plan, variant);
	const targets = readTargets(plan.targets);
	if (!targets.ok) return targets;
	const all = withoutRepeats(targets.value.length > 0 ? targets.value : [...named, ...hosted]);
	// Random is the default: a seed that somebody entered is meant, and a workflow without one is no mistake.
	const isByDefault = plan.mode === 'random' && targets.value.length === 0;
	// Digits that a number cannot hold are meant as well: the checks refuse them, instead of another seed being paid for.
	const isEntered = new Set([...own, ...named.filter(({ value }) => isDigits(value))].map(keyOf));
	const chosen = all.filter((input) => !isByDefault || !isEntered.has(keyOf(input)));
	if (isByDefault && chosen.length === 0) {
		const isUnknown = all.length === 0 && !plan.definition;
		const counted = countUp(prompt, own, [], plan, variant);
		return counted.ok ? ok({ ...counted.value, isUnknown }) : counted;
	}
	if (chosen.length === 0) return noSeed(plan.definition);
	const limits = limitsOf(chosen, plan.view);
	const seed =
		plan.mode === 'random'
			? drawSeed(limits, randomSeed, variant.count, seedsAt(chosen, variant))
			: countSeed(plan, (plan.mode === 'increment' ? before : 0) + variant.index, limits);
	if (!seed.ok) return seed;
	const rest =
		isByDefault && own.length > 0 ? countUp(prompt, own, [], plan, variant) : ok({ prompt, seeds: {} });
	if (!rest.ok) return rest;
	return ok({
		prompt: chosen.reduce(
			(changed, { nodeId, parameter }) => withInput(changed, nodeId, parameter, seed.value),
			rest.value.prompt,
		),
		seeds: {
			...rest.value.seeds,
			...Object.fromEntries(chosen.map((target) => [keyOf(target), seed.value])),
		},
	});
}

/** The seeds that an item enters, as far as a number can hold them. */
function enteredSeeds(named: readonly PromptInput[]): FirstSeed[] {
	return named.flatMap(({ nodeId, parameter, value }) => {
		const seed = isDigits(value) ? Number(value) : value;
		const isWhole = typeof value === 'number' || Number.isSafeInteger(seed);
		return typeof seed === 'number' && isWhole ? [{ nodeId, parameter, value: seed }] : [];
	});
}

/** A number in quotation marks, as JSON has it around an expression. */
function isDigits(value: Json): boolean {
	return typeof value === 'string' && /^\s*\d+\s*$/.test(value);
}

/** A seed that is not drawn, with the number that the first variant has. */
interface FirstSeed extends SeedTarget {
	readonly value: number;
}

/** The hosted seeds that an item does not change, as far as they can be counted. */
function heldSeeds(
	hosted: readonly SeedTarget[],
	named: readonly SeedTarget[],
	{ definition }: SeedPlan,
): FirstSeed[] {
	const isNamed = new Set(named.map(keyOf));
	return hosted.flatMap(({ nodeId, parameter }) => {
		const node = definition?.nodes.find((one) => one.nodeId === nodeId);
		const value = node?.inputs.find(({ name }) => name === parameter)?.value;
		const isCounted = Number.isSafeInteger(value) && !isNamed.has(keyOf({ nodeId, parameter }));
		return typeof value === 'number' && isCounted ? [{ nodeId, parameter, value }] : [];
	});
}

/**
 * The first variant has the seeds as they are, each further one a higher one.
 * @param held hosted seeds, which the first variant does not send
 */
function countUp(
	prompt: Prompt,
	entered: readonly FirstSeed[],
	held: readonly FirstSeed[],
	plan: SeedPlan,
	{ index, count }: Variant,
): Result<SeededPrompt> {
	const counted = [...entered, ...(index > 0 ? held : [])];
	if (count > 1 && entered.length + held.length === 0) return noVariants(count, plan);
	let changed = prompt;
	const seeds: Record<string, number> = {};
	for (const { nodeId, parameter, value } of counted) {
		const target = { nodeId, parameter };
		const { least, most, words } = limitsOf([target], plan.view);
		const seed = value + index;
		if (index > 0 && (seed < least || seed > most)) {
			return failInput(
				`"Variants" counts the seed of ${keyOf(target)} up from ${value} to ${seed}, but ${words || `a seed is a number from ${least} to ${most}`}`,
				'Enter a seed that leaves room for all variants, or remove it and set "Seed Mode" to Random. Nothing was submitted for this item.',
			);
		}
		changed = withInput(changed, nodeId, parameter, seed);
		seeds[keyOf(target)] = seed;
	}
	return ok({ prompt: changed, seeds });
}

/** Equal images would each be paid for. */
function noVariants(count: number, { definition }: SeedPlan): Result<never> {
	const orPaste = definition ? '' : 'Paste the workflow\'s export into "Workflow Definition", or set ';
	return failInput(
		`"Variants" is ${count}, but the node knows no seed of the workflow that it can set: all ${count} images would be the same`,
		`${orPaste || 'Set '}"Seed Mode" to Random and enter the seed under "Seed Targets" as node ID and parameter, e.g. 3.seed; or set "Variants" to 1. Nothing was submitted for this item.`,
	);
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

/** The seeds that the item's other images have in any of these inputs, which share one. */
function seedsAt(chosen: readonly SeedTarget[], { others }: Variant): Set<number> {
	return new Set(others.flatMap((seeds) => chosen.flatMap((target) => seeds[keyOf(target)] ?? [])));
}

/** Draws one that no other variant of the item has: from as many fewer, and then past those. */
function drawSeed(
	{ least, most, words }: SeedLimits,
	randomSeed: RandomSeed,
	count: number,
	ofOthers: ReadonlySet<number>,
): Result<number> {
	const end = Math.min(most, Math.max(LARGEST_RANDOM_SEED, least + count - 1));
	if (least + count - 1 <= end) {
		const taken = [...ofOthers].filter((seed) => seed >= least && seed <= end);
		let seed = randomSeed(least, end - taken.length);
		for (const one of taken.sort((left, right) => left - right)) if (one <= seed) seed++;
		return ok(seed);
	}
	if (least <= most) {
		return failInput(
			`"Variants" is ${count}, but there are fewer seeds: ${words}`,
			'Make fewer variants. Nothing was submitted for this item.',
		);
	}
	return failInput(
		`"Seed Mode" finds no seed that fits all of its inputs: ${words}`,
		'List under "Seed Targets" only inputs that accept the same seed. Nothing was submitted for this item.',
	);
}

function countSeed({ mode, base }: SeedPlan, steps: number, limits: SeedLimits): Result<number> {
	const seed = base + steps;
	if (!Number.isSafeInteger(seed) || seed < 0) {
		return failInput(`"Seed" is not a whole number, 0 or more: ${seed}`, 'Enter a whole number such as 42.');
	}
	if (seed >= limits.least && seed <= limits.most) return ok(seed);
	const by = mode === 'increment' ? 'Increment by Item' : 'Variants';
	const counted = mode === 'increment' || steps > 0 ? `${base}, which with ${by} gives ${seed} here` : seed;
	return failInput(
		`"Seed" is ${counted}, but ${limits.words}`,
		'Enter another "Seed" that leaves room for all images. Nothing was submitted for this item.',
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
