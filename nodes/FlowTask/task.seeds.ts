import { badInput, fail, ok, type Result } from '../shared/failure';
import type { Prompt } from './task.api';
import type { WorkflowDefinition } from './task.definition';
import { withInput } from './task.overrides';

/** What happens to seeds: a workflow keeps the one of its export, so that every run would give the same picture. */
export type SeedMode = 'keep' | 'random' | 'fixed' | 'increment';

export interface SeedPlan {
	readonly mode: SeedMode;
	/** The first or only seed of `fixed` and `increment`. */
	readonly base: number;
	/** `node.parameter`, separated by commas; empty = every seed of the definition or of the item's overrides. */
	readonly targets: string;
	/** The workflow, where the operator gave it: its seeds are known without being named. */
	readonly definition?: WorkflowDefinition | undefined;
}

export interface SeededPrompt {
	readonly prompt: Prompt;
	/** `node.parameter` -> the seed that is sent. */
	readonly seeds: Readonly<Record<string, number>>;
}

/** Seeds beyond 32 bits are refused by some samplers. */
export const LARGEST_RANDOM_SEED = 2 ** 32 - 1;

const SEED_PARAMETERS: ReadonlySet<string> = new Set(['seed', 'noise_seed']);

/**
 * Sets the seeds of one item's prompt.
 * @param itemIndex added to the base in mode `increment`
 * @param randomSeed draws a seed; called once an item, so that all its samplers share it
 */
export function applySeed(
	prompt: Prompt,
	plan: SeedPlan,
	itemIndex: number,
	randomSeed: () => number,
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
	const seed =
		plan.mode === 'random' ? randomSeed() : plan.base + (plan.mode === 'increment' ? itemIndex : 0);
	if (!Number.isSafeInteger(seed) || seed < 0) {
		return fail(
			badInput(`"Seed" is not a whole number from 0 up: ${seed}`, 'Enter a whole number such as 42.'),
		);
	}
	return ok({
		prompt: chosen.reduce(
			(changed, { nodeId, parameter }) => withInput(changed, nodeId, parameter, seed),
			prompt,
		),
		seeds: Object.fromEntries(chosen.map(({ key }) => [key, seed])),
	});
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
