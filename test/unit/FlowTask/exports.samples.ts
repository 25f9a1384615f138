/* API-format exports as tools and people have them: each as it is pasted, beside what must be read from it. */

export interface ExportSample {
	readonly name: string;
	/** As pasted, or as an expression gives it. */
	readonly source: unknown;
	/** `node/input` of every value that may be changed. */
	readonly values: readonly string[];
}

const SAMPLER = {
	class_type: 'KSampler',
	inputs: { seed: 5, steps: 20, cfg: 7.5, sampler_name: 'euler', denoise: 1, model: ['4', 0] },
	_meta: { title: 'KSampler' },
};
const SAMPLER_VALUES = ['seed', 'steps', 'cfg', 'sampler_name', 'denoise'];
const LOADER = { class_type: 'CheckpointLoaderSimple', inputs: { ckpt_name: 'a b/c-1.0.safetensors' } };
const PLAIN = { '3': SAMPLER, '4': LOADER };
const PLAIN_VALUES = [...SAMPLER_VALUES.map((name) => `3/${name}`), '4/ckpt_name'];
const EDITOR_FILE = { last_node_id: 9, nodes: [{ id: 3, type: 'KSampler' }], links: [], version: 0.4 };

function ofNode(nodeId: string, classType: string, inputs: object, more: object = {}): object {
	return { [nodeId]: { class_type: classType, inputs, ...more } };
}

/** A sample whose node of interest is "9" and whose values are those inputs that are named. */
function ofInputs(name: string, inputs: object, values: readonly string[]): ExportSample {
	return {
		name,
		source: { ...PLAIN, ...ofNode('9', 'Widgets', inputs) },
		values: [...PLAIN_VALUES, ...values.map((one) => `9/${one}`)],
	};
}

function wrapped(name: string, source: unknown): ExportSample {
	return { name, source, values: PLAIN_VALUES };
}

function ofNodeId(nodeId: string): ExportSample {
	const source = { '4': LOADER, [nodeId]: SAMPLER };
	return {
		name: `a node with the id ${JSON.stringify(nodeId)}`,
		source,
		values: ['4/ckpt_name', ...SAMPLER_VALUES.map((name) => `${nodeId}/${name}`)],
	};
}

export const EXPORT_SAMPLES: readonly ExportSample[] = [
	wrapped('an object', PLAIN),
	wrapped('text', JSON.stringify(PLAIN)),
	wrapped('text over many lines', JSON.stringify(PLAIN, null, 2)),
	wrapped('text with a byte order mark', `\uFEFF${JSON.stringify(PLAIN)}`),
	wrapped('text between fences', `\`\`\`json\n${JSON.stringify(PLAIN, null, 2)}\n\`\`\``),
	wrapped('a list of one', [PLAIN]),
	wrapped('below "prompt"', { prompt: PLAIN }),
	wrapped('below "prompt", as text', { prompt: JSON.stringify(PLAIN) }),
	wrapped('below "output", with the editor file beside it', { output: PLAIN, workflow: EDITOR_FILE }),
	wrapped('below "workflow"', { workflow: PLAIN }),
	wrapped('below "input" and "workflow"', { input: { workflow: PLAIN } }),
	wrapped('below "input" and "prompt"', JSON.stringify({ input: { prompt: PLAIN, images: [] } })),
	wrapped('below "data"', { code: 0, data: { prompt: PLAIN } }),
	wrapped('in a request body', { workflow_id: 'w', prompt: PLAIN }),
	wrapped('as an editor sends it to its engine', { client_id: 'c', prompt: PLAIN, extra_data: {} }),
	wrapped(
		'with NaN, as Python writes it',
		`${JSON.stringify(PLAIN).slice(0, -1)}, "x": {"is_changed": [NaN]}}`,
	),
	wrapped('with what is no node beside it', {
		...PLAIN,
		version: 1,
		extra: { ds: { scale: 1 } },
		last: null,
	}),
	wrapped('with nodes that have no inputs', {
		...PLAIN,
		'5': { class_type: 'Note' },
		'6': { class_type: 'Reroute', inputs: null },
	}),
	...[
		'57:43',
		'12:3:8',
		'538_531',
		'-10',
		'a b',
		'a/b.c',
		'ä🦊',
		'__proto__',
		'constructor',
		'prompt',
		'inputs',
		'0',
	].map(ofNodeId),
	{
		name: 'links with their nodes as numbers',
		source: { '4': LOADER, '3': { ...SAMPLER, inputs: { seed: 5, model: [4, 0], clip: [4, 1] } } },
		values: ['4/ckpt_name', '3/seed'],
	},
	{
		name: 'links into a subgraph',
		source: {
			'57:3': { ...SAMPLER, inputs: { seed: 5, model: ['57:4', 0] } },
			'57:4': LOADER,
			'8': { class_type: 'VAEDecode', inputs: { samples: ['57:3', 0] } },
		},
		values: ['57:3/seed', '57:4/ckpt_name'],
	},
	{
		name: 'a group node',
		source: {
			'3': { class_type: 'workflow>My group', inputs: { KSampler_seed: 1, 'CLIP Text Encode_text': 'x' } },
		},
		values: ['3/KSampler_seed', '3/CLIP Text Encode_text'],
	},
	ofInputs('sizes and ranges, which are no links', { size: [512, 512], range: [0.5, 1], three: [4, 0, 1] }, [
		'size',
		'range',
		'three',
	]),
	ofInputs('a list of texts, and of nothing', { names: ['a', 'b'], none: [] }, ['names', 'none']),
	ofInputs(
		'rgthree: a stack of loras',
		{
			PowerLoraLoaderHeaderWidget: { type: 'PowerLoraLoaderHeaderWidget' },
			lora_1: { on: true, lora: 'style.safetensors', strength: 0.8, strengthTwo: null },
			'➕ Add Lora': '',
			model: ['4', 0],
		},
		['PowerLoraLoaderHeaderWidget', 'lora_1', '➕ Add Lora'],
	),
	ofInputs(
		'impact: wildcards',
		{
			wildcard_text: '__a__ {b|c}',
			populated_text: '',
			mode: 'populate',
			seed: 0,
			'Select to add LoRA': 'x',
		},
		['wildcard_text', 'populated_text', 'mode', 'seed', 'Select to add LoRA'],
	),
	ofInputs('a switch and its opposite', { on: true, off: false }, ['on', 'off']),
	ofInputs('inputs that are null', { seed: null, text: null, list: null }, ['seed', 'text', 'list']),
	ofInputs('nested objects', { options: { a: { b: [1, { c: null }] } }, model: ['4', 0] }, ['options']),
	ofInputs('templates', { a: '%date:yyyy%', b: '${x}', c: '{{ $json.a }}', d: '=1+1', seed: '%seed%' }, [
		'a',
		'b',
		'c',
		'd',
		'seed',
	]),
	ofInputs('a prompt of 300 kB', { text: 'ä "quoted"\n'.repeat(30_000) }, ['text']),
	ofInputs('numbers at the ends', { a: -0.000001, b: 1e21, c: Number.MAX_SAFE_INTEGER, d: 0 }, [
		'a',
		'b',
		'c',
		'd',
	]),
	ofInputs('texts that look like numbers', { a: '42', b: '007', c: 'true', d: 'null', e: '' }, [
		'a',
		'b',
		'c',
		'd',
		'e',
	]),
	ofInputs('names that objects have by nature', { constructor: 'x', toString: 1, hasOwnProperty: true }, [
		'constructor',
		'toString',
		'hasOwnProperty',
	]),
	ofInputs('names with signs in them', { 'a.b': 1, 'a/b': 2, 'a b': 3, '"[0]"': 4, '🦊': 5 }, [
		'a.b',
		'a/b',
		'a b',
		'"[0]"',
		'🦊',
	]),
	ofInputs(
		'the words of the interface as names',
		{ spec: 'x', inputs: 'y', class_type: 'z', prompt: 'p', workflow_id: 'w' },
		['spec', 'inputs', 'class_type', 'prompt', 'workflow_id'],
	),
	ofInputs(
		"a loader's files",
		{ image: 'a.png', video: 'a.mp4', audio: 'a.wav', file: 'sub/a.glb [input]' },
		['image', 'video', 'audio', 'file'],
	),
	ofInputs('links only', { model: ['4', 0], clip: ['999', 1], vae: [4, 2] }, []),
	{
		name: 'seeds beyond 2^53',
		source: '{"3": {"class_type": "KSampler", "inputs": {"seed": 18446744073709551615, "steps": 20}}}',
		values: ['3/seed', '3/steps'],
	},
	{
		name: '200 nodes',
		source: Object.fromEntries(
			Array.from({ length: 200 }, (_, index) => [`${index}:1`, { class_type: 'X', inputs: { a: index } }]),
		),
		values: Array.from({ length: 200 }, (_, index) => `${index}:1/a`),
	},
];
