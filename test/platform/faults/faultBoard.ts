import type { BookKeeper } from '../books';
import { pick, seededRandom } from '../randomness';
import type { Random } from '../randomness';
import { CAMPAIGN_KINDS, FAULT_TARGETS, phaseOf, suits } from './rules';
import type { Campaign, FaultKind, FaultPhase, FaultRule, FaultTarget } from './rules';

export interface FaultHandle {
	readonly id: number;
	remove(): void;
}

/** Orders faults. The same seed and the same requests in the same order cause the same faults. */
export interface FaultControl {
	/** Adds a rule. Throws if the kind does not suit the target. */
	add(rule: FaultRule): FaultHandle;
	/** Makes each request and socket fail with this probability, in a way that suits it. There is one campaign at a time. */
	campaign(campaign: Campaign): void;
	/** Ends all rules and the campaign. */
	clear(): void;
}

/** A fault of one request. */
export interface Fault {
	readonly kind: FaultKind;
	readonly phase: FaultPhase;
	readonly rule: FaultRule;
}

interface Standing {
	readonly id: number;
	readonly rule: FaultRule;
	readonly random: Random;
	seen: number;
	injected: number;
}

interface RunningCampaign {
	readonly rate: number;
	readonly kinds: readonly FaultKind[];
	/** A random generator for each target, so that the faults of uploads do not depend on the number of polls. */
	readonly randoms: ReadonlyMap<FaultTarget, Random>;
}

export class FaultBoard implements FaultControl {
	readonly #rules = new Map<number, Standing>();
	#campaign: RunningCampaign | undefined;
	#lastId = 0;

	constructor(
		private readonly seed: number,
		private readonly books: BookKeeper,
	) {}

	add(rule: FaultRule): FaultHandle {
		const { on, kind } = rule;
		if (on !== 'any' && !suits(kind, on)) throw new Error(`The fault ${kind} does not suit ${on}.`);
		const id = ++this.#lastId;
		const standing = { id, rule, random: seededRandom(`rule/${this.seed}/${id}`), seen: 0, injected: 0 };
		this.#rules.set(id, standing);
		return {
			id,
			remove: () => {
				this.#rules.delete(id);
			},
		};
	}

	campaign({ rate, seed = this.seed, kinds = [...CAMPAIGN_KINDS] }: Campaign): void {
		const randoms = new Map(
			FAULT_TARGETS.map((target) => [target, seededRandom(`campaign/${seed}/${target}`)] as const),
		);
		this.#campaign = { rate, kinds, randoms };
	}

	clear(): void {
		this.#rules.clear();
		this.#campaign = undefined;
	}

	/** Draws the faults of a request. @param text returns the text that `match` searches */
	draw(target: FaultTarget, text: () => string): Fault[] {
		const faults: Fault[] = [];
		const taken = (phase: FaultPhase): boolean =>
			(phase === 'before' || phase === 'delivery') && faults.some((fault) => fault.phase === phase);
		for (const standing of this.#rules.values()) {
			const { rule } = standing;
			const phase = phaseOf(rule, target);
			if (taken(phase) || !this.#strikes(standing, target, text)) continue;
			faults.push({ kind: rule.kind, phase, rule: inTurn(rule, standing.injected) });
		}
		const rule = this.#fromCampaign(target);
		if (rule !== undefined && !taken(phaseOf(rule, target))) {
			faults.push({ kind: rule.kind, phase: phaseOf(rule, target), rule });
		}
		for (const { kind } of faults) this.books.fault(kind);
		return faults;
	}

	#strikes(standing: Standing, target: FaultTarget, text: () => string): boolean {
		const { rule, random } = standing;
		if ((rule.on !== target && rule.on !== 'any') || !suits(rule.kind, target)) return false;
		if (rule.match !== undefined && !text().includes(rule.match)) return false;
		standing.seen++;
		if (standing.seen <= (rule.skip ?? 0)) return false;
		if (rule.times !== undefined && standing.injected >= rule.times) return false;
		if (rule.probability !== undefined && random() >= rule.probability) return false;
		standing.injected++;
		return true;
	}

	#fromCampaign(target: FaultTarget): FaultRule | undefined {
		const random = this.#campaign?.randoms.get(target);
		if (this.#campaign === undefined || random === undefined || random() >= this.#campaign.rate)
			return undefined;
		const kinds = this.#campaign.kinds.filter((kind) => suits(kind, target));
		const kind = pick(kinds, random);
		return kind === undefined ? undefined : variant(kind, target, random);
	}
}

/** Alternates the way of cutting if the rule does not specify it. */
function inTurn(rule: FaultRule, injected: number): FaultRule {
	if (rule.kind !== 'truncatedJson' || rule.cut !== undefined) return rule;
	return { ...rule, cut: injected % 2 === 1 ? 'length' : 'connection' };
}

/** Draws one of the forms that a fault of this kind can take. */
function variant(kind: FaultKind, on: FaultTarget, random: Random): FaultRule {
	const body = pick(['envelope', 'html', 'empty'] as const, random);
	switch (kind) {
		case '429':
			return { on, kind, body, retryAfter: pick(['seconds', 'date', 'none'] as const, random) };
		case '5xx':
			return { on, kind, body, status: pick([500, 502, 503, 504], random) };
		case 'redirect':
			return { on, kind, status: pick([302, 307, 308], random) };
		case 'truncatedJson':
			return { on, kind, cut: pick(['length', 'connection'] as const, random) };
		case 'resetAfter':
			return on === 'chat' ? { on, kind, after: Math.floor(random() * 4) } : { on, kind };
		case 'socketDrop':
			return { on, kind, after: Math.floor(random() * 3) };
		case 'socketRefuse':
			return { on, kind, status: pick([429, 500, 502, 503], random) };
		default:
			return { on, kind };
	}
}
