import { HandWoundTime } from '../../platform';
import { until } from '../../until';
import type { HarnessRun } from '../harness';
import { freshStage } from '../harness/stage';
import { openStage, prompts } from './flowTask.fixture';

/* The progress that a streaming chat or webhook shows. */

let time: HandWoundTime;
const stage = freshStage(async () => {
	time = new HandWoundTime();
	return await openStage({ runners: 1, taskMs: 10_000, time });
});

const start = async (count: number, options = {}, streaming = true) =>
	await stage.start(prompts(count), { output: 'urls', options }, { mode: 'webhook', streaming });

const said = ({ chunks }: Pick<HarnessRun, 'chunks'>): string =>
	chunks.map(({ content }) => content ?? '').join('');

test("shows a single task's progress while it runs, then its image", async () => {
	const live = await start(1, { streamProgress: true });
	time.pass(4_500);
	await until(() => said(live.said).includes('Generating: '));
	time.pass(10_000);
	const run = await live.done;
	expect(run.chunks.map(({ type }) => type)).toEqual([
		'begin',
		...run.chunks.slice(1, -1).map(() => 'item'),
		'end',
	]);
	expect(said(run)).toMatch(/Generating: \d+%\n\nDone\n\n!\[[^\]]+\]\(http[^)]+\)\n\n$/);
}, 30_000);

test('shows the counts of many tasks in one line', async () => {
	const live = await start(3, { streamProgress: true });
	await until(() => said(live.said).includes('0 of 3 tasks done, 1 generating, 2 queued'));
	time.pass(60_000);
	const run = await live.done;
	expect(said(run)).toContain('3 of 3 tasks done');
	expect(said(run).match(/!\[/g)).toHaveLength(3);
}, 30_000);

test.each([
	['without the option', {}, true],
	['if nothing streams', { streamProgress: true }, false],
])(
	'shows nothing %s',
	async (_what, options, streaming) => {
		const live = await start(1, options, streaming);
		await until(() => stage.platform.books().tasksMade === 1);
		time.pass(20_000);
		const run = await live.done;
		expect(run.chunks).toEqual([]);
		expect(run.error).toBeUndefined();
	},
	30_000,
);

test('makes links valid for a day if a chat shows them, unless the option says otherwise', async () => {
	const periods: unknown[] = [];
	for (const options of [{ streamProgress: true }, { streamProgress: true, urlExpirePeriod: 120 }, {}]) {
		stage.platform.resetBooks();
		const live = await start(1, options);
		await until(() => stage.platform.books().tasksMade === 1);
		time.pass(20_000);
		await live.done;
		const link = new URL(
			String(/http[^")\\]+/.exec(JSON.stringify((await live.done).stored.data.resultData))?.[0]),
		);
		periods.push(Number(link.searchParams.get('Expires')));
	}
	const [day = 0, twoMinutes = 0, hour = 0] = periods.map(Number);
	expect(Math.round((day - hour) / 3_600)).toBe(23);
	expect(Math.round((hour - twoMinutes) / 60)).toBe(58);
}, 60_000);
