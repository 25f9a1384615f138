import type { IExecuteFunctions, INodeProperties } from 'n8n-workflow';

import { failInput, ok, type Result } from '../../shared/errors/failure';
import { binaryMeta, refuseMissingFile } from '../../shared/files/inputFile';
import { readChoice } from '../../shared/form/options';
import { bytesToHold, digestBinaryField, openBinaryField } from '../../shared/files/uploadFile';
import { excerpt, objectsIn } from '../../shared/text/json';
import { textOf, textOrNumber } from '../../shared/text/textOf';
import { isWebAddress } from '../../shared/text/webAddress';
import type { WireFile } from '../wire/request';
import type { UploadedMedia } from '../api/upload';
import type { ItemForm } from './inputs';
import type { AgentRun } from './run';

export const inputField: INodeProperties = {
	displayName: 'Input Data Field',
	name: 'binaryPropertyName',
	type: 'string',
	default: 'data',
	hint: 'The name of the input field containing the file',
};

export const filesField: INodeProperties = {
	displayName: 'Files',
	name: 'files',
	type: 'fixedCollection',
	typeOptions: { multipleValues: true },
	placeholder: 'Add file',
	default: {},
	options: [
		{
			displayName: 'File',
			name: 'file',
			values: [
				{
					displayName: 'Source',
					name: 'source',
					type: 'options',
					default: 'binary',
					options: [
						{ name: 'Input File', value: 'binary', description: 'A file of the input item, uploaded first' },
						{ name: 'URL', value: 'url', description: 'A URL that the platform can fetch' },
					],
					description: 'Where the file comes from',
				},
				{ ...inputField, displayOptions: { show: { source: ['binary'] } } },
				{
					displayName: 'URL',
					name: 'url',
					type: 'string',
					default: '',
					placeholder: 'e.g. https://example.com/report.pdf',
					displayOptions: { show: { source: ['url'] } },
					description: "URL of the file, e.g. from the 'Upload Media' operation",
				},
				{
					displayName: 'Name',
					name: 'name',
					type: 'string',
					default: '',
					placeholder: 'e.g. report.pdf',
					displayOptions: { show: { source: ['url'] } },
					description: 'The name that the agent sees',
				},
			],
		},
	],
	description: 'Files for the agent. An uploaded file is available only for a limited time.',
};

/** A row of the form: the URL of a file, or the name of the input field that contains it. */
export type FileRow = WireFile | { readonly field: string };

export function readFileRows({ context, itemIndex }: ItemForm): Result<FileRow[]> {
	const files: FileRow[] = [];
	for (const row of objectsIn(context.getNodeParameter('files.file', itemIndex, []))) {
		const source = readChoice("The 'Source' of a file", ['binary', 'url'], row.source);
		if (!source.ok) return source;
		if (source.value === 'binary') {
			const field = 'binaryPropertyName' in row ? textOrNumber(row.binaryPropertyName) : 'data';
			if (!binaryMeta(context, itemIndex, field)) return refuseMissingFile(context, itemIndex, field);
			files.push({ field });
			continue;
		}
		const url = textOf(row.url).trim();
		if (!isWebAddress(url)) {
			return failInput(
				url ? `"${excerpt(url, 80)}" is not an http or https URL` : 'A file has no URL',
				"Enter a URL that starts with https:// or http://, or set 'Source' to 'Input File'.",
			);
		}
		files.push({ url, name: textOrNumber(row.name), mimeType: '' });
	}
	return ok(files);
}

/**
 * What identifies each file of an item: its URL and name, or its name, type and digest. No file is read into memory as
 * a whole.
 */
export async function digestFiles(
	context: IExecuteFunctions,
	itemIndex: number,
	rows: readonly FileRow[],
): Promise<Result<unknown[]>> {
	return await eachRow<unknown>(rows, async (row) =>
		'field' in row ? await digestBinaryField(context, itemIndex, row.field) : ok([row.url, row.name]),
	);
}

/** Works on one row after the other, up to the first failure. */
async function eachRow<T>(
	rows: readonly FileRow[],
	work: (row: FileRow) => Promise<Result<T>>,
): Promise<Result<T[]>> {
	const done: T[] = [];
	for (const row of rows) {
		const one = await work(row);
		if (!one.ok) return one;
		done.push(one.value);
	}
	return ok(done);
}

/** Uploads the input files of an item, so that the agent can load them (§4.8); files given by URL are passed on. */
export async function uploadFiles(
	context: IExecuteFunctions,
	itemIndex: number,
	rows: readonly FileRow[],
	run: AgentRun,
): Promise<Result<WireFile[]>> {
	return await eachRow<WireFile>(rows, async (row) =>
		'field' in row ? await uploadField(context, itemIndex, row.field, run) : ok(row),
	);
}

export async function uploadField(
	context: IExecuteFunctions,
	itemIndex: number,
	field: string,
	run: AgentRun,
): Promise<Result<UploadedMedia>> {
	const { client, clock, options } = run;
	return await run.memoryBudget.hold(
		async () => await openBinaryField(context, itemIndex, field, options.maxFileBytes),
		async ({ file }) => await client.api.upload(file, clock.now() + options.timeoutMs),
		bytesToHold(context, itemIndex, field),
	);
}

/** The files as a preview shows them; nothing is uploaded. */
export function previewFiles(rows: readonly FileRow[]): WireFile[] {
	return rows.map((row) =>
		'field' in row
			? { url: `<URL of the file in "${row.field}", once it is uploaded>`, name: '', mimeType: '' }
			: row,
	);
}
