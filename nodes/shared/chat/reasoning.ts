import { failInput, ok, type Result } from '../errors/failure';
import { readChoice } from '../form/options';
import { excerpt, member, type JsonObject } from '../text/json';
import { textOf } from '../text/textOf';
import type { ReasoningChoice } from '../answer/oddAnswer';
import type { MayThink } from '../answer/thinkTags';

/**
 * The reasoning switch of a model.
 *
 * - `enable_thinking`: a boolean of that name (§2.6)
 * - `thinking`: an object with `type`; the only documented value is `enabled` (§2.6, §3.2)
 * - `always`: no switch; the model always reasons
 * - `none`: no switch
 */
export type ReasoningControl = 'enable_thinking' | 'thinking' | 'always' | 'none';

const CHOICES = ['default', 'on', 'off'] as const;

interface ModelRow {
	/** The model's ID as in §3.2. */
	readonly model: string;
	readonly control: ReasoningControl;
	readonly split: boolean;
	/** Whether the model reasons if nothing is sent; `maybe`: §3.2 does not say. */
	readonly byDefault: MayThink;
}

function rowsOf(
	family: string,
	suffixes: string,
	control: ReasoningControl,
	byDefault: MayThink,
	split = false,
): ModelRow[] {
	return suffixes.split(' ').map((suffix) => ({ model: `<${family}>${suffix}`, control, split, byDefault }));
}

/** The models of §3.2. */
export const REASONING_MODELS: readonly ModelRow[] = [
	...rowsOf('family_a', '-v3.2 -v3.2-exp -v3.1 -v3.1-terminus', 'enable_thinking', 'no'),
	...rowsOf('family_a', '-v3.2-thinking', 'enable_thinking', 'yes'),
	...rowsOf('family_b', '-8b -32b -30b-a3b -235b-a22b', 'enable_thinking', 'no'),
	...rowsOf('family_b', '-14b', 'always', 'yes'),
	...rowsOf('family_c', '-4.5 -4.6 -4.5-air -4.5v -4.6v', 'enable_thinking', 'yes'),
	...rowsOf('family_d', '-k2.5', 'enable_thinking', 'yes'),
	...rowsOf('family_d', '-k2', 'thinking', 'maybe'),
	...rowsOf('family_e', '-m2 -m2.1', 'always', 'yes', true),
];

/** Providers put their own name before a model's ID, and a date or a variant after it. */
const PROVIDER = '^(?:.*[/])?';
const RELEASE = '(?:-[0-9]{4,8})?(?:[:@].*)?$';

/**
 * A regular expression for the IDs of these rows, whatever their case; as text, because n8n's forms need text. A family's
 * name must be the one of §3.2: other makers use the same suffixes, such as "other-2.5-32b".
 */
export function patternOf(rows: readonly ModelRow[]): string {
	return `${PROVIDER}(?:${rows.map(({ model }) => idPattern(model)).join('|')})${RELEASE}`;
}

function idPattern(model: string): string {
	return model
		.replaceAll('.', '[.]')
		.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`)
		.replace('_', '[-_]')
		.replace(/[<>]/g, '$&?');
}

const PATTERNS = REASONING_MODELS.map((row) => ({ row, pattern: new RegExp(patternOf([row])) }));

/** The length above which a text cannot be a model's ID; matching a very long one would be slow. */
const LONGEST_MODEL_ID_CHARS = 300;

/** The row that a model's ID matches. */
export function reasoningModel(model: string): ModelRow | undefined {
	const id = model.trim();
	if (id.length > LONGEST_MODEL_ID_CHARS) return undefined;
	return PATTERNS.find(({ pattern }) => pattern.test(id))?.row;
}

export interface ReasoningWish {
	readonly model: string;
	/** With `default`, nothing is sent, and the model decides. */
	readonly choice: ReasoningChoice;
	/** `auto`: looked up in the table. */
	readonly control: 'auto' | ReasoningControl;
	/** Whether to request the reasoning in a separate field (§2.6). */
	readonly split: boolean;
}

export const CONTROLS: readonly ReasoningControl[] = ['enable_thinking', 'thinking', 'always', 'none'];

/** Reads the reasoning settings; `parameter` returns a field's value, or the fallback if the field is hidden. */
export function readWish(
	parameter: (name: string, fallback: string) => unknown,
	split: boolean,
): Result<ReasoningWish> {
	const choice = readChoice("'Reasoning'", CHOICES, parameter('reasoning', ''));
	if (!choice.ok) return choice;
	const control = readChoice("'Reasoning Control'", ['auto', ...CONTROLS], parameter('reasoningControl', ''));
	if (!control.ok) return control;
	const field = parameter('model', '');
	// The field is a resource locator, unless an expression returned its whole value as text.
	const model = textOf(typeof field === 'object' ? member(field, 'value') : field).trim();
	return ok({ model, choice: choice.value, control: control.value, split });
}

/** For each reasoning control, why the reasoning cannot be switched as chosen, and what to do about it. */
const REFUSALS = {
	thinking: [
		'The reasoning of $model can be switched on, but not off',
		'The only documented value of its "thinking" switch is "enabled". Set \'Reasoning\' to Default, or choose another model.',
	],
	always: [
		'$model always reasons; its reasoning cannot be switched off',
		"Set 'Reasoning' to Default or On, or choose another model.",
	],
	none: [
		'$model has no reasoning switch',
		"Set 'Reasoning' to Default, or choose another model or another 'Reasoning Control'.",
	],
	unknown: [
		'The node does not know how to switch the reasoning of $model on or off',
		"Choose the switch of the model under 'Reasoning Control', or set 'Reasoning' to Default.",
	],
} as const;

/**
 * The fields that switch the reasoning of a model (§3.2). An impossible choice fails before anything is sent, because a
 * model that ignores a switch bills its reasoning anyway.
 * @param name how a failure names the model
 */
export function switchFields(
	choice: 'on' | 'off',
	control: ReasoningControl | 'unknown',
	name: string,
): Result<JsonObject> {
	const isOn = choice === 'on';
	if (control === 'enable_thinking') return ok({ enable_thinking: isOn });
	if (isOn && control === 'thinking') return ok({ thinking: { type: 'enabled' } });
	if (isOn && control === 'always') return ok({});
	const [message, advice] = REFUSALS[control];
	return failInput(
		message.replace('$model', () => name),
		advice,
	);
}

/** The reasoning fields of a chat request (§2.6, §3.2), or why the wish cannot be fulfilled. */
export function reasoningFields({ model, choice, control, split }: ReasoningWish): Result<JsonObject> {
	if (!model) {
		return failInput(
			'No model is chosen',
			"Choose one under 'Model', or enter its ID as the platform lists it.",
		);
	}
	const row = reasoningModel(model);
	const name = `"${excerpt(model, 80)}"`;
	if (split && row && !row.split && control === 'auto') {
		return failInput(
			`${name} does not support 'Separate Reasoning'`,
			"Turn off 'Separate Reasoning': the reasoning has a separate field in the output anyway.",
		);
	}
	const ofSplit: JsonObject = split ? { reasoning_split: true } : {};
	if (choice === 'default') return ok(ofSplit);
	const ofSwitch = switchFields(choice, control === 'auto' ? (row?.control ?? 'unknown') : control, name);
	return ofSwitch.ok ? ok({ ...ofSwitch.value, ...ofSplit }) : ofSwitch;
}
