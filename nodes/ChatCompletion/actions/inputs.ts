import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { badInput, fail, ok, type Failure, type Result } from '../../shared/errors/failure';
import { megabytes, readBinaryField } from '../../shared/files/inputFile';
import { excerpt, jsonText, type Json, type JsonObject } from '../../shared/text/json';
import { isWebAddress } from '../../shared/text/webAddress';
import { readWish } from '../../shared/chat/reasoning';
import { readSchema, type AnswerFormat } from '../format';
import { messagesFromJson, messagesFromRows, type ImagePart, type MessageRow } from '../messages';
import { chatBody } from '../request';
import { readItemOptions, type ItemOptions } from './options';

/** One item's question, read from the form and checked. */
export interface PreparedQuestion {
	readonly body: JsonObject;
	readonly format: AnswerFormat;
	readonly onInvalidJson: 'fail' | 'returnText';
	readonly simplify: boolean;
	readonly options: ItemOptions;
}

/** Formats that vision models commonly read. */
const IMAGE_TYPES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/gif']);

/** Reads and checks what one item asks; nothing is sent yet. */
export async function prepareQuestion(
	context: IExecuteFunctions,
	itemIndex: number,
): Promise<Result<PreparedQuestion>> {
	const options = readItemOptions(context, itemIndex);
	if (!options.ok) return options;
	const format = readFormat(context, itemIndex);
	if (!format.ok) return format;
	const messages = await readMessages(context, itemIndex, options.value.maxImageBytes);
	if (!messages.ok) return messages;
	const { sampling, extraBody, includeUsage, reasoningSplit } = options.value;
	const body = chatBody({
		messages: messages.value,
		reasoning: readWish(
			(name, fallback) => context.getNodeParameter(name, itemIndex, fallback),
			reasoningSplit,
		),
		stream: context.getNodeParameter('stream', itemIndex) !== false,
		includeUsage,
		format: format.value,
		sampling,
		extraBody,
	});
	if (!body.ok) return body;
	return ok({
		body: body.value,
		format: format.value,
		onInvalidJson:
			context.getNodeParameter('onInvalidJson', itemIndex, 'fail') === 'returnText' ? 'returnText' : 'fail',
		simplify: context.getNodeParameter('simplify', itemIndex) !== false,
		options: options.value,
	});
}

function readFormat(context: IExecuteFunctions, itemIndex: number): Result<AnswerFormat> {
	const format: unknown = context.getNodeParameter('responseFormat', itemIndex);
	if (format === 'jsonSchema') return readSchema(context.getNodeParameter('jsonSchema', itemIndex));
	return ok({ kind: format === 'jsonObject' ? 'jsonObject' : 'text' });
}

async function readMessages(
	context: IExecuteFunctions,
	itemIndex: number,
	maxImageBytes: number,
): Promise<Result<Json[]>> {
	if (context.getNodeParameter('messagesMode', itemIndex) === 'json') {
		return messagesFromJson(context.getNodeParameter('messagesJson', itemIndex));
	}
	const given: unknown = context.getNodeParameter('messages.message', itemIndex, []);
	const rows: MessageRow[] = [];
	for (const [index, row] of rowsIn(given).entries()) {
		const images: ImagePart[] = [];
		for (const image of rowsIn(nested(row.images, 'image'))) {
			const parts = await readImages(context, itemIndex, image, maxImageBytes);
			if (!parts.ok) return fail(inMessage(parts.failure, index));
			images.push(...parts.value);
		}
		rows.push({ role: textOf(row.role) || 'user', content: contentOf(row), images });
	}
	return messagesFromRows(rows);
}

function inMessage(failure: Failure, index: number): Failure {
	return { ...failure, message: `Message ${index + 1}: ${failure.message}` };
}

/** The rows of a fixedCollection; an expression can make anything of one. */
function rowsIn(value: unknown): IDataObject[] {
	const rows: unknown[] = Array.isArray(value) ? value : [];
	return rows.filter((row): row is IDataObject => typeof row === 'object' && row !== null);
}

function nested(value: unknown, key: string): unknown {
	return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}

/** A row without the field is as empty as the form's default; a field that holds nothing is an expression's doing. */
function contentOf(row: IDataObject): string | null {
	const isMissing = 'content' in row && (row.content === undefined || row.content === null);
	return isMissing ? null : textOf(row.content);
}

/** What an expression gave in place of text is said as JSON, so that an object is not "[object Object]". */
function textOf(value: unknown): string {
	if (typeof value === 'string') return value;
	return value === undefined || value === null ? '' : (jsonText(value) ?? '');
}

async function readImages(
	context: IExecuteFunctions,
	itemIndex: number,
	row: IDataObject,
	maxBytes: number,
): Promise<Result<ImagePart[]>> {
	const detail = textOf(row.detail);
	if (row.source === 'url') {
		const url = checkImageUrl(textOf(row.url).trim(), maxBytes);
		return url.ok ? ok([{ url: url.value, detail }]) : url;
	}
	const parts: ImagePart[] = [];
	const fields = (textOf(row.binaryPropertyName) || 'data').split(',').map((field) => field.trim());
	for (const field of fields.filter(Boolean)) {
		const file = await readBinaryField(context, itemIndex, field, maxBytes, 'Max Image Size (MB)');
		if (!file.ok) return file;
		const { bytes, mimeType } = file.value;
		if (!IMAGE_TYPES.has(mimeType))
			return fail(noImage(`The file in field "${excerpt(field, 60)}"`, mimeType));
		const base64 = Buffer.from(bytes).toString('base64');
		parts.push({ url: `data:${mimeType};base64,${base64}`, detail });
	}
	return ok(parts);
}

function checkImageUrl(url: string, maxBytes: number): Result<string> {
	if (isWebAddress(url)) return ok(url);
	const inline = /^data:([^;,]+);base64,/i.exec(url);
	if (!inline) {
		return fail(
			badInput(
				url ? `"${excerpt(url, 80)}" is not a web address of an image` : 'An image has no URL',
				'Enter a URL that starts with https:// or http://, or choose "Input File" as its source.',
			),
		);
	}
	const mimeType = (inline[1] ?? '').toLowerCase();
	if (!IMAGE_TYPES.has(mimeType)) return fail(noImage('An image', mimeType));
	if ((url.length - inline[0].length) * 0.75 > maxBytes) {
		return fail(
			badInput(
				`An image is larger than ${megabytes(maxBytes)} MB`,
				'Make it smaller, or raise "Max Image Size (MB)" in the node\'s options.',
			),
		);
	}
	return ok(url);
}

function noImage(what: string, mimeType: string): Failure {
	return badInput(
		`${what} is ${mimeType}, which models do not take as an image`,
		'Send PNG, JPEG, WebP or GIF. The Edit Image node converts others.',
	);
}
