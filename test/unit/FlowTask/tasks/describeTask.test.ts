import fc from 'fast-check';

import type { TaskInfo } from '../../../../nodes/FlowTask/api/taskInfo';
import type { TaskOutcome } from '../../../../nodes/FlowTask/tasks/engine';
import {
	describeForAgent,
	describeOutcome,
	describeTask,
	firstWords,
	describeTiming,
	markdownOf,
	missingOutputsHint,
	rawTaskInfo,
	summarise,
} from '../../../../nodes/FlowTask/tasks/describeTask';
import { redactor } from '../../../../nodes/shared/text/redact';
import type { Failure } from '../../../../nodes/shared/errors/failure';
import { LINKS_ONLY, succeeded, taskInfo } from '../taskInfo.builder';

const KEY = 'sk-Abcdef0123456789';
const redact = redactor([KEY]);
const AT = Date.UTC(2030, 0, 1, 12);

function outcome(fields: Partial<TaskOutcome> = {}): TaskOutcome {
	return {
		itemIndex: 0,
		facts: {},
		delivery: LINKS_ONLY,
		taskId: 't',
		reused: false,
		snapshot: undefined,
		files: [],
		failure: undefined,
		...fields,
	};
}
function failed(kind: Failure['kind'], details?: Failure['details']): TaskOutcome {
	return outcome({ failure: { kind, message: 'm', advice: 'a', ...(details && { details }) } });
}

describe('firstWords', () => {
	it.each([
		['a short prompt', 'a red fox', 'a red fox'],
		['several lines', 'a red\n\tfox ', 'a red fox'],
		[
			'a long prompt',
			'A red bicycle, leaning on a wall, in the rain at dawn',
			'A red bicycle, leaning on a wall, in…',
		],
		['words that do not end', '狐'.repeat(50), `${'狐'.repeat(39)}…`],
		['words that do not end, after a short one', `a ${'狐'.repeat(50)}`, `a ${'狐'.repeat(37)}…`],
	])('of %s', (_name, prompt, words) => {
		expect(firstWords(prompt)).toBe(words);
	});
});

describe('describeTask', () => {
	const full = { itemIndex: 0, facts: {}, simplify: false };

	it('begins with what tells rows apart, and has neither internals nor a link twice', () => {
		const links = ['https://h/a.png', 'https://h/b.png'];
		const info = taskInfo('t', { status: 3, progress_num: 100, files: { '9': links }, final_files: links });
		const facts = { item: 8, prompt: 'a red fox', variant: 2, seeds: { '3.seed': 7 } };
		const json = describeTask(info, { itemIndex: 0, facts, simplify: true }, redact);
		expect(Object.entries(json)).toEqual([
			['prompt', 'a red fox'],
			['item', 9],
			['variant', 2],
			['status', 'succeeded'],
			['seed', 7],
			['taskId', 't'],
			['url', 'https://h/a.png'],
			['otherUrls', ['https://h/b.png']],
		]);
	});

	it('says how far an unfinished task is, and why another one failed', () => {
		const queued = taskInfo('t', { status: 1, progress_num: null });
		expect(describeTask(queued, { ...full, simplify: true }, redact)).toEqual({
			...{ item: 1, status: 'queued', taskId: 't', progress: null },
		});
		const failed = taskInfo('t', { status: 4, errMsg: 'no' });
		expect(describeTask(failed, { ...full, simplify: true }, redact)).toEqual({
			...{ item: 1, status: 'failed', taskId: 't', errorMessage: 'no' },
		});
	});

	it('in full, converts the fields of the interface to named ones', () => {
		const info = taskInfo('t', { status: 1, queue_size: 9, current_position: 4, progress_num: null });
		expect(describeTask(info, full, redact)).toEqual({
			item: 1,
			status: 'queued',
			taskId: 't',
			statusCode: 1,
			progress: null,
			queue: { position: 4, size: 9 },
			files: {},
			finalFiles: [],
			errorMessage: '',
			raw: info.raw,
		});
	});

	it('hides a key in the links of all nodes, also for an agent', () => {
		const info = taskInfo('t', { status: 3, files: { '9': [`https://h/a.png?k=${KEY}&sig=1`] } });
		const hidden = ['https://h/a.png?k=[hidden]&sig=1'];
		expect(describeTask(info, full, redact)).toMatchObject({ files: { '9': hidden } });
		const snapshot = { info, endedAtMs: AT };
		expect(describeForAgent(outcome({ snapshot }), redact, false)).toMatchObject({ files: hidden });
	});

	it('hides a key before it shortens an error text', () => {
		const info = taskInfo('t', { errMsg: `${'e'.repeat(9_988)} ${KEY} ${'e'.repeat(5_000_000)}` });
		const { errorMessage } = describeTask(info, full, redact);
		expect(errorMessage).toHaveLength(10_000);
		expect(errorMessage).toContain('e [hidden]');
	});
});

describe('describeTiming', () => {
	it('separates queueing from running', () => {
		const info = taskInfo('t', { status: 3 });
		const snapshot = { info, sinceMs: AT, generatingAtMs: AT + 2_000, endedAtMs: AT + 5_000 };
		const unfinished = { ...snapshot, info: taskInfo('t', { status: 2 }) };
		expect(describeTiming(unfinished)).toMatchObject({ finishedAt: null, queuedMs: 2_000, runMs: null });
		expect(describeTiming(snapshot)).toEqual({
			submittedAt: '2030-01-01T12:00:00.000Z',
			finishedAt: '2030-01-01T12:00:05.000Z',
			queuedMs: 2_000,
			runMs: 3_000,
		});
	});
});

describe('describeOutcome', () => {
	it('has one seed, and a list if there are several', () => {
		const withSeeds = (seeds: Record<string, number>) =>
			describeOutcome(outcome({ facts: { seeds }, delivery: { ...LINKS_ONLY, simplify: false } }), redact);
		expect(withSeeds({ '3.seed': 7, '8.seed': 7 })).toMatchObject({ seed: 7 });
		expect(withSeeds({ '3.seed': 7 })).not.toHaveProperty('seeds');
		const different = { '3.seed': 7, '8.seed': 0 };
		expect(withSeeds(different)).toMatchObject({ seed: 7, seeds: different });
		expect(withSeeds({})).not.toHaveProperty('seed');
	});

	it('reports a task that was never polled as submitted', () => {
		const snapshot = { info: undefined, sinceMs: AT, generatingAtMs: undefined, endedAtMs: AT };
		expect(describeOutcome(outcome({ snapshot, facts: { workflowId: 'w' } }), redact)).toEqual({
			...{ item: 1, taskId: 't', status: 'submitted' },
		});
	});

	it('does not report a failure as submitted', () => {
		expect(describeOutcome(failed('timedOut'), redact)).toMatchObject({ status: 'unknown' });
		expect(describeOutcome(outcome({ taskId: undefined }), redact)).toMatchObject({ taskId: null });
	});

	it('survives JSON unchanged', () => {
		const snapshot = { info: succeeded('t'), sinceMs: AT, generatingAtMs: undefined, endedAtMs: AT };
		const facts = { workflowId: 'w', seeds: { '3.seed': 1 } };
		const delivery = { ...LINKS_ONLY, simplify: false };
		const json = describeOutcome(outcome({ snapshot, facts, delivery }), redact);
		expect(JSON.parse(JSON.stringify(json))).toEqual(json);
		expect(json).toMatchObject({ status: 'succeeded', workflowId: 'w', seed: 1, timing: { runMs: null } });
	});
});

describe('rawTaskInfo', () => {
	it('is the original element', () => {
		const info = taskInfo('t', { trace: { id: 1 }, errMsg: null });
		expect(rawTaskInfo(info, redact)).toEqual(info.raw);
	});

	it('stays valid if a hidden token ends at a quotation mark', () => {
		const info = taskInfo('t', { errMsg: 'see "https://h/?token=abc" or \'?token=abc\\' });
		expect(rawTaskInfo(info, redact)).toMatchObject({ flow_task_id: 't', status: 2 });
	});

	it('keeps all fields, whatever they contain', () => {
		const piece = fc.constantFrom(
			'?token=',
			'&authorization=x',
			'"',
			'\\',
			"'",
			' Bearer abcdefgh1',
			KEY,
			'\n',
			'a',
		);
		const text = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(''));
		fc.assert(
			fc.property(fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), text), (fields) => {
				const raw = rawTaskInfo(taskInfo('t', { extra: fields }), redact);
				expect(Object.keys(raw)).toContain('flow_task_id');
				expect(JSON.stringify(raw)).not.toContain(KEY);
			}),
		);
	});
});

describe('describeForAgent', () => {
	it('contains the outcome and the pictures, and nothing else', () => {
		const snapshot = { info: succeeded('t'), sinceMs: AT, generatingAtMs: undefined, endedAtMs: AT };
		const one = outcome({ snapshot, facts: { seeds: { '3.seed': 0 } } });
		expect(describeForAgent(one, redact, false)).toEqual({
			markdown: '![t.png](https://files.example/t.png)',
			note: expect.stringContaining('exactly as it is') as unknown,
			taskId: 't',
			status: 'succeeded',
			seed: 0,
			files: ['https://files.example/t.png'],
		});
	});

	it('contains the files of all nodes if none is final', () => {
		const info = taskInfo('t', { status: 3, files: { '9': ['https://h/a'], '12': ['https://h/b'] } });
		const snapshot = { info, sinceMs: AT, generatingAtMs: undefined, endedAtMs: AT };
		expect(describeForAgent(outcome({ snapshot }), redact, false)).toMatchObject({
			files: ['https://h/a', 'https://h/b'],
		});
	});
});

describe('summarise', () => {
	it.each<[string, TaskOutcome[], string]>([
		['nothing', [], ''],
		['finished tasks', [outcome(), outcome()], '2 done'],
		[
			'all kinds of outcomes',
			[
				outcome(),
				failed('taskFailed'),
				failed('file'),
				failed('timedOut'),
				failed('stalled'),
				failed('notSubmitted'),
				failed('unclear', { mayExist: true }),
				failed('unclear'),
			],
			'1 done, 3 failed (row 1), 2 still running, 1 not submitted, 1 unclear whether submitted (row 1)',
		],
		[
			'rows, and names a few of them',
			Array.from({ length: 13 }, (_, itemIndex) => ({ ...failed('taskFailed'), itemIndex })),
			'13 failed (rows 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 3 more)',
		],
	])('counts %s', (_name, outcomes, said) => {
		expect(summarise(outcomes)).toBe(said);
	});
});

describe('markdownOf', () => {
	it.each([
		['https://f.example/a.png?x=1&y=2', '![a.png](https://f.example/a.png?x=1&y=2)'],
		['https://f.example/a(1).png', '![a(1).png](<https://f.example/a(1).png>)'],
		[
			'https://f.example/view?filename=a%5Bb%5D%20c.png',
			String.raw`![a\[b\] c.png](https://f.example/view?filename=a%5Bb%5D%20c.png)`,
		],
		['https://f.example/a b>.png', String.raw`![a b\>.png](<https://f.example/a%20b%3E.png>)`],
		['https://f.example/clip.mp4?s=1', '[clip.mp4](https://f.example/clip.mp4?s=1)'],
		['https://f.example/scene.usdz', '[scene.usdz](https://f.example/scene.usdz)'],
		['https://f.example/cat.tif', '[cat.tif](https://f.example/cat.tif)'],
		['https://f.example/', '[file](https://f.example/)'],
		['javascript:alert(1)//a.png', 'a.png'],
		['data:text/html;base64,PHA+.png', 'html;base64,PHA+.png'],
		['//evil.example/a.png', 'file'],
		['https://f.example/a.png?x=1&copy;=2', '![a.png](<https://f.example/a.png?x=1&amp;copy;=2>)'],
		[
			`https://f.example/x](https:%2F%2Fevil.example)![y.png`,
			String.raw`![x\](https\://evil.example)\!\[y.png](<https://f.example/x](https:%2F%2Fevil.example)![y.png>)`,
		],
		[
			'https://f.example/%3Cimg%20src=x%3E%60a%60%0A%0A.png',
			'![\\<img src=x\\>\\`a\\` .png](https://f.example/%3Cimg%20src=x%3E%60a%60%0A%0A.png)',
		],
	])('formats %s', (url, text) => {
		expect(markdownOf([url])).toBe(text);
	});

	it('puts each file on a line of its own', () => {
		expect(markdownOf(['https://f.example/a.png', 'https://f.example/b.png']).split('\n')).toHaveLength(2);
	});
});

describe('missingOutputsHint', () => {
	const lacking = (info: TaskInfo, nodeId: string): TaskOutcome =>
		outcome({
			snapshot: { info, endedAtMs: AT },
			delivery: { ...LINKS_ONLY, form: 'filePerItem', outputs: [{ nodeId, field: 'image' }] },
		});

	it('is absent if each node has a file', () => {
		expect(missingOutputsHint([lacking(succeeded('t'), '9')])).toBeUndefined();
	});

	it('is absent if nothing was to be downloaded', () => {
		const one = lacking(succeeded('t'), '4');
		expect(missingOutputsHint([{ ...one, delivery: LINKS_ONLY }])).toBeUndefined();
	});

	it('counts no inherited property of an object as the files of a node', () => {
		const hint = missingOutputsHint([lacking(succeeded('t'), 'constructor')]);
		expect(hint).toContain('lack files from chosen output nodes: constructor.');
	});

	it('does not guess if the platform names no node', () => {
		const info = taskInfo('t', { status: 3, progress_num: 100, final_files: ['https://f.example/a.png'] });
		expect(missingOutputsHint([lacking(info, '9')])).toContain(
			'did not say which node made the files of 1 task(s)',
		);
	});

	it('names the nodes that have files', () => {
		const hint = missingOutputsHint([lacking(succeeded('t'), '4')]);
		expect(hint).toBe('1 task(s) lack files from chosen output nodes: 4. Files came from 9.');
	});
});
