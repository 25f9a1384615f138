import { badInput, fail, failInput, ok, type Failure, type Result } from '../../shared/errors/failure';
import { excerpt, isJsonObject, jsonText, parseRounded, type JsonObject } from '../../shared/text/json';
import { textOrJson } from '../../shared/text/textOf';
import { faultOf, refuseSchema, schemaOfExample } from '../json/schema';

/** A row of the form, or what its expressions returned. */
type ToolRow = Readonly<Partial<Record<'name' | 'description' | 'parameters', unknown>>>;

/** `auto`: the model decides. */
export type ToolChoice = 'auto' | 'none' | 'required' | 'tool';

const NAME_CHARS = 80;

/**
 * The `tools` and `tool_choice` of a request, which is OpenAI-compatible (§1.5).
 * @param wanted the name of the tool that must be called, if the choice is `tool`
 */
export function toolFields(rows: readonly ToolRow[], choice: ToolChoice, wanted: string): Result<JsonObject> {
	if (rows.length === 0) {
		if (choice === 'auto') return ok({});
		return failInput(
			"'Tool Choice' is set, but the node has no tools",
			"Add a tool under 'Tools', or remove the option. If 'Extra Body' has the tools, also put \"tool_choice\" there.",
		);
	}
	const tools: JsonObject[] = [];
	const names = new Set<string>();
	for (const [index, row] of rows.entries()) {
		const tool = `Tool ${index + 1}`;
		const name = (textOrJson(row.name) ?? '').trim();
		const description = (textOrJson(row.description) ?? '').trim();
		if (!name) return failInput(`${tool} has no name`, 'Enter a name such as get_order.');
		if (names.has(name)) {
			const message = `${tool} has the same name as another tool: "${excerpt(name, NAME_CHARS)}"`;
			return failInput(message, 'Give each tool a unique name: the model calls it by that name.');
		}
		names.add(name);
		const parameters = readParameters(row.parameters, `${tool} ("${excerpt(name, NAME_CHARS)}")`);
		if (!parameters.ok) return parameters;
		tools.push({
			type: 'function',
			function: { name, ...(description && { description }), parameters: parameters.value },
		});
	}
	if (choice === 'auto') return ok({ tools });
	if (choice !== 'tool') return ok({ tools, tool_choice: choice });
	if (!names.has(wanted)) return fail(noSuchTool(wanted, [...names]));
	return ok({ tools, tool_choice: { type: 'function', function: { name: wanted } } });
}

function noSuchTool(wanted: string, names: readonly string[]): Failure {
	const message = wanted
		? `'Tool to Call' is "${excerpt(wanted, NAME_CHARS)}", which is not a tool of this node`
		: "'Tool to Call' is empty";
	return badInput(message, `Enter the name of one of the tools: ${excerpt(names.join(', '), 400)}.`);
}

/**
 * Reads the schema of a tool's arguments. The arguments are always an object, so any other schema is a mistake, as
 * is a whole tool that was pasted here.
 */
function readParameters(value: unknown, tool: string): Result<JsonObject> {
	const given = typeof value === 'string' ? value.trim() : value;
	const entered = (given ?? '') === '' ? {} : given;
	const parsed = typeof entered === 'string' ? parseRounded(entered) : entered;
	const advice =
		'Enter an object such as { "type": "object", "properties": { "order_id": { "type": "string" } } }, or {} for a tool without parameters.';
	if (!isJsonObject(parsed)) return failInput(`${tool}: 'Parameters' is not a JSON object`, advice);
	const { type = 'object', ...rest } = parsed;
	if (type !== 'object') {
		return failInput(`${tool}: 'Parameters' is not the JSON schema of an object`, advice);
	}
	const isSchema =
		Object.keys(rest).length === 0 || Object.keys(rest).some((key) => SCHEMA_KEYWORDS.has(key));
	if (!isSchema) {
		return failInput(
			`${tool}: 'Parameters' is not a JSON schema: it has ${excerpt(Object.keys(rest).join(', '), 120)}`,
			`If these are example arguments, enter their schema: ${jsonText(schemaOfExample(parsed))}`,
		);
	}
	const refusal = refuseSchema(`${tool}: 'Parameters'`, parsed, value);
	if (refusal) return fail(refusal);
	// Other faults are left to the platform, because only it knows what its tools may contain.
	const fault = faultOf(parsed);
	if (fault.startsWith('no such schema #')) {
		return failInput(
			`${tool}: 'Parameters' is not a valid schema: ${fault}`,
			'Correct the "$ref", or add what it refers to, e.g. under "$defs".',
		);
	}
	// Some servers require both `type` and `properties`.
	return ok({ ...parsed, type, properties: parsed.properties ?? {} });
}

/** Keywords of schemas that restrict an object; an object with fields, but none of these, is no schema. */
const SCHEMA_KEYWORDS: ReadonlySet<string> = new Set([
	...['properties', 'additionalProperties', 'patternProperties', 'required'],
	...['$ref', 'allOf', 'anyOf', 'oneOf'],
]);
