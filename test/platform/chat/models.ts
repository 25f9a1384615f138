/** What decides whether a model reasons. */
type Switch =
	/** The boolean `enable_thinking`, with this default. */
	| { readonly kind: 'enable_thinking'; readonly byDefault: boolean }
	/** The object `thinking: { type: 'enabled' }`; reasoning is off without it. */
	| { readonly kind: 'thinking' }
	| { readonly kind: 'always' }
	| { readonly kind: 'never' };

export interface ChatModel {
	readonly id: string;
	readonly reasoning: Switch;
	/** Whether the model accepts `reasoning_split`, without which the reasoning is inside the content. */
	readonly splits: boolean;
}

/** The switches of a request that concern reasoning. */
export interface ReasoningSwitches {
	readonly enableThinking: boolean | undefined;
	readonly thinking: boolean;
	readonly split: boolean;
}

const families = (family: string, names: readonly string[]): string[] =>
	names.map((name) => `${family}-${name}`);

const OFF = [
	...families('family_a', ['v3.2', 'v3.2-exp', 'v3.1', 'v3.1-terminus']),
	...families('family_b', ['8b', '32b', '30b-a3b', '235b-a22b']),
];
const ON = [
	'family_a-v3.2-thinking',
	...families('family_c', ['4.5', '4.6', '4.5-air', '4.5v', '4.6v']),
	'family_d-k2.5',
];

export const CHAT_MODELS: readonly ChatModel[] = [
	...OFF.map((id) => modelOf(id, { kind: 'enable_thinking', byDefault: false })),
	...ON.map((id) => modelOf(id, { kind: 'enable_thinking', byDefault: true })),
	modelOf('family_b-14b', { kind: 'always' }),
	modelOf('family_d-k2', { kind: 'thinking' }),
	modelOf('family_e-m2', { kind: 'always' }, true),
	modelOf('family_e-m2.1', { kind: 'always' }, true),
	modelOf('plain-1', { kind: 'never' }),
];

function modelOf(id: string, reasoning: Switch, splits = false): ChatModel {
	return { id, reasoning, splits };
}

const BY_ID = new Map(CHAT_MODELS.map((model) => [model.id, model]));

/** Finds a model; its name may be preceded by a vendor's path. */
export function findModel(name: string): ChatModel | undefined {
	return BY_ID.get(name.slice(name.lastIndexOf('/') + 1));
}

/** Why the model does not accept these switches; undefined if it does. */
export function switchProblem(model: ChatModel, switches: ReasoningSwitches): string | undefined {
	const { reasoning, splits } = model;
	if (switches.enableThinking !== undefined && reasoning.kind !== 'enable_thinking') {
		return `enable_thinking is not supported by the model ${model.id}.`;
	}
	if (switches.thinking && reasoning.kind !== 'thinking') {
		return `thinking is not supported by the model ${model.id}.`;
	}
	if (switches.split && !splits) return `reasoning_split is not supported by the model ${model.id}.`;
	return undefined;
}

export function reasons({ reasoning }: ChatModel, switches: ReasoningSwitches): boolean {
	switch (reasoning.kind) {
		case 'enable_thinking':
			return switches.enableThinking ?? reasoning.byDefault;
		case 'thinking':
			return switches.thinking;
		case 'always':
			return true;
		case 'never':
			return false;
	}
}
