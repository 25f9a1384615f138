import { toolFields, type ToolChoice } from '../../../../nodes/ChatCompletion/request/tools';
import { deeplyNested } from '../../FlowTask/hostileJson';

const SCHEMA = { type: 'object', properties: { order_id: { type: 'string' } }, required: ['order_id'] };

type ToolRow = Parameters<typeof toolFields>[0][number];

function tool(over: Partial<ToolRow> = {}): ToolRow {
	return { name: 'get_order', description: 'Looks up an order', parameters: SCHEMA, ...over };
}

const SENT = {
	type: 'function',
	function: { name: 'get_order', description: 'Looks up an order', parameters: SCHEMA },
};

test('rows become tools, and the choice is sent unless it is "auto"', () => {
	const ask = (choice: ToolChoice, wanted = '') => toolFields([tool()], choice, wanted);
	expect(ask('auto')).toEqual({ ok: true, value: { tools: [SENT] } });
	expect(ask('none')).toEqual({ ok: true, value: { tools: [SENT], tool_choice: 'none' } });
	expect(ask('required')).toEqual({ ok: true, value: { tools: [SENT], tool_choice: 'required' } });
	expect(ask('tool', 'get_order')).toEqual({
		ok: true,
		value: { tools: [SENT], tool_choice: { type: 'function', function: { name: 'get_order' } } },
	});
});

test('sends nothing without rows, and refuses a choice', () => {
	expect(toolFields([], 'auto', 'x')).toEqual({ ok: true, value: {} });
	expect(toolFields([], 'required', '')).toMatchObject({
		failure: { message: "'Tool Choice' is set, but the node has no tools" },
	});
});

test.each(['', ' ', '{}', {}, undefined, '{"type":"object","properties":{},"required":[]}'])(
	'accepts a tool without parameters: %j',
	(parameters) => {
		const fields = toolFields([tool({ parameters, description: '' })], 'auto', '');
		expect(fields).toMatchObject({
			ok: true,
			value: { tools: [{ function: { name: 'get_order', parameters: { type: 'object', properties: {} } } }] },
		});
		expect(JSON.stringify(fields)).not.toContain('description');
	},
);

test('leaves types and references that only the platform may know to it', () => {
	const parameters = {
		type: 'object',
		properties: { a: { type: 'STRING' }, b: { $ref: 'https://x.example/b' } },
	};
	expect(toolFields([tool({ parameters })], 'auto', '')).toMatchObject({
		value: { tools: [{ function: { parameters } }] },
	});
});

test('a schema may be text or an object, with or without its type', () => {
	const { type: _type, ...rest } = SCHEMA;
	for (const parameters of [JSON.stringify(SCHEMA), rest, JSON.stringify(rest)]) {
		expect(toolFields([tool({ parameters })], 'auto', '')).toEqual({ ok: true, value: { tools: [SENT] } });
	}
});

test.each<[ToolRow[], string]>([
	[[tool({ name: '' })], 'Tool 1 has no name'],
	[[tool(), tool()], 'Tool 2 has the same name as another tool: "get_order"'],
	[[tool({ parameters: '{"type":' })], 'Tool 1 ("get_order"): \'Parameters\' is not a JSON object'],
	[[tool({ parameters: [] })], 'Tool 1 ("get_order"): \'Parameters\' is not a JSON object'],
	[
		[tool({ parameters: { type: 'string' } })],
		'Tool 1 ("get_order"): \'Parameters\' is not the JSON schema of an object',
	],
	// The whole tool in the format of the interface is not a schema.
	[[tool({ parameters: SENT })], 'Tool 1 ("get_order"): \'Parameters\' is not the JSON schema of an object'],
	// Example arguments are not a schema.
	[
		[tool({ parameters: { order_id: '17' } })],
		'Tool 1 ("get_order"): \'Parameters\' is not a JSON schema: it has order_id',
	],
	[
		[tool({ parameters: { properties: { a: { $ref: '#/$defs/a' } } } })],
		'Tool 1 ("get_order"): \'Parameters\' is not a valid schema: no such schema #/$defs/a',
	],
	[
		[tool({ parameters: '{"properties":{"id":{"maximum":9223372036854775807}}}' })],
		'Tool 1 ("get_order"): \'Parameters\' contains the number 9223372036854775807, which would lose digits',
	],
	[
		[tool({ parameters: '{"properties":{"id":{},"id":{"type":"string"}}}' })],
		'Tool 1 ("get_order"): \'Parameters\' has an object that contains the key "id" twice',
	],
	[
		[tool({ parameters: { properties: { id: { enum: [2 ** 60] } } } })],
		'Tool 1 ("get_order"): \'Parameters\' contains the number 1152921504606847000, which would lose digits',
	],
	[
		[tool({ parameters: { properties: JSON.parse(deeplyNested('object', 600)) } })],
		'Tool 1 ("get_order"): \'Parameters\' is nested too deeply',
	],
])('refuses an invalid tool: %#', (rows, message) => {
	expect(toolFields(rows, 'auto', '')).toMatchObject({ ok: false, failure: { kind: 'badInput', message } });
});

test.each([
	['', "'Tool to Call' is empty"],
	['get_oder', '\'Tool to Call\' is "get_oder", which is not a tool of this node'],
])('refuses a required tool that is not one of the tools: "%s"', (wanted, message) => {
	expect(toolFields([tool(), tool({ name: 'cancel' })], 'tool', wanted)).toMatchObject({
		failure: { message, advice: 'Enter the name of one of the tools: get_order, cancel.' },
	});
});
