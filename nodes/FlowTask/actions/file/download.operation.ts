import pLimit from 'p-limit';
import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { failItem } from '../../../shared/errors/nodeError';
import { failInput, ok, type Result } from '../../../shared/errors/failure';
import { parseJson } from '../../../shared/text/json';
import { decodeLink } from '../../api/taskInfo';
import { DOWNLOADS_AT_ONCE } from '../../tasks/resultFiles';
import { namesFor, type NamedLink } from '../../tasks/resultLinks';
import { readItem } from '../../../shared/errors/expressionError';
import { inNodeRun, type NodeRun } from '../run';
import type { Operation } from '../../../shared/run/operation';
import { optionsCollection } from '../../../shared/form/options';
import { TASK_OPTIONS } from '../options';
import { textParameter } from '../enteredText';
import { outputFieldName } from '../task/outputOptions';

/** Downloads result links (§2.4) without sending the key. */
export const download: Operation = {
	value: 'download',
	name: 'Download',
	description: 'Download result files by their links',
	action: 'Download files',
	fields: [
		{
			displayName: 'File Links',
			name: 'fileUrls',
			type: 'string',
			required: true,
			default: '={{ [$json.url, $json.otherUrls] }}',
			placeholder: 'e.g. https://files.example.com/a.png',
			description: 'One link, several separated by line breaks, or an expression that returns an array',
		},
		outputFieldName,
		optionsCollection(TASK_OPTIONS, ['maxFileSizeMb']),
	],
	async execute(context) {
		return await inNodeRun(context, downloadItems);
	},
};

interface WantedFile extends NamedLink {
	readonly field: string;
}

async function downloadItems(run: NodeRun): Promise<INodeExecutionData[][]> {
	const { context } = run;
	const limit = pLimit(DOWNLOADS_AT_ONCE);
	const getItem = async (itemIndex: number, wanted: Result<WantedFile>): Promise<INodeExecutionData> => {
		const item = wanted.ok ? await downloadItem(run, itemIndex, wanted.value) : wanted;
		if (item.ok) return item.value;
		if (!context.continueOnFail()) run.ending.abort();
		return failItem(context, item.failure, itemIndex);
	};
	const items = context.getInputData().flatMap((_, itemIndex, { length }) => {
		const read = readItem(() => readWanted(context, itemIndex, length));
		const wanted = read.ok ? read.value.map((one) => ok(one)) : [read];
		return wanted.map(async (one) => await limit(async () => await getItem(itemIndex, one)));
	});
	return [await Promise.all(items)];
}

async function downloadItem(
	run: NodeRun,
	itemIndex: number,
	{ link: { index, url }, field, ...names }: WantedFile,
): Promise<Result<INodeExecutionData>> {
	const stored = await run.download({ url, ...names, mayFetch: run.client.mayFetch });
	if (!stored.ok) return stored;
	const { binary, bytes } = stored.value;
	const { fileName: name = '', mimeType } = binary;
	return ok({
		json: { file: { index, name, mimeType, bytes, url } },
		binary: { [field]: binary },
		pairedItem: { item: itemIndex },
	});
}

function readWanted(context: IExecuteFunctions, itemIndex: number, itemCount: number): Result<WantedFile[]> {
	const urls = collectLinks(context.getNodeParameter('fileUrls', itemIndex, ''));
	const field = textParameter(context, 'binaryPropertyName', itemIndex) || 'data';
	if (urls.length === 0) {
		return failInput(
			"'File Links' is empty",
			'Enter a link, or an expression that returns links, e.g. {{ $json.url }}.',
		);
	}
	const links = urls.map((url, index) => ({ nodeId: null, index, url }));
	const named = namesFor(links, { mark: itemCount > 1 ? String(itemIndex + 1) : undefined });
	return ok(named.map((one) => ({ ...one, field })));
}

/**
 * Collects links, in which file names may have spaces, from text (separated by white space), JSON, an array, or the map
 * of output nodes to links (§2.4).
 */
function collectLinks(value: unknown): string[] {
	if (Array.isArray(value)) return value.flatMap(collectLinks);
	if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(collectLinks);
	if (typeof value !== 'string') return [];
	const text = value.trim();
	const parsed = /^[[{]/.test(text) ? parseJson(text) : undefined;
	if (parsed !== undefined && typeof parsed === 'object') return collectLinks(parsed);
	const links = text
		.split(/[\r\n]+|(?<!\s)(?:\s*[,;])?\s+(?=https?(?::|%3a))/i)
		.filter((link) => link.trim());
	return links.map(decodeLink);
}
