import { badInput, fail, ok, type Result } from '../../shared/errors/failure';
import type { WorkflowDefinition } from './definition';
import { withInput, type Prompt } from './prompt';
import { describeSpec, type ParameterView } from './parameterView';

/** What happens to seeds: a workflow keeps the one of its export, so that every run would give the same image. */
export type SeedMode = 'keep' | 'random' | 'fixed' | 'increment';

export interface SeedPlan {
	readonly mode: SeedMode;
	/** The first or only seed of `fixed` and `increment`. */
	readonly base: number;
	/** `node.parameter`, separated by commas; empty = every seed of the definition or of the item's overrides. */
	readonly targets: string;
	/** The workflow, where the operator gave it: its seeds are known without being named. */
	readonly definition?: WorkflowDefinition | undefined;
	/** What the workflow accepts, where the operator gave it. */
	readonly view?: ParameterView | undefined;
}

export interface SeededPrompt {
	readonly prompt: Prompt;
	/** `node.parameter` -> the seed that is sent. */
	readonly seeds: Readonly<Record<string, number>>;
}

/** Seeds beyond 32 bits are refused by some samplers. */
const LARGEST_RANDOM_SEED = 2 ** 32 - 1;

/** Draws a seed between two others, either of which it may be. */
export type RandomSeed = (least: number, most: number) => number;

const SEED_PARAMETERS: ReadonlySet<string> = new Set(['seed', 'noise_seed']);

/** Whether an input is a seed by its name. */
export function isSeedName(parameter: string): boolean {
	return SEED_PARAMETERS.has(parameter);
}

/**
 * Sets the seeds of one item's prompt.
 * @param itemIndex added to the base in mode `increment`
 * @param randomSeed draws a seed; called once an item, so that all its samplers share it
 */
export function applySeed(
	prompt: Prompt,
	plan: SeedPlan,
	itemIndex: number,
	randomSeed: RandomSeed,
): Result<SeededPrompt> {
	const named = seedsIn(prompt);
	if (plan.mode === 'keep') {
		const sent = named.filter(({ value }) => typeof value === 'number');
		return ok({ prompt, seeds: Object.fromEntries(sent.map(({ key, value }) => [key, Number(value)])) });
	}
	const targets = readTargets(plan.targets);
	if (!targets.ok) return targets;
	const chosen =
		targets.value.length > 0 ? targets.value : uniqueTargets([...named, ...seedsOf(plan.definition)]);
	if (chosen.length === 0) {
		return fail(
			badInput(
				'"Seed Mode" does not know which input is the seed',
				'Enter it under "Seed Targets" as node ID and parameter, e.g. 3.seed, or set "Seed Mode" to Keep.',
			),
		);
	}
	const limits = limitsOf(chosen, plan.view);
	const seed = plan.mode === 'random' ? drawSeed(limits, randomSeed) : countSeed(plan, itemIndex, limits);
	if (!seed.ok) return seed;
	return ok({
		prompt: chosen.reduce(
			(changed, { nodeId, parameter }) => withInput(changed, nodeId, parameter, seed.value),
			prompt,
		),
		seeds: Object.fromEntries(chosen.map(({ key }) => [key, seed.value])),
	});
}

/** What all of the chosen inputs accept, as one range and in words. */
interface SeedLimits {
	readonly least: number;
	readonly most: number;
	readonly words: string;
}

function limitsOf(chosen: readonly SeedTarget[], view: ParameterView | undefined): SeedLimits {
	const limited = chosen.flatMap(({ key, nodeId, parameter }) => {
		const { min, max } = view?.get(nodeId)?.get(parameter) ?? {};
		const words = describeSpec({ ...(min !== undefined && { min }), ...(max !== undefined && { max }) });
		return words ? [{ min, max, words: `${key} takes a number ${words}` }] : [];
	});
	return {
		least: Math.max(0, ...limited.map(({ min = 0 }) => Math.ceil(min))),
		most: Math.min(...limited.map(({ max = Infinity }) => Math.floor(max)), Number.MAX_SAFE_INTEGER),
		words: limited.map(({ words }) => words).join(', '),
	};
}

function drawSeed({ least, most, words }: SeedLimits, randomSeed: RandomSeed): Result<number> {
	if (least <= most) {
		// Only where the workflow wants larger seeds does it get them.
		return ok(randomSeed(least, Math.min(most, Math.max(LARGEST_RANDOM_SEED, least))));
	}
	return fail(
		badInput(
			`"Seed Mode" finds no seed that fits all of its inputs: ${words}`,
			'Name under "Seed Targets" only inputs that accept the same seed. Nothing was submitted for this item.',
		),
	);
}

function countSeed({ mode, base }: SeedPlan, itemIndex: number, limits: SeedLimits): Result<number> {
	const seed = base + (mode === 'increment' ? itemIndex : 0);
	if (!Number.isSafeInteger(seed) || seed < 0) {
		return fail(
			badInput(`"Seed" is not a whole number from 0 up: ${seed}`, 'Enter a whole number such as 42.'),
		);
	}
	if (seed >= limits.least && seed <= limits.most) return ok(seed);
	return fail(
		badInput(
			mode === 'increment'
				? `"Seed" is ${base}, which with Increment by Item gives ${seed} here, but ${limits.words}`
				: `"Seed" is ${seed}, but ${limits.words}`,
			'Enter another "Seed" that leaves room for all items. Nothing was submitted for this item.',
		),
	);
}

interface SeedTarget {
	readonly key: string;
	readonly nodeId: string;
	readonly parameter: string;
}

function seedsIn(prompt: Prompt): Array<SeedTarget & { readonly value: unknown }> {
	return Object.entries(prompt).flatMap(([nodeId, { inputs }]) =>
		Object.entries(inputs)
			.filter(([parameter]) => SEED_PARAMETERS.has(parameter))
			.map(([parameter, value]) => ({ key: `${nodeId}.${parameter}`, nodeId, parameter, value })),
	);
}

function seedsOf(definition: WorkflowDefinition | undefined): SeedTarget[] {
	return (definition?.nodes ?? []).flatMap(({ nodeId, inputs }) =>
		inputs
			.filter(({ name, isLink }) => SEED_PARAMETERS.has(name) && !isLink)
			.map(({ name: parameter }) => ({ key: `${nodeId}.${parameter}`, nodeId, parameter })),
	);
}

function uniqueTargets(targets: readonly SeedTarget[]): SeedTarget[] {
	return [...new Map(targets.map((target) => [target.key, target])).values()];
}

function readTargets(text: string): Result<SeedTarget[]> {
	const targets: SeedTarget[] = [];
	for (const part of text.split(/[,\n]/)) {
		const target = part.trim();
		if (!target) continue;
		const dot = target.indexOf('.');
		if (dot <= 0 || dot === target.length - 1) {
			return fail(
				badInput(
					`"Seed Targets" holds "${target}", which names no input`,
					'Write node ID, dot, parameter, e.g. 3.seed; several are separated by commas.',
				),
			);
		}
		const nodeId = target.slice(0, dot).trim();
		const parameter = target.slice(dot + 1).trim();
		targets.push({ key: `${nodeId}.${parameter}`, nodeId, parameter });
	}
	return ok(uniqueTargets(targets));
}
