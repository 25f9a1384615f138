import { isJsonObject, type Json } from '../shared/text/json';

/** The places where the reasoning of a model can stand (§2.6); servers use one or several. */
export type ReasoningPlace = 'reasoning_content' | 'reasoning' | 'reasoning_details' | 'parts' | 'tags';

/** Gathers the reasoning of one answer, whichever places it comes in. */
export interface ReasoningCollector {
	/** @returns what of it is new to a reader who follows the stream */
	add(place: ReasoningPlace, text: string): string;
	/** The whole reasoning; what came in several places is kept once. */
	text(): string;
	/** What is kept, in characters. */
	readonly size: number;
}

export function createReasoningCollector(): ReasoningCollector {
	const texts = new Map<ReasoningPlace, string>();
	let isCumulative = false;
	let size = 0;

	/** The inner shape of `reasoning_details` is not shown (§2.6), and some servers repeat in it all that came before. */
	const newsIn = (place: ReasoningPlace, known: string, text: string): string => {
		if (place !== 'reasoning_details' || known === '') return text;
		if (isCumulative && text === known) return '';
		if (text.length <= known.length || !text.startsWith(known)) return text;
		isCumulative = true;
		return text.slice(known.length);
	};

	return {
		add: (place, text) => {
			if (!text) return '';
			const known = texts.get(place) ?? '';
			const news = newsIn(place, known, text);
			texts.set(place, known + news);
			size += news.length;
			// A reader is shown one place only: the others mostly say the same.
			const [leading] = texts.keys();
			return place === leading ? news : '';
		},
		get size() {
			return size;
		},
		text: () => distinct([...texts.values()]).join('\n\n'),
	};
}

/** Leaves out texts that another one holds. */
function distinct(texts: readonly string[]): string[] {
	const all = texts
		.map((text) => ({ text: text.trim(), letters: text.replace(/\s+/g, '') }))
		.filter(({ letters }) => letters !== '');
	return all
		.filter(
			({ letters }, index) =>
				!all.some(
					(other, place) =>
						place !== index &&
						other.letters.includes(letters) &&
						(other.letters.length > letters.length || place < index),
				),
		)
		.map(({ text }) => text);
}

/** Where a text can stand within an object of an unknown shape, the likeliest first. */
const TEXT_KEYS = ['text', 'thinking', 'reasoning', 'reasoning_content', 'content', 'summary', 'value'];
const DEEPEST = 6;

/** All text in a value of an unknown shape: a string, a list of `{ text }`, and the like. */
export function textIn(value: Json | undefined, depth = 0): string {
	if (typeof value === 'string') return value;
	if (depth > DEEPEST || value === undefined) return '';
	if (Array.isArray(value)) return value.map((part) => textIn(part, depth + 1)).join('');
	if (!isJsonObject(value)) return '';
	for (const key of TEXT_KEYS) {
		const text = textIn(value[key], depth + 1);
		if (text) return text;
	}
	return '';
}
