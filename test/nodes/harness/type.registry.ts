import { PackageDirectoryLoader, UnrecognizedCredentialTypeError, UnrecognizedNodeTypeError } from 'n8n-core';
import {
	injectDomainRestrictionFields,
	NodeHelpers,
	type ICredentialType,
	type IDataObject,
	type INodeType,
	type INodeTypes,
	type IVersionedNodeType,
} from 'n8n-workflow';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { stockNodes } from './stock.nodes';
import { asTool } from './tool.variant';

export type NodeClass = new () => INodeType | IVersionedNodeType;

/** The package's node and credential types, read by n8n's own loader, and the nodes of the tests. */
export class TypeRegistry implements INodeTypes {
	private readonly nodes = new Map<string, INodeType | IVersionedNodeType>();
	private readonly tools = new Map<string, INodeType>();
	private readonly credentials = new Map<string, ICredentialType>();

	constructor(nodeClasses: NodeClass[]) {
		for (const [name, Stock] of Object.entries(stockNodes)) this.nodes.set(name, new Stock());
		for (const NodeClass of nodeClasses) {
			const node = new NodeClass();
			const { name } = node.description;
			this.nodes.set(name.includes('.') ? name : `harness.${name}`, node);
		}
	}

	/** Loads the built files that package.json's `n8n` section lists. Returns the node types. */
	async loadPackage(directory: string): Promise<string[]> {
		const loader = new PackageDirectoryLoader(directory);
		const { nodes = [], credentials = [] } = loader.packageJson.n8n ?? {};
		const missing = [...nodes, ...credentials].filter((file) => !existsSync(path.join(directory, file)));
		if (missing.length > 0) throw new Error(`Not built (npm run build): ${missing.join(', ')}`);
		await loader.loadAll();
		const names = Object.keys(loader.known.nodes).map((name) => `${loader.packageName}.${name}`);
		for (const name of Object.keys(loader.known.nodes)) {
			this.nodes.set(`${loader.packageName}.${name}`, loader.getNode(name).type);
		}
		for (const name of Object.keys(loader.known.credentials)) {
			const { type } = loader.getCredential(name);
			type.properties = injectDomainRestrictionFields(type);
			this.credentials.set(name, type);
		}
		return names;
	}

	getByName(nodeType: string): INodeType | IVersionedNodeType {
		const node = this.nodes.get(nodeType);
		if (node) return node;
		const [packageName = '', name = ''] = nodeType.split('.');
		throw new UnrecognizedNodeTypeError(packageName, name);
	}

	getByNameAndVersion(nodeType: string, version?: number): INodeType {
		if (this.nodes.has(nodeType) || !nodeType.endsWith('Tool')) {
			return NodeHelpers.getVersionedNodeType(this.getByName(nodeType), version);
		}
		const key = `${nodeType}?version=${version ?? 'default'}`;
		const known = this.tools.get(key);
		if (known) return known;
		const tool = asTool(this.getByNameAndVersion(nodeType.slice(0, -'Tool'.length), version));
		this.tools.set(key, tool);
		return tool;
	}

	getKnownTypes(): IDataObject {
		return Object.fromEntries(
			[...this.nodes.keys()].map((name) => [name, { className: name, sourcePath: '' }]),
		);
	}

	getCredentialType(name: string): ICredentialType {
		const credential = this.credentials.get(name);
		if (!credential) throw new UnrecognizedCredentialTypeError(name);
		return credential;
	}
}
