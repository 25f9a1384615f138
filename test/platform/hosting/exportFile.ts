import { isRecord, parseWireJson } from '../wireJson';
import type { JsonRecord } from '../wireJson';
import { NODE_CLASSES } from './nodeClasses';
import type { NodeClass } from './nodeClasses';
import { WorkflowRefused } from './workflow';
import type { NodeLink, WorkflowNode } from './workflow';

/** Whether the file is the content of a parameter view, whose values have a `spec`. */
export function looksLikeParameterView(file: JsonRecord): boolean {
	return Object.values(file).some((node) => {
		const inputs = isRecord(node) && isRecord(node['inputs']) ? node['inputs'] : {};
		return Object.values(inputs).some((value) => isRecord(value) && 'spec' in value);
	});
}

/** Reads a link in an API export: the ID of the source node and the number of its output. */
export function linkOf(value: unknown): NodeLink | undefined {
	if (!Array.isArray(value) || value.length !== 2) return undefined;
	const [nodeId, slot]: unknown[] = value;
	if (typeof nodeId !== 'string' || typeof slot !== 'number') return undefined;
	return { nodeId, slot };
}

function notApiExport(message: string): WorkflowRefused {
	return new WorkflowRefused('notApiExport', message);
}

function fileContent(file: unknown): JsonRecord {
	let content = file;
	if (typeof file === 'string') {
		try {
			content = parseWireJson(file);
		} catch {
			throw notApiExport('The file is not JSON. Export the workflow in API format.');
		}
	}
	if (!isRecord(content)) throw notApiExport('The file is not a JSON object of nodes.');
	if (Array.isArray(content['nodes'])) {
		throw notApiExport('The file is in the format of the editor. Export the workflow in API format.');
	}
	if (looksLikeParameterView(content)) {
		throw notApiExport('The file is a parameter view. Upload the export in API format.');
	}
	if (Object.keys(content).length === 0) throw notApiExport('The file has no nodes.');
	return content;
}

function supportedClass(id: string, classType: string): NodeClass {
	const nodeClass = NODE_CLASSES.get(classType);
	if (nodeClass !== undefined) return nodeClass;
	throw new WorkflowRefused(
		'unsupportedNode',
		`Node ${id} has the class ${classType}, which is outside the supported list.`,
	);
}

function readNode(id: string, node: unknown): WorkflowNode {
	if (!isRecord(node) || typeof node['class_type'] !== 'string' || !isRecord(node['inputs'])) {
		throw notApiExport(`Node ${id} has no class_type and inputs. Export the workflow in API format.`);
	}
	const { class_type: classType, inputs, _meta: meta } = node;
	const nodeClass = supportedClass(id, classType);
	const links = new Map<string, NodeLink>();
	const values = new Map<string, unknown>();
	for (const name of [...Object.keys(nodeClass.links), ...Object.keys(nodeClass.values)]) {
		const link = linkOf(inputs[name]);
		if (link !== undefined) links.set(name, link);
	}
	for (const [name, input] of Object.entries(nodeClass.values)) {
		if (!links.has(name)) values.set(name, name in inputs ? inputs[name] : input.default);
	}
	const title = isRecord(meta) && typeof meta['title'] === 'string' ? meta['title'] : classType;
	return { id, title, classType, nodeClass, links, values };
}

/** Reads the nodes of an API-format export; throws WorkflowRefused for every other file. */
export function readExport(file: unknown): Map<string, WorkflowNode> {
	const content = fileContent(file);
	return new Map(Object.entries(content).map(([id, node]) => [id, readNode(id, node)]));
}
