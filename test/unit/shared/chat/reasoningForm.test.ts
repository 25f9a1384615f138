import { NodeHelpers, Workflow, type INode, type INodeType, type INodeTypes } from 'n8n-workflow';
import { ChatCompletion } from '../../../../nodes/ChatCompletion/ChatCompletion.node';
import { LmChatFlowPlatform } from '../../../../nodes/LmChatFlowPlatform/LmChatFlowPlatform.node';
import { REASONING_MODELS, reasoningFields } from '../../../../nodes/shared/chat/reasoning';

const nodes: Record<string, INodeType> = { chat: new ChatCompletion(), model: new LmChatFlowPlatform() };
const nodeTypes: INodeTypes = {
	getByName: (type) => nodes[type]!,
	getByNameAndVersion: (type) => nodes[type]!,
	getKnownTypes: () => ({}),
};

/** The notices that n8n's editor shows: it evaluates the hidden field and then the display conditions. */
function noticesFor(
	type: string,
	parameters: { model: string; reasoning: string; reasoningControl?: string },
) {
	const { model, ...switches } = parameters;
	const node: INode = {
		id: 'a',
		name: 'a',
		type,
		typeVersion: 1,
		position: [0, 0],
		parameters: { model: { __rl: true, mode: 'id', value: model }, ...switches },
	};
	const { expression, nodes: known } = new Workflow({
		nodes: [node],
		connections: {},
		active: false,
		nodeTypes,
	});
	const { description } = nodes[type]!;
	const all = known.a!.parameters;
	const hidden = typeof all.reasoningSent === 'string' ? all.reasoningSent : '';
	const reasoningSent = expression.getSimpleParameterValue(node, hidden, 'internal', {}) as string;
	return description.properties
		.filter(({ type: kind, displayOptions }) => kind === 'notice' && displayOptions?.show !== undefined)
		.filter((property) =>
			NodeHelpers.displayParameter({ ...all, reasoningSent }, property, node, description),
		)
		.map(({ displayName }) => displayName);
}

const MODELS = REASONING_MODELS.map(({ model }) => model.replace(/[<>]/g, ''));

describe.each(['chat', 'model'])('the notice of %s', (type) => {
	it.each([
		...MODELS,
		'vendor/some-family-4.6',
		'Vendor/Family-K2-0905',
		'acme/unknown-1',
		'x-2-distill-y-32b',
	])('says for %s what the request will contain, or why nothing is sent', (model) => {
		for (const choice of ['on', 'off'] as const) {
			const sent = reasoningFields({ model, choice, control: 'auto', split: false });
			const [notice, ...others] = noticesFor(type, { model, reasoning: choice });
			expect(others).toEqual([]);
			const [[field, value] = []] = sent.ok ? Object.entries(sent.value) : [];
			if (!sent.ok) expect(notice).toMatch(/cannot be switched off|but not off|does not know/);
			else if (field === undefined) expect(notice).toContain('Nothing is sent');
			else
				expect(notice?.replace(/[\s"]/g, '')).toContain(
					`${field}:${JSON.stringify(value)}`.replace(/"/g, ''),
				);
		}
	});

	it('follows the chosen control', () => {
		const parameters = { model: 'acme/unknown-1', reasoning: 'off', reasoningControl: 'enable_thinking' };
		expect(noticesFor(type, parameters)).toEqual([
			'Sends <code>enable_thinking: false</code> to this model.',
		]);
	});

	it.each([
		{ model: 'family_c-4.6', reasoning: 'default' },
		{ model: '', reasoning: 'on' },
		{ model: '={{ $json.model }}', reasoning: 'on' },
		{ model: '={{ "family_c-4.6" }}', reasoning: 'off' },
		{ model: 'family_c-4.6', reasoning: '={{ "on" }}' },
	])('is not shown for %j', (parameters) => {
		expect(noticesFor(type, parameters)).toEqual([]);
	});

	it('is evaluated before any field that may lack its input data', () => {
		expect(nodes[type]!.description.properties[0]?.name).toBe('reasoningSent');
	});

	// n8n allows regular expressions 250 ms of wall time and evaluates them for each execution.
	it('has no condition with a regular expression', () => {
		const conditions = nodes[type]!.description.properties.map(({ displayOptions }) => displayOptions);
		expect(JSON.stringify(conditions)).not.toContain('regex');
	});
});
