import { posix } from 'node:path';
import ts from 'typescript';

/**
 * Which layers may import which. The path of a file decides its layer; imports run downwards in this table, never up
 * and never from one node's folder into another's.
 */
const LAYERS = {
	node: { imports: ['action', 'protocol', 'shared', 'credential'] },
	action: { imports: ['action', 'protocol', 'shared', 'credential'] },
	protocol: { imports: ['protocol', 'shared', 'credential'] },
	shared: { imports: ['shared', 'credential'] },
	credential: { imports: ['credential'] },
} as const satisfies Record<string, { imports: readonly string[] }>;

type Layer = keyof typeof LAYERS;

/** A room may import only from the rooms before it. A file directly in the node's folder is a room of its own. */
export const ROOMS: Record<string, readonly string[]> = {
	'nodes/shared': [
		'text',
		'errors',
		'time',
		'usage',
		'run',
		'http',
		'retry',
		'files',
		'form',
		'workflow',
		'dataTable',
		'effects',
		'platform',
		'answer',
		'chat',
	],
	'nodes/ChatCompletion': ['json', 'request', 'failures.ts', 'api.ts', 'tokenBudget.ts'],
	'nodes/AgentBridge': ['frames.ts', 'connection', 'reply', 'account.ts'],
	'nodes/FlowTask': ['graph', 'workflow', 'api', 'tasks', 'taskLog'],
	'nodes/AgentInvoke': ['wire', 'api', 'sessions', 'turns', 'turnLog'],
};

function layerOf(path: string): Layer | undefined {
	if (path.startsWith('credentials/')) return 'credential';
	if (path.startsWith('nodes/shared/')) return roomOf(path) ? 'shared' : undefined;
	if (/^nodes\/[^/]+\/[^/]+\.node\.ts$/.test(path)) return 'node';
	if (/^nodes\/[^/]+\/(actions|methods)\//.test(path)) return 'action';
	return path.startsWith('nodes/') && roomOf(path) ? 'protocol' : undefined;
}

/** The room that a file belongs to; a node without rooms is a single room. */
function roomOf(path: string): string | undefined {
	const [, , inFolder = '', inRoom, ...deeper] = path.split('/');
	const rooms = ROOMS[folderOf(path)];
	if (inRoom !== undefined) return deeper.length === 0 && rooms?.includes(inFolder) ? inFolder : undefined;
	return !rooms || rooms.includes(inFolder) ? inFolder : undefined;
}

/**
 * Packages that may be imported as code (types may come from n8n-workflow anywhere). Protocol and shared modules are
 * pure, so that they can be tested without n8n; only the shared modules named here use n8n on their behalf.
 */
const PACKAGES: Record<string, { layers: readonly Layer[]; alsoIn?: readonly string[] }> = {
	'n8n-workflow': {
		layers: ['node', 'action', 'credential'],
		alsoIn: [
			'nodes/shared/errors/nodeError.ts', // the only one that creates node errors
			'nodes/shared/time/clock.ts', // n8n's sleep, because the scanner rejects timers
			'nodes/shared/usage/tokenUsage.ts', // n8n's sum of tokens, which older versions lack
		],
	},
	'@n8n/ai-node-sdk': { layers: ['node'] },
	valibot: { layers: ['protocol', 'shared'] },
	jmespath: { layers: ['protocol', 'shared'] },
	'@cfworker/json-schema': { layers: ['protocol'] },
	'p-limit': { layers: ['action', 'protocol', 'shared'] },
	crypto: { layers: ['action', 'protocol', 'shared'] },
};

interface Import {
	readonly from: string;
	readonly isTypeOnly: boolean;
}

export function importsOf(source: string): Import[] {
	const found: Import[] = [];
	const add = (specifier: ts.Node | undefined, isTypeOnly: boolean) => {
		if (specifier && ts.isStringLiteralLike(specifier)) found.push({ from: specifier.text, isTypeOnly });
	};
	const visit = (node: ts.Node): void => {
		if (ts.isImportDeclaration(node))
			add(node.moduleSpecifier, node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword);
		else if (ts.isExportDeclaration(node)) add(node.moduleSpecifier, node.isTypeOnly);
		else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument))
			add(node.argument.literal, true);
		else if (ts.isCallExpression(node)) {
			const isRequire = ts.isIdentifier(node.expression) && node.expression.text === 'require';
			if (isRequire || node.expression.kind === ts.SyntaxKind.ImportKeyword) add(node.arguments[0], false);
		}
		ts.forEachChild(node, visit);
	};
	visit(ts.createSourceFile('module.ts', source, ts.ScriptTarget.Latest));
	return found;
}

/** One sentence per breach of the tables above. `path` is relative to the package, with forward slashes. */
export function breaches(path: string, source: string): string[] {
	const layer = layerOf(path);
	if (!layer) return [`${path} belongs to no layer: put it where the tables in test/package/layers.ts say`];
	return importsOf(source).flatMap((imported) => {
		const reason = imported.from.startsWith('.')
			? whyNotFile(path, layer, posix.join(posix.dirname(path), imported.from))
			: whyNotPackage(path, layer, imported);
		return reason ? [`${path} imports ${imported.from}: ${reason}`] : [];
	});
}

function whyNotFile(path: string, layer: Layer, target: string): string | undefined {
	const file = target.endsWith('.json') ? undefined : `${target}.ts`;
	// A folder means its index file, which belongs to the same layer.
	const targetLayer = file === undefined ? undefined : (layerOf(file) ?? layerOf(`${target}/index.ts`));
	if (!targetLayer) return 'not a module of a layer';
	const allowed: readonly Layer[] = LAYERS[layer].imports;
	if (!allowed.includes(targetLayer)) return `${layer} must not import ${targetLayer}`;
	const isInNodeFolder = targetLayer !== 'shared' && targetLayer !== 'credential';
	if (isInNodeFolder && folderOf(target) !== folderOf(path)) return "another node's folder";
	return whyNotRoom(path, file ?? target);
}

function whyNotRoom(path: string, file: string): string | undefined {
	const from = roomOf(path);
	const to = roomOf(file);
	const rooms = ROOMS[folderOf(path)] ?? [];
	const isElsewhere = folderOf(file) !== folderOf(path);
	if (!from || !to || isElsewhere || rooms.indexOf(to) <= rooms.indexOf(from)) return undefined;
	return `"${to}" stands above "${from}"`;
}

/** Finds files that import each other in a cycle, types included, and lists each cycle once. */
export function circles(sources: ReadonlyMap<string, string>): string[][] {
	const targetsOf = (path: string): string[] =>
		importsOf(sources.get(path) ?? '')
			.filter(({ from }) => from.startsWith('.'))
			.map(({ from }) => posix.join(posix.dirname(path), from))
			.flatMap((target) => [`${target}.ts`, `${target}/index.ts`].filter((file) => sources.has(file)));
	const found: string[][] = [];
	const done = new Set<string>();
	const visit = (path: string, way: readonly string[]): void => {
		const start = way.indexOf(path);
		if (start >= 0) found.push([...way.slice(start), path]);
		if (start >= 0 || done.has(path)) return;
		for (const target of targetsOf(path)) visit(target, [...way, path]);
		done.add(path);
	};
	for (const path of sources.keys()) visit(path, []);
	return found;
}

/** The folder `nodes/<Node>` of a path. */
const folderOf = (path: string) => path.split('/').slice(0, 2).join('/');

function whyNotPackage(path: string, layer: Layer, { from, isTypeOnly }: Import): string | undefined {
	if (isTypeOnly && from === 'n8n-workflow') return undefined;
	const rule = PACKAGES[from];
	if (!rule) return 'a package that is not in the table';
	if (rule.layers.includes(layer) || rule.alsoIn?.includes(path)) return undefined;
	return `${layer} modules import ${from === 'n8n-workflow' ? 'only types from it' : 'no such package'}`;
}
