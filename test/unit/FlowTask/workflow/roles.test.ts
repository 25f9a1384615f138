import { readDefinition, type WorkflowDefinition } from '../../../../nodes/FlowTask/workflow/definition';
import { rankInputs } from '../../../../nodes/FlowTask/workflow/roles';
import { BUILT_EXPORTS } from '../exports.builder';

/* The order of the form's rows, over exports of many kinds. */

function define(source: unknown): WorkflowDefinition {
	const result = readDefinition(source);
	if (!result.ok) throw new Error(result.failure.message);
	return result.value;
}

function rowsOf(source: unknown): string[] {
	return rankInputs(define(source)).map(({ node, input }) => `${node.nodeId}/${input.name}`);
}

/** As the export lists them, which is what a form without an order would do. */
function inExportOrder(source: unknown): string[] {
	return define(source).nodes.flatMap(({ nodeId, inputs }) =>
		inputs.filter(({ isLink }) => !isLink).map(({ name }) => `${nodeId}/${name}`),
	);
}

/** The question to a model that writes a part of the prompt reaches the sampler just as well. */
const MISSED = ['a caption of an image, with a question'];

test('the prompt is the first row', () => {
	const firstIn = (order: (source: unknown) => string[]): string[] =>
		BUILT_EXPORTS.filter(({ source, prompt }) => prompt.includes(order(source)[0] ?? '')).map(
			({ name }) => name,
		);
	const all = BUILT_EXPORTS.map(({ name }) => name);
	expect(new Set(all).size).toBe(44);
	expect(firstIn(rowsOf)).toEqual(all.filter((name) => !MISSED.includes(name)));
	// What the order is worth.
	expect(firstIn(inExportOrder)).toHaveLength(1);
});

test.each(BUILT_EXPORTS.map((one) => [one.name, one] as const))(
	'%s: each text has its role',
	(_name, one) => {
		const ranked = rankInputs(define(one.source));
		const withRole = (wanted: string): string[] =>
			ranked.filter(({ role }) => role === wanted).map(({ node, input }) => `${node.nodeId}/${input.name}`);
		expect(rowsOf(one.source).sort()).toEqual(inExportOrder(one.source).sort());
		if (one.negative) {
			const main = withRole('negative').filter((place) => one.negative?.includes(place));
			expect(main.sort()).toEqual([...one.negative].sort());
			expect(withRole('positive')).toContain(one.prompt[0]);
			// No row between the positive and the negative ones.
			const roles = ranked.map(({ role }) => role);
			expect(roles.lastIndexOf('positive')).toBe(roles.filter((role) => role === 'positive').length - 1);
		}
	},
);

test('after the texts: images, seeds, sizes and steps, the rest, and what only the editor keeps', () => {
	const source = {
		'1': {
			class_type: 'LoadImage',
			inputs: { upload: 'image', ckpt_name: 'x', steps: 4, seed: 1, image: 'a.png', caption: 'fox' },
		},
		'2': {
			class_type: 'Image Comparer (rgthree)',
			inputs: { rgthree_comparer: {}, '➕ Add Lora': '', width: 8 },
		},
		'3': { class_type: 'PreviewAny', inputs: { preview_text: 'a', text: 'shown' } },
	};
	expect(rowsOf(source)).toEqual([
		...['1/caption', '1/image', '1/seed', '1/steps', '2/width', '1/ckpt_name'],
		...['1/upload', '2/rgthree_comparer', '2/➕ Add Lora', '3/preview_text', '3/text'],
	]);
});

test('a number on a node of its own counts as what it is linked to', () => {
	const held = BUILT_EXPORTS.find(({ name }) => name === 'a seed and a size on nodes of their own');
	const ranked = rankInputs(define(held?.source));
	const places = ranked.map(({ node, input, role }) => `${node.nodeId}/${input.name} ${role ?? ''}`);
	expect(places.slice(0, 4)).toEqual(['6/text positive', '7/text negative', '1/value seed', '2/value ']);
});

test('links in a circle, and into nodes that are not there, end', () => {
	const source = {
		'1': { class_type: 'KSampler', inputs: { positive: ['2', 0], negative: ['99', 0], seed: ['2', 0] } },
		'2': { class_type: 'Reroute', inputs: { '': ['3', 0] } },
		'3': { class_type: 'Reroute', inputs: { '': ['2', 0], text: 'fox' } },
	};
	expect(rankInputs(define(source))).toMatchObject([{ role: 'positive' }]);
});

test('a workflow of 5,000 nodes is ranked in a moment', () => {
	const nodes = Array.from({ length: 5_000 }, (_, index) => [
		String(index),
		{
			class_type: 'KSampler',
			inputs: { positive: [String(index + 1), 0], seed: [String(index + 1), 0], a: 1 },
		},
	]);
	const started = performance.now();
	expect(rowsOf(Object.fromEntries(nodes))).toHaveLength(5_000);
	expect(performance.now() - started).toBeLessThan(2_000);
});
