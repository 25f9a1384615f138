// The lint capitalises "ID", "URL" and "JSON" everywhere, even in names that must be typed exactly.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { builtInstance, findFiles, packageRoot, readManifest } from './packageFiles';

/** The keys of texts that a person reads in a form. */
const SHOWN = new Set([
	'displayName',
	'name',
	'description',
	'hint',
	'placeholder',
	'default',
	'message',
	'action',
]);

/** Placeholders in the templates of an agent's deployment. */
const PLACEHOLDERS = [
	...['message', 'session', 'files', 'interruptId', 'result', 'stream', 'url', 'name', 'mimeType'],
];

/** The variables of n8n that our forms name; `$token` and `$frame` are the bridge's own. */
const VARIABLES = new Set([
	'jmespath',
	'json',
	'now',
	'parameter',
	'rawParameter',
	'itemIndex',
	'token',
	'frame',
	...PLACEHOLDERS,
]);

/** Names with a capital inside, spelled as in items. */
const FIELDS = new Map(
	findFiles(['nodes/**/__schema__/**/*.json', 'nodes/**/*.ts'])
		.flatMap(
			(path) => readFileSync(join(packageRoot, path), 'utf8').match(/\b[a-z]+(?:[A-Z][a-z]+)+\b/g) ?? [],
		)
		.map((name) => [name.toLowerCase(), name]),
);

/** Finds mistakes in the names and expressions of a text; each is described in one sentence. */
function mistakesIn(text: string): string[] {
	const variables = [...text.matchAll(/\$(\w+)/g)].filter(([, name = '']) => !VARIABLES.has(name));
	const paths = text.match(/\w\.(?:IDs?|URLs?|JSON|API|HTTP)\b/g) ?? [];
	const names = (text.match(/\b[a-z]+[A-Z]\w*/g) ?? []).filter((word) => {
		const name = FIELDS.get(word.toLowerCase());
		return name === undefined ? /(?:ID|URL|JSON)s?$/.test(word) : name !== word;
	});
	return [
		...variables.map(([variable]) => `${variable} is not a variable of n8n`),
		...paths.map((path) => `"…${path}" is not a name in an item`),
		...names.map((name) => `${name} is spelled differently`),
	];
}

/** Collects the texts under these keys. */
function textsIn(value: unknown, keys: ReadonlySet<string>, key = ''): string[] {
	if (typeof value === 'string') return keys.has(key) ? [value] : [];
	if (typeof value !== 'object' || value === null) return [];
	return Object.entries(value).flatMap(([inner, one]) =>
		textsIn(one, keys, Array.isArray(value) ? key : inner),
	);
}

const { nodes, credentials } = readManifest().n8n;

test.each([...nodes, ...credentials])('%s spells fields and variables correctly', (path) => {
	const texts = textsIn(builtInstance(path), SHOWN);
	expect(texts.length).toBeGreaterThan(3);
	expect(texts.flatMap((text) => mistakesIn(text).map((mistake) => `${mistake}: ${text}`))).toEqual([]);
});

test.each(nodes)("%s names its actions without articles, as n8n's own nodes do", (path) => {
	const actions = textsIn(builtInstance(path), new Set(['action']));
	expect(actions.filter((action) => /\b(an?|the)\b/i.test(action))).toEqual([]);
});

test.each([
	['In a chat this is {{ $JSON.chatInput }}', '$JSON is not a variable of n8n'],
	['The session.ID of an earlier output', '"…n.ID" is not a name in an item'],
	['The taskID of the item', 'taskID is spelled differently'],
	['Of an imageURL', 'imageURL is spelled differently'],
])('"%s" is reported', (text, mistake) => {
	expect(mistakesIn(text)).toEqual([mistake]);
});

test.each(nodes)("%s tells n8n's workflow builder when to choose it", (path) => {
	const [hint = ''] = textsIn(builtInstance(path), new Set(['searchHint']));
	expect(hint.length).toBeGreaterThan(50);
	expect(mistakesIn(hint)).toEqual([]);
});
