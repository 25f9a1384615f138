import pLimit from 'p-limit';
import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { failItem } from '../../../shared/errors/nodeError';
import { badInput, fail, ok, type Result } from '../../../shared/errors/failure';
import { parseJson } from '../../../shared/text/json';
import type { StoredFile } from '../../../shared/files/download';
import { decodeLink } from '../../tasks/taskInfo';
import { namesFor, type FileLink } from '../../tasks/links';
import { readItem } from '../../../shared/errors/expressionError';
import { inNodeRun, type NodeRun } from '../run';
import type { Operation } from '../../../shared/form/operation';
import { optionsWith } from '../options';
import { textParameter } from '../task/inputs';

/** Turns result links into files (§2.4), without any credential on the way. */
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
			default: '={{ $json.finalFiles }}',
			placeholder: 'e.g. https://files.example.com/a.png',
			description: 'One link or several, separated by line breaks, or an expression that gives a list',
		},
		{
			displayName: 'Put Output File in Field',
			name: 'binaryPropertyName',
			type: 'string',
			default: 'data',
			hint: 'The name of the output binary field to put the file in',
		},
		optionsWith(['maxFileSizeMb']),
	],
	async execute(context) {
		return await inNodeRun(context, async (run) => await downloadItems(context, run));
	},
};

const DOWNLOADS_AT_ONCE = 8;

/** One file to get, or why an item has none. */
interface Wanted {
	readonly itemIndex: number;
	readonly link: Result<{ readonly link: FileLink; readonly fileName: string; readonly field: string }>;
}

async function downloadItems(context: IExecuteFunctions, run: NodeRun): Promise<INodeExecutionData[][]> {
	const limit = pLimit(DOWNLOADS_AT_ONCE);
	const wanted = context
		.getInputData()
		.flatMap((_, itemIndex, { length }) => readWanted(context, itemIndex, length));
	const items = await Promise.all(
		wanted.map(
			async ({ itemIndex, link }) =>
				await limit(async (): Promise<INodeExecutionData> => {
					const stored = link.ok
						? await run.download({ url: link.value.link.url, fileName: link.value.fileName })
						: link;
					if (link.ok && stored.ok) return fileItem(itemIndex, link.value, stored.value);
					const failure = stored.ok ? NO_LINKS : stored.failure;
					if (!context.continueOnFail()) run.ending.abort();
					return failItem(context, failure, itemIndex);
				}),
		),
	);
	return [items];
}

function fileItem(
	itemIndex: number,
	{ link, field }: { readonly link: FileLink; readonly field: string },
	stored: StoredFile,
): INodeExecutionData {
	const { fileName = '', mimeType } = stored.binary;
	return {
		json: { file: { index: link.index, name: fileName, mimeType, bytes: stored.bytes, url: link.url } },
		binary: { [field]: stored.binary },
		pairedItem: { item: itemIndex },
	};
}

const NO_LINKS = badInput(
	'"File Links" is empty',
	'Enter a link, or an expression that gives one or a list, e.g. {{ $json.finalFiles }}.',
);

function readWanted(context: IExecuteFunctions, itemIndex: number, itemCount: number): Wanted[] {
	const read = readItem(() =>
		ok({
			urls: collectLinks(context.getNodeParameter('fileUrls', itemIndex, '')),
			field: textParameter(context, 'binaryPropertyName', itemIndex) || 'data',
		}),
	);
	if (!read.ok) return [{ itemIndex, link: read }];
	const { urls, field } = read.value;
	if (urls.length === 0) return [{ itemIndex, link: fail(NO_LINKS) }];
	const links = urls.map((url, index) => ({ nodeId: null, index, url }));
	const names = namesFor(links, itemCount > 1 ? itemIndex + 1 : undefined);
	return links.map((link, index) => ({
		itemIndex,
		link: ok({ link, fileName: names[index] ?? 'file', field }),
	}));
}

/** Links from text with line breaks, a JSON list, a list, or the map of output nodes to links (§2.4). */
function collectLinks(value: unknown): string[] {
	if (Array.isArray(value)) return value.flatMap(collectLinks);
	if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(collectLinks);
	if (typeof value !== 'string') return [];
	const text = value.trim();
	const parsed = /^[[{]/.test(text) ? parseJson(text) : undefined;
	if (parsed !== undefined && typeof parsed === 'object') return collectLinks(parsed);
	return text.split(/\s+/).filter(Boolean).map(decodeLink);
}
