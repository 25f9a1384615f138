/** How a task ends, if it does. */
export type Outcome =
	| { readonly kind: 'succeed' }
	| { readonly kind: 'fail'; readonly errMsg: string }
	| { readonly kind: 'deny'; readonly errMsg: string }
	/** The task is generating forever, at 99. */
	| { readonly kind: 'stick' };

export interface Wishes {
	readonly outcome?: Outcome;
	readonly runMs?: number;
}

const WISH = /\[(fail|takes)(?::\s*([^\]]*))?\]/i;

/** Reads the outcome that a prompt orders: `[fail: why]` or `[takes:2000]`. */
export function wishesIn(texts: readonly string[]): Wishes {
	const [, word, detail = ''] = WISH.exec(texts.join('\n')) ?? [];
	switch (word?.toLowerCase()) {
		case 'fail':
			return { outcome: { kind: 'fail', errMsg: detail || 'The sampler ran out of memory' } };
		case 'takes':
			return { runMs: Math.max(0, Number.parseFloat(detail) || 0) };
		default:
			return {};
	}
}
