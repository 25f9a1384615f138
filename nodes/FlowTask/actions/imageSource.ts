import { ok } from '../../shared/errors/failure';
import { fetchInputFile } from '../../shared/files/inputFile';
import { bytesToHold, heldFile, openBinaryField } from '../../shared/files/uploadFile';
import type { ImageInput } from '../tasks/submit';
import type { NodeRun } from './run';

/** Where an image comes from; it is read just before its upload. */
export type ImageSource = Pick<ImageInput, 'load' | 'bytes' | 'url'>;

export function imageAtUrl(
	{ context, options, clients, signal }: NodeRun,
	itemIndex: number,
	url: string,
): ImageSource {
	return {
		url,
		load: async (mostBytes) => {
			const client = clients.of(itemIndex);
			if (!client.ok) return client;
			const most = Math.min(options.maxFileBytes, mostBytes);
			const fetched = await fetchInputFile(context, url, most, client.value.mayFetch, signal);
			return fetched.ok ? ok(heldFile(fetched.value)) : fetched;
		},
	};
}

export function imageInField({ context, options }: NodeRun, itemIndex: number, field: string): ImageSource {
	return {
		load: async () => await openBinaryField(context, itemIndex, field, options.maxFileBytes),
		bytes: bytesToHold(context, itemIndex, field),
	};
}
