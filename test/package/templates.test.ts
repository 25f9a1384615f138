// Checks what can be checked in a template without running it; test/e2e runs each of them.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
	NodeHelpers,
	type INode,
	type INodeCredentials,
	type INodeParameters,
	type INodeTypeDescription,
} from 'n8n-workflow';
import { describedNode, findFiles, packageRoot, readManifest } from './packageFiles';

interface TemplateNode {
	readonly name: string;
	readonly type: string;
	readonly typeVersion: number;
	readonly position: readonly [number, number];
	readonly parameters: INodeParameters;
	readonly credentials?: INodeCredentials;
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
/** The type prefixes of n8n's own nodes. */
const CORE = ['n8n-nodes-base.', '@n8n/n8n-nodes-langchain.'];

/** The fields that n8n adds to a node that an agent uses as a tool. */
const TOOL_FIELDS = ['descriptionType', 'toolDescription'];

/** The fields to fill in besides the account, which each of the package's nodes needs. */
const TO_FILL_IN: Readonly<Record<string, readonly string[]>> = {
	'agent-approval.json': [],
	'agent-long-render.json': ['Model: Model', 'Submit: Workflow'],
	'agent-pictures.json': ['Make a picture: Workflow', 'Model: Model'],
	'agent-tool.json': [],
	'chat-reasoning.json': ['Think and answer: Model'],
	'chat-tool.json': ['Ask: Model'],
	'image-batch.json': ['Make the pictures: Workflow'],
	'image-review.json': ['Make the pictures: Workflow'],
	'image-to-image-form.json': ['Repaint the picture: Workflow'],
	'long-render.json': ['Submit: Workflow'],
	'mcp-server.json': ['Submit a picture: Workflow'],
	'submit-now-collect-later.json': ['Submit: Workflow'],
	'support-inbox.json': [],
};

const read = (path: string) => readFileSync(join(packageRoot, path), 'utf8');
const readme = read('templates/README.md');

const descriptions = new Map(
	readManifest().n8n.nodes.map((path): [string, INodeTypeDescription] => {
		const description = describedNode(path);
		return [`${OWN}${description.name}`, description];
	}),
);

/** The labels of the fields that n8n marks as missing. */
function emptyFields({ type, parameters, ...node }: TemplateNode): string[] {
	const description = descriptions.get(type) ?? descriptions.get(type.replace(/Tool$/, ''));
	if (!description) throw new Error(`There is no node ${type}.`);
	const { properties } = description;
	const imported = { ...node, id: node.name, type, position: [0, 0], parameters } satisfies INode;
	const shown = NodeHelpers.getNodeParameters(properties, parameters, true, false, imported, description);
	const filled = { ...imported, parameters: shown ?? {} };
	const issues = NodeHelpers.getNodeParametersIssues(properties, filled, description);
	return Object.values(issues?.parameters ?? {}).flatMap((messages) =>
		messages.map((message) => /"([^"]+)"/.exec(message)?.[1] ?? message),
	);
}

describe.each(findFiles(['templates/*.json']))('%s', (path) => {
	const template: Template = JSON.parse(read(path));
	const notes = template.nodes.filter(({ type }) => type === STICKY);
	const nodes = template.nodes.filter(({ type }) => type !== STICKY);
	const own = nodes.filter(({ type }) => type.startsWith(OWN));

	it('leaves empty what must be filled in, so that n8n marks it in red', () => {
		const marked = own.flatMap((node) => emptyFields(node).map((field) => `${node.name}: ${field}`));
		expect(marked.sort()).toEqual(TO_FILL_IN[path.split('/').at(-1)!]);
	});

	it('has a row in the list of templates', () => {
		expect(readme).toContain(`| \`${path.split('/').at(-1)!}\` |`);
	});

	it('needs only n8n and this package', () => {
		const foreign = nodes.filter(({ type }) => ![OWN, ...CORE].some((prefix) => type.startsWith(prefix)));
		expect(foreign.map(({ type }) => type)).toEqual([]);
		expect(own).not.toEqual([]);
	});

	it('has notes that say what it is for and what to fill in', () => {
		const said = notes.map(({ parameters: { content } }) => (typeof content === 'string' ? content : ''));
		expect(notes.length).toBeGreaterThanOrEqual(2);
		expect(said.join('\n')).toMatch(/^## /m);
		const toOpen = own.filter((node) => emptyFields(node).length > 0).map(({ name }) => name);
		expect(toOpen.filter((name) => !said.join('\n').includes(`**${name}**`))).toEqual([]);
	});

	it('waits only for statuses that Flow Task outputs', () => {
		const known = /^const STATES = .*$/m.exec(read('nodes/FlowTask/api/taskInfo.ts'))?.[0] ?? '';
		const statuses = [...JSON.stringify(nodes).matchAll(/status is \\+"(\w+)/g)].map(([, status]) => status);
		expect(statuses.filter((status) => !known.includes(`'${status}'`))).toEqual([]);
	});

	// A node in between drops the interrupt, whose tool some agents need beside its ID.
	it('takes the tool of an interrupt from where it takes its ID', () => {
		const resumes = own.filter(({ parameters }) => parameters.operation === 'resume');
		const toolOf = ({ parameters: { interruptId: id } }: TemplateNode) =>
			typeof id === 'string' ? id.replace('interrupt.id', 'interrupt.tool') : undefined;
		expect(resumes.map(({ parameters }) => parameters.interruptTool)).toEqual(resumes.map(toolOf));
	});

	it('has no note that covers a node', () => {
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

	// Not even a credential's name is allowed: n8n would show an account that does not exist.
	it('contains no credentials', () => {
		expect(template.nodes.filter(({ credentials }) => credentials)).toEqual([]);
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
			const experts = options.flatMap((option) =>
				option.name === 'expert' && 'options' in option ? (option.options ?? []) : [],
			);
			const keysOf = (value: unknown) =>
				typeof value === 'object' && value !== null ? Object.entries(value) : [];
			const given = keysOf(parameters.options);
			const inExpert = keysOf(Object.fromEntries(given).expert);
			return [
				...Object.keys(parameters).filter(
					(key) => !TOOL_FIELDS.includes(key) && !fields.some((field) => field.name === key),
				),
				...given.map(([key]) => key).filter((key) => !options.some((option) => option.name === key)),
				...inExpert.map(([key]) => key).filter((key) => !experts.some((option) => option.name === key)),
			].map((key) => `${name}: ${key}`);
		});
		expect(unknown).toEqual([]);
	});
});
