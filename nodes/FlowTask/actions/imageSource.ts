import { failInput, ok, type Result } from '../../shared/errors/failure';
import { binaryMeta, fetchInputFile, refuseMissingFile } from '../../shared/files/inputFile';
import { bytesToHold, heldFile, onlyMedia, openBinaryField } from '../../shared/files/uploadFile';
import { excerpt } from '../../shared/text/json';
import { isWebAddress } from '../../shared/text/webAddress';
import type { ImageInput } from '../tasks/submit';
import type { NodeRun } from './run';

/** Where an image comes from; it is read just before its upload. */
export type ImageSource = Pick<ImageInput, 'load' | 'bytes' | 'url'>;

/** @param wrong says what is wrong with a URL, which is shortened and may be empty */
export function imageAtUrl(
	{ context, options, client, signal }: NodeRun,
	url: string,
	wrong: (url: string) => string,
): Result<ImageSource> {
	if (!isWebAddress(url)) {
		return failInput(wrong(excerpt(url, 60)), 'Enter a URL that starts with http:// or https://.');
	}
	return ok({
		url,
		load: async (mostBytes: number) => {
			const most = Math.min(options.maxFileBytes, mostBytes);
			const fetched = await fetchInputFile(context, url, most, client.mayFetch, signal);
			return fetched.ok ? ok(heldFile(fetched.value)) : fetched;
		},
	});
}

/** Checks the file at once, so that a missing one is reported before anything is sent for its item. */
export function imageInField(
	{ context, options }: NodeRun,
	itemIndex: number,
	field: string,
): Result<ImageSource> {
	if (!binaryMeta(context, itemIndex, field)) return refuseMissingFile(context, itemIndex, field);
	return ok({
		load: async () => {
			const opened = await openBinaryField(context, itemIndex, field, options.maxFileBytes);
			return opened.ok ? onlyMedia(opened.value, field) : opened;
		},
		bytes: bytesToHold(context, itemIndex, field),
	});
}
