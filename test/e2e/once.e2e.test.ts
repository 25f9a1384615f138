// An idempotency key creates one task, however many executions use it at once: on SQLite, and on PostgreSQL with workers.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPlatform, type LocalPlatform } from '../platform';
import textToImage from '../platform/workflows/text-to-image.json';
import { batchService, pictures } from './batchService';
import { ownDatabase, postgresIsThere, queueMode } from './ledger/postgres';
import { packedTarball } from './packOnce';
import { GIVEN_N8N, startN8n, startWorker, type RunningN8n } from './runner';
import { platformAccount } from './stage';

const START_DEADLINE_MS = 300_000;
/** A name that no other run on the same Redis and PostgreSQL uses. */
const NAME = `flowtask_once_${process.pid}_${Date.now().toString(36)}`;
const ROUNDS = 20;
const KEYS = 50;

/** Texts that people and attackers type into a form field that becomes a key. */
const HOSTILE = [
	'={{ 1+1 }}',
	'{{ $json }}',
	`"quoted" and 'quoted'`,
	'two\nlines\t',
	'🦊 ключ 鍵',
	"'; DROP TABLE x; --",
];

// A person may have neither PostgreSQL nor Redis; CI must have both.
const HOSTS = [
	'one process',
	...(!GIVEN_N8N && (process.env.CI || postgresIsThere()) ? ['postgres and two workers'] : []),
];

describe.each(HOSTS)('on %s', (host) => {
	const userFolder = mkdtempSync(join(tmpdir(), 'flowtask-once-'));
	const workers: Array<Awaited<ReturnType<typeof startWorker>>> = [];
	let platform: LocalPlatform;
	let n8n: RunningN8n;
	let database: Awaited<ReturnType<typeof ownDatabase>> | undefined;

	beforeAll(async () => {
		platform = await startPlatform({ runners: 50, taskMs: 100, images: 'prepared' });
		if (host !== 'one process') database = await ownDatabase(NAME);
		const env = database ? queueMode(NAME, database) : {};
		n8n = await startN8n({ userFolder, tarball: packedTarball(), env });
		if (host !== 'one process')
			workers.push(...(await Promise.all([1, 2].map(() => startWorker({ userFolder, env })))));
		const account = await platformAccount({ platform, n8n });
		const { workflowId } = await platform.hostWorkflow(textToImage);
		const limits = { idempotencyKey: '={{ $json.key }}', requestsPerSecond: 0 };
		const prompt = '=a picture of {{ $json.key }}';
		const step = pictures('Flow Task', account, workflowId, { options: { output: 'urls' }, limits }, prompt);
		const service = batchService({ path: NAME, answers: 'lastNode', steps: [step] });
		await n8n.client.activate(await n8n.client.createWorkflow(service));
	}, START_DEADLINE_MS);

	afterAll(async () => {
		await Promise.all(workers.map((worker) => worker.kill()));
		await n8n?.stop();
		await database?.drop();
		await platform?.close();
		rmSync(userFolder, { recursive: true, force: true, maxRetries: 3 });
	}, 120_000);

	async function ask(keys: string[]): Promise<Array<{ taskId: string; reused?: boolean }>> {
		const response = await n8n.client.callWebhook(NAME, { keys }, 170_000);
		const answer: unknown = JSON.parse(await response.text());
		if (!Array.isArray(answer)) throw new Error(`no list: ${JSON.stringify(answer).slice(0, 500)}`);
		return answer as Array<{ taskId: string; reused?: boolean }>;
	}

	const keysOf = (round: number): string[] =>
		Array.from({ length: KEYS }, (_, index) => `${HOSTILE[index] ?? `order ${index}`} of round ${round}`);

	test(
		`two executions at once with the same ${KEYS} keys make ${KEYS} tasks, ${ROUNDS} times over`,
		async () => {
			for (let round = 0; round < ROUNDS; round++) {
				const keys = keysOf(round);
				const [first = [], second = []] = await Promise.all([ask(keys), ask(keys)]);
				expect(second.map(({ taskId }) => taskId)).toEqual(first.map(({ taskId }) => taskId));
				expect(new Set(first.map(({ taskId }) => taskId)).size).toBe(KEYS);
				expect(platform.books().tasksMade).toBe(KEYS * (round + 1));
			}
			const { tasks, duplicates } = platform.books();
			expect(duplicates).toBe(0);
			// Each key arrived unchanged and was not evaluated anywhere.
			const texts = new Set(tasks.map(({ prompt }) => JSON.stringify(prompt)));
			for (const key of keysOf(0)) {
				expect(texts).toContain(JSON.stringify({ '6': { inputs: { text: `a picture of ${key}` } } }));
			}
		},
		20 * 60_000,
	);

	test('a later execution gets the same tasks, and says so', async () => {
		const again = await ask(keysOf(0));
		expect(again.every(({ reused }) => reused === true)).toBe(true);
		expect(platform.books().tasksMade).toBe(KEYS * ROUNDS);
	}, 180_000);
});
