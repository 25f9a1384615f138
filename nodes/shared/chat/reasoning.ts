import { badInput, fail, ok, type Result } from '../errors/failure';
import { excerpt, type JsonObject } from '../text/json';

/**
 * How a model is told to reason.
 *
 * - `enable_thinking`: a boolean of that name (§2.6)
 * - `thinking`: an object with `type`, of which only the value `enabled` is shown (§2.6, §3.2)
 * - `always`: it reasons whatever is sent, and takes no switch
 * - `none`: it takes no switch
 */
export type ReasoningControl = 'enable_thinking' | 'thinking' | 'always' | 'none';

/** What the operator wants: `default` sends nothing and leaves it to the model. */
export type ReasoningChoice = 'default' | 'on' | 'off';

interface ModelRow {
	/** As the spec writes it: a vendor's family name stands in place of the placeholder. */
	readonly model: `<${string}>-${string}`;
	/** What it does when nothing is sent; null where that is not shown. */
	readonly byDefault: 'on' | 'off' | null;
	readonly control: ReasoningControl;
	/** Whether `reasoning_split` moves its reasoning into `reasoning_details`. */
	readonly split?: true;
}

/** The table of §3.2 with the sentences below it. */
export const REASONING_MODELS: readonly ModelRow[] = [
	{ model: '<family_a>-v3.2', byDefault: 'off', control: 'enable_thinking' },
	{ model: '<family_a>-v3.2-thinking', byDefault: 'on', control: 'enable_thinking' },
	{ model: '<family_a>-v3.2-exp', byDefault: 'off', control: 'enable_thinking' },
	{ model: '<family_a>-v3.1', byDefault: 'off', control: 'enable_thinking' },
	{ model: '<family_a>-v3.1-terminus', byDefault: 'off', control: 'enable_thinking' },
	{ model: '<family_b>-8b', byDefault: 'off', control: 'enable_thinking' },
	{ model: '<family_b>-32b', byDefault: 'off', control: 'enable_thinking' },
	{ model: '<family_b>-30b-a3b', byDefault: 'off', control: 'enable_thinking' },
	{ model: '<family_b>-235b-a22b', byDefault: 'off', control: 'enable_thinking' },
	{ model: '<family_b>-14b', byDefault: 'on', control: 'always' },
	{ model: '<family_c>-4.5', byDefault: 'on', control: 'enable_thinking' },
	{ model: '<family_c>-4.6', byDefault: 'on', control: 'enable_thinking' },
	{ model: '<family_c>-4.5-air', byDefault: 'on', control: 'enable_thinking' },
	{ model: '<family_c>-4.5v', byDefault: 'on', control: 'enable_thinking' },
	{ model: '<family_c>-4.6v', byDefault: 'on', control: 'enable_thinking' },
	{ model: '<family_d>-k2.5', byDefault: 'on', control: 'enable_thinking' },
	{ model: '<family_d>-k2', byDefault: null, control: 'thinking' },
	{ model: '<family_e>-m2', byDefault: 'on', control: 'always', split: true },
	{ model: '<family_e>-m2.1', byDefault: 'on', control: 'always', split: true },
];

/** Providers put their own name before a model, and a date or a variant behind it. */
const PROVIDER = '^(?:.*[/])?';
const RELEASE = '(?:-[0-9]{4,8})?(?:[:@].*)?$';
/**
 * A family's name: one word, and further words without digits, since a digit begins a version of another
 * family ("other-2-distill-x-32b" is no model of the table).
 */
const FAMILY = '<?[^-/<>]+>?(?:-[a-zA-Z_]+)*';
/** Before a bare size or number, which models of any family have, nothing but the family itself. */
const FAMILY_ALONE = '(?:<?[^-/<>]+>?|[fF]amily-[a-zA-Z])';

/** The part of a row that does not change with the vendor: `-v3.2-thinking`. */
function suffixOf({ model }: ModelRow): string {
	return model.slice(model.indexOf('>') + 1);
}

/**
 * A regular expression that matches the identifiers of these rows, upper or lower case. It is text, because n8n's
 * forms take it as such.
 */
export function patternOf(rows: readonly ModelRow[]): string {
	const oneOf = (family: string, chosen: readonly ModelRow[]): string[] =>
		chosen.length > 0 ? [`${family}(?:${chosen.map(suffixPattern).join('|')})`] : [];
	const isBare = (row: ModelRow): boolean => /^-[0-9]/.test(suffixOf(row));
	const models = [
		...oneOf(
			FAMILY,
			rows.filter((row) => !isBare(row)),
		),
		...oneOf(FAMILY_ALONE, rows.filter(isBare)),
	];
	return `${PROVIDER}(?:${models.join('|')})${RELEASE}`;
}

function suffixPattern(row: ModelRow): string {
	return suffixOf(row)
		.replaceAll('.', '[.]')
		.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);
}

const PATTERNS = REASONING_MODELS.map((row) => ({ row, pattern: new RegExp(patternOf([row])) }));

/** No identifier is longer; and a pattern takes its time over a text without end. */
const LONGEST_ID_CHARS = 300;

/** The row of a model identifier; where several fit, the one that says most. */
export function reasoningModel(model: string): ModelRow | undefined {
	const id = model.trim();
	if (id.length > LONGEST_ID_CHARS) return undefined;
	return PATTERNS.filter(({ pattern }) => pattern.test(id))
		.map(({ row }) => row)
		.sort((left, right) => suffixOf(right).length - suffixOf(left).length)[0];
}

export interface ReasoningWish {
	readonly model: string;
	readonly choice: ReasoningChoice;
	/** `auto`: as the table says. */
	readonly control: 'auto' | ReasoningControl;
	/** Whether the reasoning is to come in a field of its own (§2.6). */
	readonly split: boolean;
}

const CONTROLS: readonly ReasoningControl[] = ['enable_thinking', 'thinking', 'always', 'none'];

/** Reads a wish from the form; `parameter` gives a field of it, or the fallback where it is not shown. */
export function readWish(
	parameter: (name: string, fallback: string) => unknown,
	split: boolean,
): ReasoningWish {
	const model = parameter('model', '');
	const choice = parameter('reasoning', 'default');
	const control = parameter('reasoningControl', 'auto');
	return {
		model: modelId(model),
		choice: choice === 'on' || choice === 'off' ? choice : 'default',
		control: CONTROLS.find((known) => known === control) ?? 'auto',
		split,
	};
}

/** The field is a resource locator, unless an expression made text of the whole of it. */
function modelId(field: unknown): string {
	const value: unknown = typeof field === 'object' && field !== null ? Reflect.get(field, 'value') : field;
	return typeof value === 'string' ? value : '';
}

/**
 * The fields of a chat request that carry out a wish (§2.6, §3.2), or why it cannot be carried out: said before
 * anything is sent, because a model that ignores a switch bills its reasoning all the same.
 */
export function reasoningFields(wish: ReasoningWish): Result<JsonObject> {
	const row = reasoningModel(wish.model);
	const name = `"${excerpt(wish.model, 80)}"`;
	if (wish.split && row && !row.split && wish.control === 'auto') {
		return fail(
			badInput(
				`${name} does not take "Separate Reasoning"`,
				'Turn "Separate Reasoning" off: the reasoning has its own field in the output all the same.',
			),
		);
	}
	const split: JsonObject = wish.split ? { reasoning_split: true } : {};
	if (wish.choice === 'default') return ok(split);
	const control = wish.control === 'auto' ? row?.control : wish.control;
	switch (control) {
		case 'enable_thinking':
			return ok({ enable_thinking: wish.choice === 'on', ...split });
		case 'thinking':
			if (wish.choice === 'on') return ok({ thinking: { type: 'enabled' }, ...split });
			return fail(
				badInput(
					`The reasoning of ${name} can be switched on, but not off`,
					'Only "enabled" is known for its "thinking" switch. Set "Reasoning" to Default, or choose another model.',
				),
			);
		case 'always':
			if (wish.choice === 'on') return ok(split);
			return fail(
				badInput(
					`${name} always reasons: it cannot be switched off`,
					'Set "Reasoning" to Default or On, or choose another model.',
				),
			);
		case 'none':
			return fail(
				badInput(
					`${name} takes no reasoning switch`,
					'Set "Reasoning" to Default, or choose another model or another "Reasoning Control".',
				),
			);
		case undefined:
			return fail(
				badInput(
					`The node does not know how the reasoning of ${name} is switched`,
					'Choose what the model takes under "Reasoning Control", or set "Reasoning" to Default.',
				),
			);
	}
}
