// The fields that the editor shows before a node's first run must be those that the node outputs.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Validator, type Schema } from '@cfworker/json-schema';
import type { IDataObject, INodeParameters, INodeTypeDescription } from 'n8n-workflow';
import { openStage as openBridge, CORRELATED } from '../nodes/AgentBridge/agentBridge.fixture';
import { openAgentStage } from '../nodes/AgentInvoke/agent.fixture';
import { openChatStage } from '../nodes/ChatCompletion/chat.fixture';
import { openStage as openTasks, prompts } from '../nodes/FlowTask/flowTask.fixture';
import { NODE_NAME, type HarnessRun } from '../nodes/harness';
import { describedNode, findFiles, packageRoot, readManifest } from './packageFiles';

type JsonSchema = Schema & { properties: Record<string, Schema> };

const schemaOf = (path: string): JsonSchema => JSON.parse(readFileSync(join(packageRoot, path), 'utf8'));
const schemas = findFiles(['nodes/**/__schema__/**/*.json']);

/** The paths at which n8n looks (`resolveOutputSchemaPath` of n8n-core) for version 1, which all nodes have. */
function placesOf({ properties, group }: INodeTypeDescription, folder: string): string[] {
	const valuesOf = (parameter: string, resource?: string): string[] =>
		properties
			.filter((property) => property.name === parameter)
			.filter(({ displayOptions }) => !resource || displayOptions?.show?.resource?.includes(resource))
			.flatMap(({ options = [] }) =>
				options.flatMap((option) => ('value' in option ? String(option.value) : [])),
			);
	const at = (...parts: string[]) => `${folder}/__schema__/${parts.join('/')}.json`;
	const resources = valuesOf('resource');
	if (resources.length > 0) {
		return resources.flatMap((resource) =>
			valuesOf('operation', resource).map((operation) => at('v1.0.0', resource, operation)),
		);
	}
	const operations = valuesOf('operation');
	if (operations.length > 0) return operations.map((operation) => at('v1.0.0', operation));
	// The editor requests the first one and n8n's workflow builder the second; the editor never requests a trigger's.
	const output = at('v1.0.0', 'output');
	return group.includes('trigger') ? [output] : [at('v1.0.0'), output];
}

function describedNodes(): Array<{ description: INodeTypeDescription; folder: string }> {
	return readManifest().n8n.nodes.map((path) => {
		const description = describedNode(path);
		return { description, folder: path.replace(/^dist\//, '').replace(/\/[^/]+$/, '') };
	});
}

it('exists next to each node, one for each operation, and nowhere else', () => {
	// A model for n8n's AI Agent outputs no items.
	const nodes = describedNodes().filter(({ description }) => !description.name.startsWith('lm'));
	expect(schemas).toEqual(nodes.flatMap(({ description, folder }) => placesOf(description, folder)).sort());
});

it('is copied into dist', () => {
	expect(schemas.filter((path) => !existsSync(join(packageRoot, 'dist', path)))).toEqual([]);
});

it.each(schemas)('%s is accepted by the editor', (path) => {
	const schema = schemaOf(path);
	expect({ type: schema.type, isEmpty: Object.keys(schema.properties).length === 0 }).toEqual({
		type: 'object',
		isEmpty: false,
	});
});

it('is the same for ChatCompletion in both files', () => {
	const folder = 'nodes/ChatCompletion/__schema__';
	expect(schemaOf(`${folder}/v1.0.0.json`)).toEqual(schemaOf(`${folder}/v1.0.0/output.json`));
});

/** The fields of a schema with named properties, as `a.b`. */
function fieldsOf(schema: Schema | boolean, prefix = ''): string[] {
	const own = Object.entries((typeof schema === 'object' && schema.properties) || {});
	return own.flatMap(([name, inner]) => [`${prefix}${name}`, ...fieldsOf(inner, `${prefix}${name}.`)]);
}

function has(json: unknown, path: string): boolean {
	return path.split('.').every((name) => {
		if (typeof json !== 'object' || json === null || !(name in json)) return false;
		json = (json as Record<string, unknown>)[name];
		return true;
	});
}

/** Expects every item to match the schema and each field to be in some item; the schema leaves out the `beyond` fields. */
function expectDescribed(path: string, runs: readonly HarnessRun[], beyond: readonly string[] = []): void {
	const schema = schemaOf(`nodes/${path}.json`);
	const items = runs.flatMap((run) => {
		expect(run.error).toBeUndefined();
		return [0, 1].flatMap((output) => run.output(NODE_NAME, output).map(({ json }): IDataObject => json));
	});
	expect(items).not.toEqual([]);
	for (const json of items) {
		expect(new Validator(schema, '2020-12').validate(json).errors).toEqual([]);
		const unknown = Object.keys(json).filter((name) => !(name in schema.properties));
		expect(unknown.filter((name) => !beyond.includes(name))).toEqual([]);
	}
	expect(fieldsOf(schema).filter((field) => !items.some((json) => has(json, field)))).toEqual([]);
}

describe('what the nodes output', () => {
	const FlowTask = 'FlowTask/__schema__/v1.0.0';

	it('FlowTask', async () => {
		const stage = await openTasks({ taskMs: 20 });
		try {
			const seeded: INodeParameters = { seedMode: 'fixed', seed: 7, seedTargets: '3.seed' };
			const done = await stage.run(prompts(1), seeded);
			expectDescribed(`${FlowTask}/task/run`, [done]);
			const submitted = await stage.run(prompts(1), { operation: 'submit', ...seeded });
			expectDescribed(`${FlowTask}/task/submit`, [submitted]);
			const tasks = submitted.output(NODE_NAME).map(({ json }) => ({ json }));
			expectDescribed(`${FlowTask}/task/wait`, [await stage.run(tasks, { operation: 'wait' })]);
			expectDescribed(`${FlowTask}/task/get`, [await stage.run(tasks, { operation: 'get' })]);
			const [item] = done.output(NODE_NAME);
			const data = await done.binary(item, 'data');
			const picture = { binary: { data: { data, fileName: 'a.png', mimeType: 'image/png' } } };
			const uploaded = await stage.run([picture], { resource: 'image', operation: 'upload' });
			expectDescribed(`${FlowTask}/image/upload`, [uploaded]);
			const links = (await stage.run(tasks, { operation: 'get' })).output(NODE_NAME);
			const downloaded = await stage.run(links, { resource: 'file', operation: 'download' });
			expectDescribed(`${FlowTask}/file/download`, [downloaded]);
		} finally {
			await stage.close();
		}
	});

	it('ChatCompletion', async () => {
		const stage = await openChatStage();
		try {
			const answered = await stage.run([{ json: { say: 'hello' } }], { reasoning: 'on' });
			const called = await stage.run([{ json: { say: '[tool: refund {"order": 7}]' } }]);
			expectDescribed('ChatCompletion/__schema__/v1.0.0', [answered, called]);
		} finally {
			await stage.close();
		}
	});

	it('AgentInvoke', async () => {
		const stage = await openAgentStage();
		const folder = 'AgentInvoke/__schema__/v1.0.0';
		try {
			const say = (...texts: string[]) => texts.map((text) => ({ json: { say: text } }));
			const asked = await stage.run(say('hello', '[tool: refund {"order": 7}]', '[question: which colour?]'));
			expectDescribed(`${folder}/invoke`, [asked], ['usage']);
			const interrupts = asked.output(NODE_NAME, 1).map(({ json }) => ({ json }));
			const resumed = await stage.run(interrupts.slice(0, 1), {
				operation: 'resume',
				result: '{"refunded": true}',
			});
			expect(schemaOf(`nodes/${folder}/resume.json`)).toEqual(schemaOf(`nodes/${folder}/invoke.json`));
			expectDescribed(`${folder}/resume`, [asked, resumed], ['usage']);
			const file = { data: Buffer.from('a report'), fileName: 'report.txt', mimeType: 'text/plain' };
			const uploaded = await stage.run([{ binary: { data: file } }], { operation: 'uploadMedia' });
			expectDescribed(`${folder}/uploadMedia`, [uploaded]);
		} finally {
			await stage.close();
		}
	});

	it('AgentBridge and its trigger', async () => {
		const stage = await openBridge();
		const folder = 'AgentBridge/__schema__/v1.0.0';
		try {
			const hello = [{ json: { text: 'hello' } }];
			expectDescribed(`${folder}/request`, [await stage.run(hello, CORRELATED)]);
			expectDescribed(`${folder}/send`, [await stage.run(hello, { operation: 'send' })]);
			const trigger = await stage.activate({ idPath: 'id' });
			stage.channel.push({ text: 'hello' });
			expectDescribed(`${folder}/output`, await trigger.waitForRuns(1));
			await trigger.close();
		} finally {
			await stage.close();
		}
	});
});
