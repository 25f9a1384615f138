import { isJsonObject, type JsonObject } from '../shared/text/json';
import type { RunMemory } from '../shared/run/retryMemory';

/**
 * - `new`: the agent was not asked for this item
 * - `answered`: it was, and this is what became of it
 * - `unclear`: it was asked and may have run, and no good answer came
 */
export type Recollection =
	| { readonly kind: 'new' }
	| { readonly kind: 'unclear'; readonly said: string }
	| { readonly kind: 'answered'; readonly outcome: JsonObject };

/** What earlier tries of this node run have asked (see `RunMemory`). */
export interface AgentMemory {
	recall(itemIndex: number, fingerprint: string): Recollection;
	answered(itemIndex: number, fingerprint: string, outcome: JsonObject): void;
	/** @param said what was said of it then */
	unclear(itemIndex: number, fingerprint: string, said: string): void;
	/** Nothing failed, so nothing will be tried again. */
	clear(itemCount: number): void;
}

const PART = 'turns';

export const NO_MEMORY: AgentMemory = {
	recall: () => ({ kind: 'new' }),
	answered: () => undefined,
	unclear: () => undefined,
	clear: () => undefined,
};

/** @param memory of this node run */
export function createAgentMemory(memory: RunMemory): AgentMemory {
	return {
		recall: (itemIndex, fingerprint) => {
			const entry = memory.get(PART, itemIndex);
			// An item that was edited since is another one, and asks anew.
			if (!isJsonObject(entry) || entry.fingerprint !== fingerprint) return { kind: 'new' };
			if (isJsonObject(entry.outcome)) return { kind: 'answered', outcome: entry.outcome };
			if (entry.unclear === undefined) return { kind: 'new' };
			return { kind: 'unclear', said: typeof entry.unclear === 'string' ? entry.unclear : '' };
		},
		answered: (itemIndex, fingerprint, outcome) => {
			memory.set(PART, itemIndex, { fingerprint, outcome });
		},
		unclear: (itemIndex, fingerprint, said) => {
			memory.set(PART, itemIndex, { fingerprint, unclear: said });
		},
		clear: (itemCount) => {
			for (let itemIndex = 0; itemIndex < itemCount; itemIndex++) memory.remove(PART, itemIndex);
		},
	};
}
