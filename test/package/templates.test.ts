// What can be said of a template without running it; test/e2e runs each of them.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { INodeTypeDescription } from 'n8n-workflow';
import { describedNode, findFiles, packageRoot, readManifest } from './packageFiles';

interface TemplateNode {
	readonly name: string;
	readonly type: string;
	readonly typeVersion: number;
	readonly position: readonly [number, number];
	readonly parameters: Readonly<Record<string, unknown>>;
	readonly credentials?: Readonly<Record<string, { readonly id: string | null; readonly name: string }>>;
}

interface Template {
	readonly name: string;
	readonly nodes: readonly TemplateNode[];
	readonly connections: Readonly<
		Record<string, Readonly<Record<string, ReadonlyArray<ReadonlyArray<{ readonly node: string }> | null>>>>
	>;
}

const OWN = 'n8n-nodes-flowtask.';
const STICKY = 'n8n-nodes-base.stickyNote';
/** What n8n brings itself. */
const CORE = ['n8n-nodes-base.', '@n8n/n8n-nodes-langchain.'];

/** What n8n adds to a node that an agent uses as a tool. */
const TOOL_FIELDS = ['descriptionType', 'toolDescription'];

const read = (path: string) => readFileSync(join(packageRoot, path), 'utf8');
const readme = read('templates/README.md');

const descriptions = new Map(
	readManifest().n8n.nodes.map((path): [string, INodeTypeDescription] => {
		const description = describedNode(path);
		return [`${OWN}${description.name}`, description];
	}),
);

describe.each(findFiles(['templates/*.json']))('%s', (path) => {
	const template: Template = JSON.parse(read(path));
	const notes = template.nodes.filter(({ type }) => type === STICKY);
	const nodes = template.nodes.filter(({ type }) => type !== STICKY);
	const own = nodes.filter(({ type }) => type.startsWith(OWN));

	it('has a row in the list of templates', () => {
		expect(readme).toContain(`| \`${path.split('/').at(-1)!}\` |`);
	});

	it('needs nothing but n8n and this package', () => {
		const foreign = nodes.filter(({ type }) => ![OWN, ...CORE].some((prefix) => type.startsWith(prefix)));
		expect(foreign.map(({ type }) => type)).toEqual([]);
		expect(own).not.toEqual([]);
	});

	it('tells in notes what it is for and what to fill in', () => {
		const said = notes.map(({ parameters }) => String(parameters.content));
		expect(notes.length).toBeGreaterThanOrEqual(2);
		expect(said.join('\n')).toMatch(/^## /m);
		const placeholders = new Set(JSON.stringify(nodes).match(/PASTE_[A-Z_]+/g) ?? []);
		expect([...placeholders].filter((text) => !said.join('\n').includes(text))).toEqual([]);
	});

	it('covers no node with a note', () => {
		const covered = notes.flatMap(({ name, position: [left, top], parameters: { width, height } }) =>
			nodes
				.filter(
					({ position: [x, y] }) =>
						x + 100 > left && x < left + Number(width) && y + 100 > top && y < top + Number(height),
				)
				.map((node) => `${name} covers ${node.name}`),
		);
		expect(covered).toEqual([]);
	});

	it('holds the credentials of nobody', () => {
		const slots = template.nodes.flatMap(({ credentials = {} }) => Object.values(credentials));
		expect(slots.filter(({ id }) => id !== null && id !== '')).toEqual([]);
		expect(JSON.stringify(template)).not.toMatch(/\b(sk-|agt_|dbg_|wst_)[A-Za-z0-9]{6}/);
	});

	it('connects nodes that exist', () => {
		const names = new Set(template.nodes.map(({ name }) => name));
		expect(names.size).toBe(template.nodes.length);
		const ends = Object.values(template.connections).flatMap((outputs) =>
			Object.values(outputs).flatMap((lists) => lists.flatMap((list) => list ?? []).map(({ node }) => node)),
		);
		expect([...Object.keys(template.connections), ...ends].filter((name) => !names.has(name))).toEqual([]);
	});

	it('sets only fields that the nodes have', () => {
		const unknown = own.flatMap(({ name, type, parameters }) => {
			const fields =
				(descriptions.get(type) ?? descriptions.get(type.replace(/Tool$/, '')))?.properties ?? [];
			const options = fields
				.filter((field) => field.name === 'options')
				.flatMap((field) => field.options ?? []);
			const given = parameters.options;
			const set = typeof given === 'object' && given !== null ? Object.keys(given) : [];
			return [
				...Object.keys(parameters).filter(
					(key) => !TOOL_FIELDS.includes(key) && !fields.some((field) => field.name === key),
				),
				...set.filter((key) => !options.some((option) => option.name === key)).map((key) => `options.${key}`),
			].map((key) => `${name}: ${key}`);
		});
		expect(unknown).toEqual([]);
	});
});
