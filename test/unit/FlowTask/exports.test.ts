import fc from 'fast-check';

import { checkOverrides } from '../../../nodes/FlowTask/workflow/checks';
import { readKnowledge, type WorkflowKnowledge } from '../../../nodes/shared/workflow/knowledge';
import { isLongInteger } from '../../../nodes/shared/workflow/definition';
import { formFields, readFieldId } from '../../../nodes/FlowTask/workflow/formFields';
import { promptFromFields, type OverrideField, type Prompt } from '../../../nodes/FlowTask/workflow/prompt';
import { promptFromForm } from '../../../nodes/FlowTask/workflow/promptForm';
import { promptFromJson } from '../../../nodes/FlowTask/workflow/promptJson';
import { applySeed } from '../../../nodes/FlowTask/workflow/seeds';
import type { Result } from '../../../nodes/shared/errors/failure';
import type { Json } from '../../../nodes/shared/text/json';
import { EXPORT_SAMPLES, type ExportSample } from './exports.samples';

/* What each way of changing inputs sends, over exports of many kinds. */

interface Value {
	readonly nodeId: string;
	readonly parameter: string;
	readonly hosted: Json;
}

function valueOf<T>(result: Result<T>): T {
	if (!result.ok) throw new Error(`${result.failure.message} / ${result.failure.advice}`);
	return result.value;
}

function know(sample: ExportSample, view: unknown = ''): WorkflowKnowledge {
	return valueOf(readKnowledge(sample.source, view));
}

function valuesOf({ definition }: WorkflowKnowledge): Value[] {
	return (definition?.nodes ?? []).flatMap(({ nodeId, inputs }) =>
		inputs
			.filter(({ isLink }) => !isLink)
			.map(({ name, value }) => ({ nodeId, parameter: name, hosted: value })),
	);
}

/** Another value of the same kind. */
function changed(hosted: Json, by: number): Json {
	if (isLongInteger(hosted)) return by;
	if (typeof hosted === 'number') return by;
	if (typeof hosted === 'boolean') return !hosted;
	if (Array.isArray(hosted)) return [by, by + 0.5];
	if (typeof hosted === 'object' && hosted !== null) return { on: true, by: [by, null] };
	return `text ${by}`;
}

function promptOf(changes: ReadonlyArray<Value & { readonly value: Json }>): Prompt {
	const nodes = new Map<string, Array<[string, Json]>>();
	for (const { nodeId, parameter, value } of changes) {
		nodes.set(nodeId, [...(nodes.get(nodeId) ?? []), [parameter, value]]);
	}
	return Object.fromEntries(
		[...nodes].map(([nodeId, inputs]) => [nodeId, { inputs: Object.fromEntries(inputs) }]),
	);
}

function toRow({ nodeId, parameter, value }: Value & { readonly value: Json }): OverrideField {
	const isText = typeof value === 'string';
	const isScalar = isText || typeof value === 'number' || typeof value === 'boolean';
	const valueType = isText ? 'string' : isScalar ? 'auto' : 'json';
	return { nodeId, parameter, value: isScalar ? String(value) : JSON.stringify(value), valueType };
}

/** The parameter view that a console would show of it, with the types that the engine knows. */
function viewOf(values: readonly Value[]): object {
	const nodes = new Map<string, Array<[string, object]>>();
	for (const { nodeId, parameter, hosted } of values) {
		const spec =
			typeof hosted === 'number'
				? [Number.isInteger(hosted) ? 'INT' : 'FLOAT', { default: hosted, min: -1e300, max: 1e300 }]
				: { default: hosted };
		nodes.set(nodeId, [...(nodes.get(nodeId) ?? []), [parameter, { spec }]]);
	}
	return Object.fromEntries(
		[...nodes].map(([nodeId, inputs]) => [nodeId, { inputs: Object.fromEntries(inputs) }]),
	);
}

it('has more than forty exports', () => {
	expect(EXPORT_SAMPLES.length).toBeGreaterThan(40);
	expect(new Set(EXPORT_SAMPLES.map(({ name }) => name)).size).toBe(EXPORT_SAMPLES.length);
});

describe.each(EXPORT_SAMPLES.map((sample) => [sample.name, sample] as const))('%s', (_name, sample) => {
	const known = know(sample);
	const values = valuesOf(known);

	it('offers its values, and nothing else', () => {
		const names = values.map(({ nodeId, parameter }) => `${nodeId}/${parameter}`);
		expect([...names].sort()).toEqual([...sample.values].sort());
		const offered = valueOf(readKnowledge(sample.source, viewOf(values)));
		for (const view of [known.view, offered.view]) {
			const ids = known.definition
				? formFields(known.definition, view).fields.map(({ id }) => readFieldId(id))
				: [];
			expect(ids.map((id) => `${id?.nodeId ?? ''}/${id?.parameter ?? ''}`).sort()).toEqual(names.sort());
		}
	});

	it('sends what is changed and nothing else, whichever way it is said', () => {
		const some = { minLength: Math.min(1, values.length), maxLength: Math.min(8, values.length) };
		const subsets = fc.subarray([...values], some);
		const withView = know(sample, viewOf(values));
		fc.assert(
			fc.property(subsets, fc.integer({ min: 1, max: 2 ** 31 }), (subset, by) => {
				const changes = subset.map((one) => ({ ...one, value: changed(one.hosted, by) }));
				const expected = promptOf(changes);
				const rows = changes.map(({ nodeId, parameter, value }): [string, Json] => [
					`${encodeURIComponent(nodeId)}/${encodeURIComponent(parameter)}`,
					value,
				]);
				const body = { workflow_id: 'w', prompt: expected };
				const prompts = [
					promptFromForm(Object.fromEntries(rows)),
					promptFromFields(changes.map(toRow)),
					promptFromJson(expected, 'w'),
					promptFromJson(JSON.stringify(expected, null, 2), 'w'),
					promptFromJson(body, 'w'),
					promptFromJson(JSON.stringify(body), 'w'),
				];
				for (const prompt of prompts) {
					const kept = valueOf(
						applySeed(valueOf(prompt), { mode: 'keep', base: 1, targets: '', ...known }, 0, () => 0),
					);
					for (const one of [known, withView, know({ ...sample, source: '' })]) {
						expect(valueOf(checkOverrides(kept.prompt, one))).toEqual(expected);
					}
				}
			}),
			{ numRuns: 15 },
		);
	});

	it('is refused as changes, by its name', () => {
		for (const value of [sample.source, { workflow_id: 'w', prompt: sample.source }]) {
			const result = promptFromJson(value, 'w');
			expect(result).toMatchObject({ ok: false, failure: { kind: 'badInput' } });
			if (!result.ok) expect(result.failure.message).toMatch(/^"Prompt \(JSON\)" /);
		}
		expect(promptFromJson(sample.source, 'w')).toMatchObject({
			failure: { message: '"Prompt (JSON)" is a full workflow export' },
		});
	});

	it('draws seeds that are numbers', () => {
		const plan = { mode: 'random' as const, base: 1, targets: '', ...known };
		const seeded = applySeed({}, plan, 0, () => 4_294_967_295);
		const seeds = values.filter(({ parameter }) => parameter === 'seed' || parameter === 'noise_seed');
		if (!seeded.ok) throw new Error(seeded.failure.message);
		const isSeed = (): boolean => true;
		const sent = valueOf(checkOverrides(seeded.value.prompt, known, isSeed));
		expect(sent).toEqual(promptOf(seeds.map((one) => ({ ...one, value: 4_294_967_295 }))));
	});

	it('is told in a sentence where it was cut, broken or put elsewhere', () => {
		const text = typeof sample.source === 'string' ? sample.source : JSON.stringify(sample.source);
		const short = text.slice(0, 4_000);
		fc.assert(
			fc.property(
				fc.nat(short.length),
				fc.constantFrom('', '}', ']', '"', 'null', ',', '[4,0]'),
				(at, put) => {
					const broken = short.slice(0, at) + put + short.slice(at + put.length);
					const results = [
						readKnowledge(broken, ''),
						readKnowledge('', broken),
						promptFromJson(broken, 'w'),
						promptFromForm({ '3/a': broken }),
						promptFromFields([{ nodeId: '3', parameter: 'a', value: broken, valueType: 'json' }]),
					];
					for (const result of results) {
						if (result.ok) continue;
						expect(result.failure.kind).toBe('badInput');
						expect(result.failure.message).not.toMatch(/TypeError|Cannot |is not a function|\[object/);
						expect(result.failure.message.length).toBeLessThan(1_000);
					}
				},
			),
			{ numRuns: 40 },
		);
	});
});
