import { jsonText, type JsonObject } from '../shared/text/json';

/** An agent that works for hours tells of many steps; these are enough to see what it does. */
const MOST_STEPS = 1_000;
const MOST_CHARS = 1_000_000;

/** The steps of an agent that the events of a stream told of. */
export class StreamSteps {
	private readonly kept: JsonObject[] = [];
	private chars = 0;
	private omitted = 0;

	add(name: string, data: JsonObject): void {
		const chars = jsonText(data)?.length ?? Infinity;
		if (this.kept.length >= MOST_STEPS || this.chars + chars > MOST_CHARS) {
			this.omitted++;
			return;
		}
		this.chars += chars;
		this.kept.push({ name, data });
	}

	/** In their order; the last entry counts those that were too many. */
	all(): JsonObject[] {
		return this.omitted > 0 ? [...this.kept, { omitted: this.omitted }] : [...this.kept];
	}
}
