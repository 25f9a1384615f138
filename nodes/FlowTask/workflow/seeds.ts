import { failInput, ok, type Result } from '../../shared/errors/failure';
import { excerpt, type Json } from '../../shared/text/json';
import { GIVE_EXPORT, type WorkflowDefinition } from '../../shared/workflow/definition';
import { describeSpec, type ParameterView } from '../../shared/workflow/parameterView';
import { findSeeds, type ForeignSeed } from '../graph/foundSeeds';
import { type GraphInput } from '../graph/links';
import { hasShortSeeds, isSeed } from '../graph/names';
import { inputsIn, NOT_SUBMITTED, withInputs, type Prompt, type PromptInput } from './prompt';

/** How seeds are set. If the export's seed were kept, every run would make the same image. */
export type SeedMode = 'keep' | 'random' | 'fixed' | 'increment';

export interface SeedPlan {
	readonly mode: SeedMode;
	/** The first seed, in the modes `fixed` and `increment`; -1 is random. */
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
	/** -1, which means random to people, only if the input accepts it. */
	readonly value: number;
	/**
	 * - `entered`: in the node; the first variant keeps its exact form
	 * - `hosted`: in the export; the first variant does not send it
	 * - `planned`: chosen by the seed mode, or drawn
	 */
	readonly origin: 'entered' | 'hosted' | 'planned';
}

const RANDOM = -1;

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
	const draw = (drawn: readonly SeedTarget[]) => drawSeed(drawn, plan, randomSeed, count);
	const first = firstSeeds(prompt, plan, before, count, draw);
	if (!first.ok) return first;
	if (count > 1 && first.value.length === 0) return noVariants(count, plan);
	const seeds: Array<SeedTarget & { readonly value: number }> = [];
	for (const { nodeId, parameter, value, origin } of first.value) {
		if (index === 0 && origin === 'hosted') continue;
		const key = keyOf({ nodeId, parameter });
		const seed = value === RANDOM ? value : value + index;
		const isAsEntered = index === 0 && origin === 'entered';
		const isWhole = Number.isSafeInteger(seed) && seed >= 0;
		if (!isAsEntered && !isWhole && value !== RANDOM)
			return notWhole(origin === 'planned' ? 'Seed' : key, seed);
		seeds.push({ nodeId, parameter, value: seed });
	}
	return ok({
		prompt: withInputs(prompt, seeds),
		seeds: Object.fromEntries(seeds.map((one) => [keyOf(one), one.value])),
	});
}

/** The seeds to send. Where one is -1 and its input does not accept that, a random one is drawn. */
function firstSeeds(
	prompt: Prompt,
	plan: SeedPlan,
	before: number,
	count: number,
	draw: (drawn: readonly SeedTarget[]) => Result<number>,
): Result<FirstSeed[]> {
	const { mode, definition } = plan;
	const hosted = seedsIn(definition);
	const isHosted = new Set(hosted.map(keyOf));
	const named = inputsIn(prompt).filter((input) => isHosted.has(keyOf(input)) || isNamed(input, definition));
	const [unset, set] = parted(named, (input) => isRandom(input, plan));
	const entered = countable(set, 'entered');
	const drawAll = (targets: readonly SeedTarget[], kept: readonly FirstSeed[]): Result<FirstSeed[]> => {
		if (targets.length === 0) return ok([...kept]);
		const seed = draw(targets);
		return seed.ok ? ok([...kept, ...targets.map((target) => planned(target, seed.value))]) : seed;
	};
	if (mode === 'keep') {
		const isSent = new Set(named.map(keyOf));
		const [free, own] = parted(
			hosted.filter((seed) => !isSent.has(keyOf(seed))),
			(seed) => count > 1 && isRandom(seed, plan),
		);
		const whole = countable(own, 'hosted').filter(({ value }) => Number.isSafeInteger(value));
		return drawAll([...unset, ...free], [...entered, ...whole]);
	}
	const targets = readTargets(plan.targets, definition);
	if (!targets.ok) return targets;
	const all = withoutRepeats<SeedTarget>(targets.value.length > 0 ? targets.value : [...named, ...hosted]);
	// Random is the default, so an entered seed takes precedence, and a workflow without a seed is accepted.
	const isByDefault = mode === 'random' && targets.value.length === 0;
	// An entered seed with too many digits counts too: the checks refuse it, so that no other seed is paid for.
	const isEntered = new Set(set.filter(({ value }) => isSeedValue(value)).map(keyOf));
	const chosen = all.filter((input) => !isByDefault || !isEntered.has(keyOf(input)));
	if (chosen.length === 0) return isByDefault ? ok(entered) : noSeed(definition);
	const base = plan.base === RANDOM ? RANDOM : plan.base + (mode === 'increment' ? before : 0);
	const [drawn, given] = parted(
		chosen,
		(target) => mode === 'random' || (base === RANDOM && !acceptsRandom(target, plan)),
	);
	const isChosen = new Set(chosen.map(keyOf));
	return drawAll(
		[...drawn, ...unset.filter((input) => !isChosen.has(keyOf(input)))],
		[...(isByDefault ? entered : []), ...given.map((target) => planned(target, base))],
	);
}

function planned({ nodeId, parameter }: SeedTarget, value: number): FirstSeed {
	return { nodeId, parameter, value, origin: 'planned' };
}

function parted<T>(all: readonly T[], isFirst: (one: T) => boolean): [T[], T[]] {
	return [all.filter(isFirst), all.filter((one) => !isFirst(one))];
}

/** Whether an input that is not among the hosted seeds is one by its name, and not known to be for more than that. */
function isNamed({ nodeId, parameter, value }: PromptInput, definition?: WorkflowDefinition): boolean {
	return isSeed(parameter, value) && !(definition && findSeeds(definition).alsoFor(nodeId, parameter));
}

/** Whether a seed is -1 and its input does not accept that. */
function isRandom(input: PromptInput, plan: SeedPlan): boolean {
	const { value } = input;
	const isMinusOne = value === RANDOM || (typeof value === 'string' && /^\s*-1\s*$/.test(value));
	return isMinusOne && !acceptsRandom(input, plan);
}

function acceptsRandom({ nodeId, parameter }: SeedTarget, { view }: SeedPlan): boolean {
	const { min = 0 } = view?.get(nodeId)?.get(parameter) ?? {};
	return min <= RANDOM;
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
	return typeof value === 'number' || (typeof value === 'string' && /^\s*(\d+|-1)\s*$/.test(value));
}

/** How to name the seed; a linked input, which cannot be set, is no example, and a number for other uses no seed. */
function targetAdvice(definition: WorkflowDefinition | undefined): string {
	const [foreign] = definition ? findSeeds(definition).foreign : [];
	if (!foreign) return "enter the seed under 'Seed Targets' as node ID and parameter, e.g. 3.seed";
	if (foreign.alsoFor) return 'give the seed a number of its own in the workflow, and paste its new export';
	return "enter the input that the seed comes from under 'Seed Targets' as node ID and parameter";
}

/** Refuses variants, because without a seed that can be set, each of several equal images would be paid for. */
function noVariants(count: number, { definition }: SeedPlan): Result<never> {
	return failInput(
		`'Variants' is ${count}, but the node knows of no seed input that it can set: all ${count} images would be the same`,
		`Set 'Seed Mode' to Random and ${targetAdvice(definition)}${definition ? '' : `, or ${GIVE_EXPORT}`}; or set 'Variants' to 1. ${NOT_SUBMITTED}`,
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
		`Too few seeds fit all inputs that 'Seed Mode' sets: ${ranges.join(', ')}`,
		`List under 'Seed Targets' only inputs that accept the same seed, or lower 'Variants'. ${NOT_SUBMITTED}`,
	);
}

/** @param name of the field or the input */
function notWhole(name: string, seed: number): Result<never> {
	const given = Number.isNaN(seed) ? '; no number was given' : `, but is ${seed}`;
	return failInput(
		`'${name}' must be a whole number from 0 to ${Number.MAX_SAFE_INTEGER}${given}`,
		'Enter a whole number such as 42.',
	);
}

/** `node.parameter`, as in "Seed Targets". */
export function keyOf({ nodeId, parameter }: SeedTarget): string {
	return `${nodeId}.${parameter}`;
}

/** Every seed of a workflow that can be set; a linked one is followed to the node that holds the number. */
export function seedsIn(definition: WorkflowDefinition | undefined): PromptInput[] {
	const seeds = definition ? findSeeds(definition).seeds : [];
	return withoutRepeats(
		seeds.map(({ node, input }) => ({ nodeId: node.nodeId, parameter: input.name, value: input.value })),
	);
}

/** Why a seed cannot be set, as a clause about it. */
export function whyForeign({ alsoFor }: ForeignSeed): string {
	return alsoFor ? `its number is also used for ${nameOf(alsoFor)}` : 'it comes from another node';
}

function nameOf({ node, input }: GraphInput): string {
	return `${node.title} (node ${node.nodeId}) · ${input.name}`;
}

function noSeed(definition: WorkflowDefinition | undefined): Result<never> {
	const [foreign] = definition ? findSeeds(definition).foreign : [];
	const why = foreign
		? `: the seed of ${foreign.node.title} (node ${foreign.node.nodeId}) cannot be set, because ${whyForeign(foreign)}`
		: '';
	const orPaste = definition ? '' : `, ${GIVE_EXPORT}`;
	const advice = targetAdvice(definition);
	return failInput(
		`The node cannot tell which input is the seed that 'Seed Mode' should set${why}`,
		`${advice.charAt(0).toUpperCase()}${advice.slice(1)}${orPaste}, or set 'Seed Mode' to Keep.`,
	);
}

function withoutRepeats<Target extends SeedTarget>(targets: readonly Target[]): Target[] {
	return [...new Map(targets.map((target) => [keyOf(target), target])).values()];
}

function readTargets(text: string, definition: WorkflowDefinition | undefined): Result<SeedTarget[]> {
	const listed = seedsIn(definition).filter((seed) => keyOf(seed) === text.trim());
	const names = listed.length > 0 ? [text] : text.split(/[,\n]/);
	const targets: SeedTarget[] = [];
	for (const name of names.map((one) => one.trim()).filter(Boolean)) {
		const target = readTarget(name, definition);
		if (!target.ok) return target;
		const alsoFor = definition && findSeeds(definition).alsoFor(target.value.nodeId, target.value.parameter);
		if (alsoFor) {
			return failInput(
				`'Seed Targets' contains "${excerpt(name, 60)}", whose number is also used for ${nameOf(alsoFor)}`,
				`Give the seed a number of its own in the workflow, or set 'Seed Mode' to Keep. ${NOT_SUBMITTED}`,
			);
		}
		targets.push(target.value);
	}
	return ok(targets);
}

/** Splits `node.parameter` at a dot; both may contain further ones, so the workflow decides which. */
function readTarget(name: string, definition: WorkflowDefinition | undefined): Result<SeedTarget> {
	const splits = [...name.matchAll(/\./g)]
		.map(({ index }) => ({ nodeId: name.slice(0, index).trim(), parameter: name.slice(index + 1).trim() }))
		.filter(({ nodeId, parameter }) => nodeId && parameter);
	const [known, other] = splits.filter(({ nodeId, parameter }) =>
		definition?.nodes.some(
			(node) => node.nodeId === nodeId && node.inputs.some((input) => input.name === parameter),
		),
	);
	const shown = excerpt(name, 60);
	if (known && other) {
		return failInput(
			`'Seed Targets' contains "${shown}", which is "${known.parameter}" of node ${known.nodeId} and "${other.parameter}" of node ${other.nodeId}`,
			`Rename one of the two nodes in the workflow, or set the seed under 'Inputs to Change'. ${NOT_SUBMITTED}`,
		);
	}
	const target = known ?? splits[0];
	if (target && name.indexOf('.') > 0) return ok(target);
	return failInput(
		`'Seed Targets' contains "${shown}", which is not an input`,
		'Write the node ID, a dot and the parameter, e.g. 3.seed; separate several inputs by commas.',
	);
}
