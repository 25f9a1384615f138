import { createClient, ServiceApi, type ServiceAccount } from '../../../../nodes/FlowTask/api/api';
import { TaskSubmitter, type SubmitStart } from '../../../../nodes/FlowTask/tasks/submit';
import type { Clock } from '../../../../nodes/shared/time/clock';
import type { DataTable } from '../../../../nodes/shared/dataTable/table';
import { TableLedger } from '../../../../nodes/shared/effects/ledger';
import { DEAD_MS, Liveness } from '../../../../nodes/shared/dataTable/claims';
import { redactor } from '../../../../nodes/shared/text/redact';
import { Retry } from '../../../../nodes/shared/retry/retry';
import { guardedTable } from '../../shared/guardedTable';
import { MemoryTable } from '../../shared/memoryTable';
import { TestClock } from '../../testClock';

/*
 * n8n is killed while it submits sixty items with keys. Items that were not sent must not block the next execution;
 * the outcome is unknown only for those in flight.
 */

const ITEMS = 60;
const AT_ONCE = 16;

/** A process that can be killed: from then on it sends and receives nothing. */
class Process {
	private readonly life = new AbortController();

	kill(): void {
		this.life.abort();
	}

	get isDead(): boolean {
		return this.life.signal.aborted;
	}

	async live<T>(work: () => Promise<T>): Promise<T> {
		const never = async (): Promise<T> => await new Promise<never>(() => undefined);
		if (this.isDead) return await never();
		const value = await work();
		const wasKilled = this.life.signal.aborted;
		return wasKilled ? await never() : value;
	}

	table(table: DataTable): DataTable {
		return guardedTable(table, async (call) => await this.live(call));
	}
}

class Scene {
	readonly clock = new TestClock();
	/** The state of a random generator, which makes requests take different times so that answers arrive one by one. */
	private state = 7;
	private readonly random = (): number =>
		(this.state = (this.state * 16_807) % 2_147_483_647) / 2_147_483_647;
	readonly table = new MemoryTable(this.clock, this.random, 40);
	/** The keys that reached the platform, in order. */
	readonly made: string[] = [];

	/** Runs one execution with all items. @returns the outcome of each item */
	async execute(
		process: Process,
		{ requestsPerSecond = 100, takesMs = 200 } = {},
	): Promise<ReadonlyArray<string>> {
		const clock: Clock = {
			now: () => this.clock.now(),
			wallNow: () => this.clock.wallNow(),
			sleep: async (ms, signal) => await process.live(async () => await this.clock.sleep(ms, signal)),
		};
		const { signal } = new AbortController();
		const deadlineMs = clock.now() + 3_600_000;
		const service: ServiceAccount = {
			baseUrl: 'https://platform.example',
			busyTerms: [],
			send: async ({ json }) =>
				await process.live(async () => {
					const key = Object(json).workflow_id as string;
					this.made.push(key);
					await this.clock.sleep(Math.round(takesMs * (0.5 + this.random())));
					const text = JSON.stringify({ code: 0, data: { prompt_id: `task ${key}` } });
					return { kind: 'reply', status: 200, headers: {}, text };
				}),
			redact: redactor([]),
		};
		const retry = new Retry({ requestsPerSecond, concurrency: AT_ONCE }, { clock, signal }, this.random);
		const call = createClient(service, retry, clock, deadlineMs);
		const ledger = new TableLedger(
			{
				...{ scope: 's', workflowId: 'w', executionId: '1', ttlMs: 0, sendAgain: false },
				...{ deadlineMs, claimsAtOnce: AT_ONCE },
			},
			{
				table: process.table(this.table.open()),
				clock,
				random: this.random,
				signal,
				liveness: new Liveness(),
			},
		);
		const api = new ServiceApi(call, redactor([]));
		const submitter = new TaskSubmitter({ api }, clock, () => undefined, ledger);
		const outcomes = await Promise.all(
			Array.from({ length: ITEMS }, async (_, index) => {
				const done = await submitter.submit(startOf(`k${index}`), undefined);
				return done.ok ? 'made' : done.failure.kind;
			}),
		);
		await ledger.flush();
		return outcomes;
	}

	/** The rows of keys that are claimed and have no outcome. */
	claimed(): unknown[] {
		const rows = this.table.all();
		const told = new Set(rows.filter(({ state }) => state !== 'claimed').map(({ entryKey }) => entryKey));
		return rows.filter(({ entryKey }) => !told.has(entryKey ?? null));
	}
}

function startOf(key: string): SubmitStart {
	return { kind: 'submit', workflowId: key, prompt: {}, images: [], idempotency: { key, payload: 'p' } };
}

describe('n8n, killed while it submits', () => {
	it.each([200, 400, 600, 800, 1_000, 1_200, 1_500])(
		'after %d ms, lets the next execution create all tasks that were not in flight, and none twice',
		async (killMs) => {
			const scene = new Scene();
			const first = new Process();
			void scene.execute(first);
			await scene.clock.advance(killMs);
			first.kill();
			expect(scene.claimed().length).toBeLessThanOrEqual(AT_ONCE);
			await scene.clock.advance(DEAD_MS);
			const outcomes = await scene.clock.run(scene.execute(new Process()));
			const unclear = outcomes.filter((outcome) => outcome !== 'made');
			expect(unclear.every((outcome) => outcome === 'unclear')).toBe(true);
			expect(unclear.length).toBeLessThanOrEqual(AT_ONCE);
			expect(new Set(scene.made).size).toBe(scene.made.length);
			expect(scene.made.length).toBeGreaterThanOrEqual(ITEMS - AT_ONCE);
		},
	);

	it('at any moment, holds no more claims than requests can be in flight', async () => {
		const scene = new Scene();
		const done = scene.execute(new Process(), { takesMs: 900 });
		let most = 0;
		for (let ms = 0; ms < 15_000; ms += 20) {
			await scene.clock.advance(20);
			most = Math.max(most, scene.claimed().length);
		}
		expect(new Set(await done)).toEqual(new Set(['made']));
		expect(most).toBe(AT_ONCE);
	});
});

describe('an undisturbed execution', () => {
	it('claims in batches: about one write per half of the requests that may be in flight', async () => {
		const scene = new Scene();
		await scene.clock.run(scene.execute(new Process()));
		const writes = scene.table.calls.filter((call) => call === 'insertThenRead');
		expect(scene.made).toHaveLength(ITEMS);
		// The first submits start a little apart, and so do their claims.
		expect(writes.length).toBeLessThanOrEqual(ITEMS / (AT_ONCE / 2) + 12);
		expect(scene.clock.elapsedMs).toBeLessThan(6_000);
	});

	it('is not held up by slow requests', async () => {
		const scene = new Scene();
		const done = scene.execute(new Process(), { takesMs: 20_000 });
		await scene.clock.run(done);
		expect(scene.made).toHaveLength(ITEMS);
		expect(scene.clock.elapsedMs).toBeLessThan(130_000);
	});

	it('finds existing tasks without waiting for a slot', async () => {
		const scene = new Scene();
		await scene.clock.run(scene.execute(new Process()));
		const calls = scene.table.calls.length;
		await scene.clock.run(scene.execute(new Process()));
		expect(scene.table.calls.slice(calls)).toEqual(['read']);
	});
});
