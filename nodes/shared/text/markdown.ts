import { isWebAddress } from './webAddress';

/** What can begin a link, an image, HTML, code, an entity, emphasis, a table or a heading anywhere in a line. */
const SPECIAL_CHARS = /[\\`*_[\]<>~|&#!]/g;
/** What a chat turns into a link by itself: an address, or a name that begins with "www." */
const AUTOLINKS = /(?::(?=\/\/)|(?<=\bwww)\.|@)/gi;
const CONTROLS = /[\p{Cc}\p{Zl}\p{Zp}\s]+/gu;

/** Text from outside as Markdown that shows exactly this text in one line: no link, no image, no HTML. */
export function escapeMarkdown(text: string): string {
	return text.replace(CONTROLS, ' ').replace(SPECIAL_CHARS, '\\$&').replace(AUTOLINKS, '\\$&');
}

/** A link, or an image that is shown at once; only the escaped name where the address is not one of the web. */
export function markdownLink(name: string, url: string, isImage: boolean): string {
	const label = escapeMarkdown(name);
	if (!isWebAddress(url)) return label;
	return `${isImage ? '!' : ''}[${label}](${targetOf(url)})`;
}

function targetOf(url: string): string {
	const target = url
		.replace(/[<>\\`"\s\p{Cc}]/gu, encodeURIComponent)
		// Markdown reads entities in addresses too.
		.replace(/&(?=#?[a-z0-9]+;)/gi, '&amp;');
	// In angle brackets an address may hold anything that would end it otherwise.
	return /[()]/.test(target) || target !== url ? `<${target}>` : target;
}
