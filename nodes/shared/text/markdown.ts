import { isWebAddress } from './webAddress';

/** Characters that can start a link, an image, HTML, code, an entity, emphasis, a table or a heading. */
const SPECIAL_CHARS = /[\\`*_[\]<>~|&#!]/g;
/** Characters that make a chat turn text into a link: in URLs, email addresses and names that begin with "www." */
const AUTOLINKS = /(?::(?=\/\/)|(?<=\bwww)\.|@)/gi;
const CONTROLS = /[\p{Cc}\p{Zl}\p{Zp}\s]+/gu;

/** Markdown that shows exactly the given text in one line: no link, no image, no HTML. */
export function escapeMarkdown(text: string): string {
	return text.replace(CONTROLS, ' ').replace(SPECIAL_CHARS, '\\$&').replace(AUTOLINKS, '\\$&');
}

/** A link, or an embedded image; only the escaped name if the URL is not an HTTP URL. */
export function markdownLink(name: string, url: string, isImage: boolean): string {
	const label = escapeMarkdown(name);
	if (!isWebAddress(url)) return label;
	return `${isImage ? '!' : ''}[${label}](${targetOf(url)})`;
}

function targetOf(url: string): string {
	const target = url
		.replace(/[<>\\`"\s\p{Cc}]/gu, encodeURIComponent)
		// Markdown reads entities in URLs, too.
		.replace(/&(?=#?[a-z0-9]+;)/gi, '&amp;');
	// Angle brackets allow characters that would otherwise end the URL.
	return /[()]/.test(target) || target !== url ? `<${target}>` : target;
}
