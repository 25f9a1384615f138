/** Where a server may put a model's reasoning (§2.6); it may use several of these places. */
type ReasoningSource = 'reasoning_content' | 'reasoning' | 'reasoning_details' | 'parts' | 'tags';

/** Collects the reasoning of one answer from all sources. */
export class ReasoningCollector {
	private readonly texts = new Map<ReasoningSource, string>();
	/** The sources that send all their text again with each piece. */
	private readonly growing = new Set<ReasoningSource>();
	/** The number of characters of the reasoning. */
	size = 0;

	/** @returns what to add to the stream; empty if the stream shows another source */
	add(source: ReasoningSource, text: string): string {
		if (!text) return '';
		const known = this.texts.get(source) ?? '';
		const news = source === 'tags' ? text : this.newsIn(source, known, text);
		this.texts.set(source, known + news);
		this.size += news.length;
		// The stream shows only one source, because the others usually repeat it.
		const [leading] = this.texts.keys();
		return source === leading ? news : '';
	}

	/** The whole reasoning, without repetitions between sources. */
	text(): string {
		return distinct([...this.texts.values()]).join('\n\n');
	}

	/** What `text` adds to `known`: some servers send all text so far with each piece. */
	private newsIn(source: ReasoningSource, known: string, text: string): string {
		if (this.growing.has(source) && text === known) return '';
		const mayGrow = text.length > known.length && known.trim() !== '';
		if (!mayGrow || !text.startsWith(known)) return text;
		this.growing.add(source);
		return text.slice(known.length);
	}
}

/** A text is searched in full if that takes at most this many comparisons of characters. */
const MOST_COMPARISONS = 1_000_000_000;

/** Whether a text contains another one; of long texts, whether it starts or ends with it, which takes linear time. */
function contains(text: string, part: string): boolean {
	if (text.length * part.length <= MOST_COMPARISONS) return text.includes(part);
	return text.startsWith(part) || text.endsWith(part);
}

/** Leaves out blank texts, and texts that another text contains, white space aside. */
function distinct(texts: readonly string[]): string[] {
	const letters = texts.map((text) => text.replace(/\s+/g, ''));
	return texts
		.filter((_, index) => {
			const own = letters[index] ?? '';
			const isContained = letters.some(
				(other, at) => at !== index && contains(other, own) && (other.length > own.length || at < index),
			);
			return own !== '' && !isContained;
		})
		.map((text) => text.trim());
}
