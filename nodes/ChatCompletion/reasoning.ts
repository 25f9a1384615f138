/** Where a model's reasoning can be (§2.6); servers use one or several of these. */
export type ReasoningPlace = 'reasoning_content' | 'reasoning' | 'reasoning_details' | 'parts' | 'tags';

/** Collects the reasoning of one answer from all places. */
export class ReasoningCollector {
	private readonly texts = new Map<ReasoningPlace, string>();
	private isCumulative = false;
	/** In characters. */
	size = 0;

	/** @returns what is new to someone who follows the stream */
	add(place: ReasoningPlace, text: string): string {
		if (!text) return '';
		const known = this.texts.get(place) ?? '';
		const news = place === 'reasoning_details' ? this.newsIn(known, text) : text;
		this.texts.set(place, known + news);
		this.size += news.length;
		// The stream shows only one place, because the others usually repeat it.
		const [leading] = this.texts.keys();
		return place === leading ? news : '';
	}

	/** The whole reasoning; what came in several places is kept once. */
	text(): string {
		return distinct([...this.texts.values()]).join('\n\n');
	}

	/** The shape of `reasoning_details` is not documented (§2.6), and some servers repeat everything before it. */
	private newsIn(known: string, text: string): string {
		if (this.isCumulative && text === known) return '';
		if (known === '' || text.length <= known.length || !text.startsWith(known)) return text;
		this.isCumulative = true;
		return text.slice(known.length);
	}
}

/** Leaves out blank texts, and those that another one contains. */
function distinct(texts: readonly string[]): string[] {
	const letters = texts.map((text) => text.replace(/\s+/g, ''));
	return texts
		.filter((_, index) => {
			const own = letters[index] ?? '';
			const isContained = letters.some(
				(other, at) => at !== index && other.includes(own) && (other.length > own.length || at < index),
			);
			return own !== '' && !isContained;
		})
		.map((text) => text.trim());
}
