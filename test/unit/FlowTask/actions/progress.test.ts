import { badInput } from '../../../../nodes/shared/errors/failure';
import { progressText, type JobProgress } from '../../../../nodes/FlowTask/actions/progress';
import { succeeded, taskInfo } from '../taskInfo.builder';

const queued = taskInfo('t', { status: 1, current_position: 3, queue_size: 12 });

it.each<[string, JobProgress[]]>([
	['', []],
	['Submitted', [{}]],
	['Queued, position 3 of 12', [{ info: queued }]],
	['Queued, position 3', [{ info: taskInfo('t', { status: 1, current_position: 3, queue_size: null }) }]],
	['Queued', [{ info: taskInfo('t', { status: 1, current_position: null }) }]],
	['Generating: 45%', [{ info: taskInfo('t', { progress_num: 45 }) }]],
	['Generating', [{ info: taskInfo('t', { progress_num: null }) }]],
	['Done', [{ info: succeeded('t'), isOver: true }]],
	[
		String.raw`Failed: \!\[x\](https\://evil.example) now`,
		[{ failure: badInput('![x](https://evil.example)\nnow', ''), isOver: true }],
	],
	['Failed: Wrong', [{ failure: badInput('Wrong', ''), isOver: true }]],
])('describes the progress of one task as %j', (text, jobs) => {
	expect(progressText(jobs, 1)).toBe(text);
});

it('counts the tasks of many items', () => {
	const jobs: JobProgress[] = [
		{ info: succeeded('a'), isOver: true },
		{ info: succeeded('b') },
		{ failure: badInput('Wrong', ''), isOver: true },
		{ info: taskInfo('c') },
		{ info: queued },
		{ info: queued },
		{},
	];
	expect(progressText(jobs, 40)).toBe('1 of 40 tasks done, 1 failed, 1 generating, 2 queued');
});
