import { failInput, ok, type Result } from '../../shared/errors/failure';
import { excerpt, type Json } from '../../shared/text/json';
import type { DefinitionNode, WorkflowDefinition } from '../../shared/workflow/definition';
import { describeSpec, type ParameterView } from '../../shared/workflow/parameterView';
import { graphOf, holderOf, takesSeed } from './graph';
import { hasShortSeeds, isSeed } from './names';
import { inputsIn, withInputs, type Prompt, type PromptInput } from './prompt';

/** How seeds are set. If the export's seed were kept, every run would make the same image. */
export type SeedMode = 'keep' | 'random' | 'fixed' | 'increment';

export interface SeedPlan {
	readonly mode: SeedMode;
	/** The first seed, in the modes `fixed` and `increment`. */
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
}

/** Many services refuse seeds of more than 31 bits, and some nodes those of more than 16. */
const LARGEST_RANDOM_SEED = 2 ** 31 - 1;
const LARGEST_SHORT_SEED = 2 ** 16 - 1;

/** Draws a seed from a range, both ends included. */
export type RandomSeed = (least: number, most: number) => number;

type SeedTarget = Pick<PromptInput, 'nodeId' | 'parameter'>;

/** A seed of the first variant; each further variant adds 1. */
interface FirstSeed extends SeedTarget {
	readonly value: number;
	/**
	 * - `entered`: in the node; the first variant keeps its exact form
	 * - `hosted`: in the export; the first variant does not send it
	 * - `planned`: chosen by the seed mode
	 */
	readonly origin: 'entered' | 'hosted' | 'planned';
}

/**
 * Sets the seeds of one variant's prompt; from variant to variant they count up. Whether the workflow accepts them is
 * checked later, with all inputs.
 * @param before number of variants of all earlier items, added to the base in mode `increment`
 * @param randomSeed must return the same for all variants of an item
 * @param index of the variant, from 0
 */
export function applySeed(
	prompt: Prompt,
	plan: SeedPlan,
	before: number,
	randomSeed: RandomSeed,
	{ index, count }: { readonly index: number; readonly count: number },
): Result<SeededPrompt> {
	const first = firstSeeds(prompt, plan, before, (chosen) => drawSeed(chosen, plan, randomSeed, count));
	if (!first.ok) return first;
	if (count > 1 && first.value.length === 0) return noVariants(count, plan);
	const seeds: Array<SeedTarget & { readonly value: number }> = [];
	for (const { nodeId, parameter, value, origin } of first.value) {
		if (index === 0 && origin === 'hosted') continue;
		const key = keyOf({ nodeId, parameter });
		const seed = value + index;
		const isAsEntered = index === 0 && origin === 'entered';
		const isWhole = Number.isSafeInteger(seed) && seed >= 0;
		if (!isAsEntered && !isWhole) return notWhole(origin === 'planned' ? 'Seed' : key, seed);
		seeds.push({ nodeId, parameter, value: seed });
	}
	return ok({
		prompt: withInputs(prompt, seeds),
		seeds: Object.fromEntries(seeds.map((one) => [keyOf(one), one.value])),
	});
}

function firstSeeds(
	prompt: Prompt,
	plan: SeedPlan,
	before: number,
	draw: (chosen: readonly SeedTarget[]) => Result<number>,
): Result<FirstSeed[]> {
	const hosted = seedsIn(plan.definition);
	const isHosted = new Set(hosted.map(keyOf));
	const named = inputsIn(prompt).filter(
		(input) => isSeed(input.parameter, input.value) || isHosted.has(keyOf(input)),
	);
	const entered = countable(named, 'entered');
	if (plan.mode === 'keep') {
		const isNamed = new Set(named.map(keyOf));
		const kept = hosted.filter((seed) => !isNamed.has(keyOf(seed)));
		const whole = countable(kept, 'hosted').filter(({ value }) => Number.isSafeInteger(value));
		return ok([...entered, ...whole]);
	}
	const targets = readTargets(plan.targets);
	if (!targets.ok) return targets;
	const all = withoutRepeats<SeedTarget>(targets.value.length > 0 ? targets.value : [...named, ...hosted]);
	// Random is the default, so an entered seed takes precedence, and a workflow without a seed is accepted.
	const isByDefault = plan.mode === 'random' && targets.value.length === 0;
	// An entered seed with too many digits counts too: the checks refuse it, so that no other seed is paid for.
	const isEntered = new Set(named.filter(({ value }) => isSeedValue(value)).map(keyOf));
	const chosen = all.filter((input) => !isByDefault || !isEntered.has(keyOf(input)));
	if (chosen.length === 0) return isByDefault ? ok(entered) : noSeed(plan.definition);
	const seed =
		plan.mode === 'random' ? draw(chosen) : ok(plan.base + (plan.mode === 'increment' ? before : 0));
	if (!seed.ok) return seed;
	const planned = chosen.map((target): FirstSeed => ({ ...target, value: seed.value, origin: 'planned' }));
	return ok(isByDefault ? [...entered, ...planned] : planned);
}

/** The inputs whose value is a number, or text of digits that a number can represent exactly. */
function countable(inputs: readonly PromptInput[], origin: FirstSeed['origin']): FirstSeed[] {
	return inputs.flatMap(({ nodeId, parameter, value }) => {
		const seed = Number(value);
		const isHeld = typeof value === 'number' || (isSeedValue(value) && Number.isSafeInteger(seed));
		return isHeld ? [{ nodeId, parameter, value: seed, origin }] : [];
	});
}

/** Whether a value is a number, with or without the quotation marks that an expression in JSON needs. */
function isSeedValue(value: Json): boolean {
	return typeof value === 'number' || (typeof value === 'string' && /^\s*\d+\s*$/.test(value));
}

/** How to name the seed; a linked input, which cannot be set, is no example. */
function targetAdvice(definition: WorkflowDefinition | undefined): string {
	const isLinked = definition !== undefined && nodesWithForeignSeed(definition).length > 0;
	return isLinked
		? 'the input that the seed comes from under "Seed Targets" as node ID and parameter'
		: 'the seed under "Seed Targets" as node ID and parameter, e.g. 3.seed';
}

/** Refuses variants, because without a seed that can be set, each of several equal images would be paid for. */
function noVariants(count: number, { definition }: SeedPlan): Result<never> {
	const orPaste = definition ? '' : 'Paste the workflow\'s export into "Workflow Definition", or set ';
	return failInput(
		`"Variants" is ${count}, but the node knows of no seed input that it can set: all ${count} images would be the same`,
		`${orPaste || 'Set '}"Seed Mode" to Random and enter ${targetAdvice(definition)}; or set "Variants" to 1. Nothing was submitted for this item.`,
	);
}

/** Draws the first of several seeds from the range that all of the chosen inputs accept, because they share one seed. */
function drawSeed(
	chosen: readonly SeedTarget[],
	{ definition, view }: SeedPlan,
	randomSeed: RandomSeed,
	count: number,
): Result<number> {
	const specs = chosen.map((target) => {
		const { min, max } = view?.get(target.nodeId)?.get(target.parameter) ?? {};
		return { target, min, max };
	});
	const least = Math.max(0, ...specs.map(({ min = 0 }) => Math.ceil(min)));
	const most = Math.min(Number.MAX_SAFE_INTEGER, ...specs.map(({ max = Infinity }) => Math.floor(max)));
	const usual = definition?.nodes.some(hasShortSeeds) ? LARGEST_SHORT_SEED : LARGEST_RANDOM_SEED;
	const lastFirst = Math.min(most, Math.max(usual, least + count - 1)) - (count - 1);
	if (least <= lastFirst) return ok(randomSeed(least, lastFirst));
	const ranges = specs.flatMap(({ target, min, max }) => {
		const range = describeSpec({ min, max });
		return range ? [`${keyOf(target)} (${range})`] : [];
	});
	return failInput(
		`Too few seeds fit all inputs that "Seed Mode" sets: ${ranges.join(', ')}`,
		'List under "Seed Targets" only inputs that accept the same seed, or lower "Variants". Nothing was submitted for this item.',
	);
}

/** @param name of the field or the input */
function notWhole(name: string, seed: number): Result<never> {
	const given = Number.isNaN(seed) ? '; no number was given' : `, but is ${seed}`;
	return failInput(
		`"${name}" must be a whole number from 0 to ${Number.MAX_SAFE_INTEGER}${given}`,
		'Enter a whole number such as 42.',
	);
}

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
			.filter(takesSeed)
			.flatMap((input) => (input.isLink ? (holderOf(graph, input) ?? []) : { node, input })),
	);
	return withoutRepeats(
		seeds.map(({ node, input }) => ({ nodeId: node.nodeId, parameter: input.name, value: input.value })),
	);
}

/** The nodes whose seed comes from another node, where no input is known to be the seed. */
export function nodesWithForeignSeed({ nodes }: WorkflowDefinition): DefinitionNode[] {
	const graph = graphOf({ nodes });
	return nodes.filter(({ inputs }) =>
		inputs.some((input) => input.isLink && takesSeed(input) && !holderOf(graph, input)),
	);
}

function noSeed(definition: WorkflowDefinition | undefined): Result<never> {
	const [linked] = definition ? nodesWithForeignSeed(definition) : [];
	const why = linked ? `: ${linked.title} (node ${linked.nodeId}) takes its seed from another node` : '';
	const orPaste = definition ? '' : ', paste the workflow\'s export into "Workflow Definition"';
	return failInput(
		`The node cannot tell which input is the seed that "Seed Mode" should set${why}`,
		`Enter ${targetAdvice(definition)}${orPaste}, or set "Seed Mode" to Keep.`,
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
