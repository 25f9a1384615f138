import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { fail, failInput, ok, NOT_SENT, type Result } from '../../shared/errors/failure';
import { noMediaIn } from '../../shared/files/fileType';
import { megabytes, readBinaryField } from '../../shared/files/inputFile';
import { refuseNoMedia } from '../../shared/files/uploadFile';
import { excerpt, member, objectsIn, type Json, type JsonObject } from '../../shared/text/json';
import { booleanOf, textOrJson } from '../../shared/text/textOf';
import { isWebAddress } from '../../shared/text/webAddress';
import { readWish } from '../../shared/chat/reasoning';
import { readChoice } from '../../shared/form/options';
import { readSchema, type AnswerFormat } from '../json/schema';
import {
	messagesFromJson,
	messagesFromRows,
	readToolCalls,
	readToolResults,
	type MessageRow,
} from '../request/messages';
import { chatBody } from '../request/body';
import { toolFields } from '../request/tools';
import { readItemOptions } from './options';

/** Formats that most vision models accept. */
const IMAGE_TYPES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/gif']);

/** Reads and checks the question of one item; nothing is sent yet. */
export async function prepareQuestion(context: IExecuteFunctions, itemIndex: number) {
	const options = readItemOptions(context, itemIndex);
	if (!options.ok) return options;
	const format = readFormat(context, itemIndex);
	if (!format.ok) return format;
	const messages = await readMessages(context, itemIndex, options.value.maxImageBytes);
	if (!messages.ok) return messages;
	const toolRows = objectsIn(context.getNodeParameter('options.tools.tool', itemIndex, []));
	const tools = toolFields(toolRows, options.value.toolChoice, options.value.toolToCall);
	if (!tools.ok) return tools;
	const onInvalidJson = readChoice(
		"'If the Answer Is Invalid'",
		['fail', 'returnText'],
		context.getNodeParameter('onInvalidJson', itemIndex, 'fail'),
	);
	if (!onInvalidJson.ok) return onInvalidJson;
	const { sampling, extraBody, includeUsage, reasoningSplit } = options.value;
	const read = (name: string, fallback: string): unknown =>
		context.getNodeParameter(name, itemIndex, fallback);
	const reasoning = readWish(read, reasoningSplit);
	if (!reasoning.ok) return reasoning;
	const body = chatBody({
		messages: messages.value,
		reasoning: reasoning.value,
		stream: booleanOf(context.getNodeParameter('options.stream', itemIndex, true)) !== false,
		includeUsage,
		format: format.value,
		sampling,
		tools: tools.value,
		extraBody,
	});
	if (!body.ok) return body;
	return ok({
		body: body.value,
		format: format.value,
		reasoning: reasoning.value.choice,
		onInvalidJson: onInvalidJson.value,
		simplify: booleanOf(context.getNodeParameter('options.simplify', itemIndex, true)) !== false,
		options: options.value,
	});
}

function readFormat(context: IExecuteFunctions, itemIndex: number): Result<AnswerFormat> {
	const format = readChoice(
		"'Response Format'",
		['text', 'jsonObject', 'jsonSchema'],
		context.getNodeParameter('responseFormat', itemIndex),
	);
	if (!format.ok) return format;
	const { value: kind } = format;
	return kind === 'jsonSchema' ? readSchema(context.getNodeParameter('jsonSchema', itemIndex)) : ok({ kind });
}

async function readMessages(
	context: IExecuteFunctions,
	itemIndex: number,
	maxImageBytes: number,
): Promise<Result<Json[]>> {
	const json = 'options.messagesJson';
	if (context.getNodeParameter(json, itemIndex, '', { rawExpressions: true }) !== '') {
		return messagesFromJson(context.getNodeParameter(json, itemIndex));
	}
	const readFile: ReadFile = async (field) =>
		await readBinaryField(context, itemIndex, field, maxImageBytes, 'Max Image Size (MB)');
	const entered = objectsIn(context.getNodeParameter('messages.message', itemIndex, []));
	const rows: MessageRow[] = [];
	for (const [index, row] of entered.entries()) {
		const images = await readImages(row, maxImageBytes, readFile);
		if (!images.ok) {
			const { failure } = images;
			return fail({ ...failure, message: `Message ${index + 1}: ${failure.message}` });
		}
		const role = 'role' in row ? sentText(row.role) : 'user';
		const ofTools = readToolPart(row, role);
		if (!ofTools.ok) return failInput(`Message ${index + 1} (${role}) ${ofTools.failure}`, TOOL_ADVICE);
		rows.push({ role, content: contentOf(row), images: images.value, ...ofTools.value });
	}
	return messagesFromRows(rows);
}

const TOOL_ADVICE = `Set 'Tool Calls' to the field toolCalls of the answer that made them, 'Call ID' to the ID of one of them, and 'Content' to its result. Check the expressions. ${NOT_SENT}`;

/** The tool fields of a row, except those that the form hides for its role. */
function readToolPart(row: IDataObject, role: string) {
	if (role !== 'tool' && role !== 'assistant') return ok({});
	const field = role === 'tool' ? 'toolCallId' : 'toolCalls';
	const isLost = field in row && (row[field] ?? null) === null;
	if (isLost)
		return fail(`has no "${role === 'tool' ? 'Call ID' : 'Tool Calls'}": the expression returned nothing`);
	if (role === 'tool') {
		const results = readToolResults(row.toolCallId, row.content);
		return results.ok ? ok({ results: results.value, content: '' }) : results;
	}
	const calls = readToolCalls(row.toolCalls);
	if (!calls.ok) return fail(`has 'Tool Calls' that cannot be sent: the field ${calls.failure}`);
	// An answer that calls tools often has no text.
	return ok({ toolCalls: calls.value, ...(calls.value.length > 0 && !row.content && { content: '' }) });
}

/** The text of a message, empty if the field is missing or cleared; `null` if an expression returned nothing. */
function contentOf(row: IDataObject): string | null {
	const text = sentText(row.content);
	return text === '' && 'content' in row && row.content !== '' ? null : text;
}

/** The text of a field. An object from an expression becomes JSON instead of "[object Object]". */
function sentText(value: unknown): string {
	return textOrJson(value) ?? '';
}

type ReadFile = (field: string) => ReturnType<typeof readBinaryField>;

async function readImages(
	message: IDataObject,
	maxBytes: number,
	readFile: ReadFile,
): Promise<Result<JsonObject[]>> {
	const images: JsonObject[] = [];
	for (const row of objectsIn(member(message.images, 'image'))) {
		const source = readChoice("The 'Source' of an image", ['binary', 'url'], row.source);
		if (!source.ok) return source;
		const fields = 'binaryPropertyName' in row ? sentText(row.binaryPropertyName) : 'data';
		const urls =
			source.value === 'url'
				? checkImageUrl(sentText(row.url).trim(), maxBytes)
				: await readImageFields(fields, readFile);
		if (!urls.ok) return urls;
		const detail = sentText(row.detail);
		for (const url of urls.value) {
			images.push({ type: 'image_url', image_url: { url, ...(detail && { detail }) } });
		}
	}
	return ok(images);
}

/** @param fields names, separated by commas */
async function readImageFields(fields: string, readFile: ReadFile): Promise<Result<string[]>> {
	const urls: string[] = [];
	const names = fields
		.split(',')
		.map((field) => field.trim())
		.filter(Boolean);
	// An empty name is read, too, so that the item fails instead of being sent without its image.
	for (const name of names.length > 0 ? names : ['']) {
		const file = await readFile(name);
		if (!file.ok) return file;
		const { bytes, mimeType, fileName } = file.value;
		if (!IMAGE_TYPES.has(mimeType)) {
			return refuseType(`The file in field "${excerpt(name, 60)}"`, mimeType);
		}
		const found = noMediaIn(bytes, mimeType, fileName);
		if (found !== undefined) return refuseNoMedia(found, name);
		urls.push(`data:${mimeType};base64,${Buffer.from(bytes).toString('base64')}`);
	}
	return ok(urls);
}

function checkImageUrl(url: string, maxBytes: number): Result<string[]> {
	if (isWebAddress(url)) return ok([url]);
	const inline = /^data:([^;,]+);base64,/i.exec(url);
	if (!inline) {
		return failInput(
			url ? `"${excerpt(url, 80)}" is not an http or https URL` : 'An image has no URL',
			"Enter a URL that starts with https:// or http://, or set 'Source' to 'Input File'.",
		);
	}
	const [head, said = ''] = inline;
	// Many programs call JPEG so, which some models refuse.
	const type = said.toLowerCase().replace(/^image\/jpg$/, 'image/jpeg');
	if (!IMAGE_TYPES.has(type)) return refuseType('An image', type);
	if ((url.length - head.length) * 0.75 > maxBytes) {
		return failInput(
			`An image is larger than ${megabytes(maxBytes)} MB`,
			"Make it smaller, or raise 'Max Image Size (MB)' under 'Cost and Speed'.",
		);
	}
	return ok([`data:${type};base64,${url.slice(head.length)}`]);
}

function refuseType(what: string, mimeType: string) {
	return failInput(
		`${what} is ${mimeType}, which models do not accept as an image`,
		'Send PNG, JPEG, WebP or GIF. The Edit Image node can convert other formats.',
	);
}
