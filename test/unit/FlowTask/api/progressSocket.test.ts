import fc from 'fast-check';

import { ProgressSockets } from '../../../../nodes/FlowTask/api/progressSocket';
import type { TaskInfo } from '../../../../nodes/FlowTask/api/taskInfo';
import { Socket } from '../../../../nodes/shared/http/webSocket';
import { TestClock, turn } from '../../testClock';
import { playedSockets, type PlayedStep } from '../sockets.script';

const FIRST = '/mass/api/progress';
const SECOND = '/api/mass/progress';

function scene() {
	const { factory, opened } = playedSockets();
	const sockets = new ProgressSockets('wss://platform.example', [FIRST, SECOND], factory);
	const infos: TaskInfo[] = [];
	const lost: string[] = [];
	return {
		sockets,
		opened,
		infos,
		lost,
		paths: () => opened.map(({ url }) => new URL(url).pathname),
		open: (taskId: string) =>
			sockets.open(taskId, `token of ${taskId}`, {
				onInfo: (info) => infos.push(info),
				onLost: () => lost.push(taskId),
			}),
	};
}

const message = (taskId: string, status = 2): unknown => ({
	flow_task_info: { flow_task_id: taskId, status },
});

describe('ProgressSockets', () => {
	it('opens the documented URL, with the encoded token in its query', () => {
		const { open, opened } = scene();
		open('t');
		expect(opened.map(({ url }) => url)).toEqual([
			'wss://platform.example/mass/api/progress?authorization=token%20of%20t',
		]);
	});

	it('stays with the form that delivered a message', () => {
		const { open, opened, paths } = scene();
		open('a');
		opened[0]?.refuse();
		opened[1]?.open();
		opened[1]?.say(message('a'));
		open('b');
		expect(paths()).toEqual([FIRST, SECOND, SECOND]);
	});

	it('does not return to the other form if a proven one is refused later', () => {
		const { open, opened, paths, lost, sockets } = scene();
		open('a');
		opened[0]?.open();
		opened[0]?.say(message('a'));
		open('b');
		opened[1]?.refuse();
		expect(paths()).toEqual([FIRST, FIRST]);
		expect(lost).toEqual(['b']);
		expect(sockets.available).toBe(true);
	});

	it('gives up for the run once both forms were refused', () => {
		const { open, opened, lost, sockets } = scene();
		open('t');
		opened[0]?.refuse();
		expect(sockets.available).toBe(true);
		opened[1]?.refuse();
		expect(sockets.available).toBe(false);
		expect(lost).toEqual(['t']);
	});

	it.each<[string, PlayedStep[]]>([
		['is refused', ['refuse']],
		['opens and delivers nothing', ['open', 'drop']],
		['opens and delivers an undocumented message', ['open', { say: { hello: 1 } }, 'drop']],
	])('tries the other path form if the first %s, without reporting it', (_name, steps) => {
		const { open, opened, paths, infos, lost, sockets } = scene();
		open('t');
		opened[0]?.play(steps);
		expect([paths(), lost, sockets.available]).toEqual([[FIRST, SECOND], [], true]);
		opened[1]?.play(['open', { say: message('t') }, 'drop']);
		expect([infos.length, lost]).toEqual([1, ['t']]);
	});

	it('closes the open socket, not the one that was refused', () => {
		const { open, opened } = scene();
		const handle = open('t');
		opened[0]?.refuse();
		handle.close();
		expect(opened.map(({ closed }) => closed)).toEqual([false, true]);
	});

	it('opens nothing after it was closed', () => {
		const { open, opened, lost } = scene();
		open('t').close();
		opened[0]?.refuse();
		expect([opened.map(({ closed }) => closed), lost]).toEqual([[true], []]);
	});

	it('ignores messages about another task', () => {
		const { open, opened, infos } = scene();
		open('t');
		opened[0]?.open();
		opened[0]?.say(message('u', 3));
		expect(infos).toEqual([]);
	});

	it('treats a socket that cannot even be created as refused', async () => {
		const connect = (): never => {
			throw new SyntaxError('The URL is invalid');
		};
		const clock = new TestClock();
		const sockets = new ProgressSockets(
			'wss://platform.example',
			[FIRST, SECOND],
			(url, events) => new Socket({ url }, events, clock, connect),
		);
		const lost = jest.fn();
		const socket = sockets.open('t', 'token', { onInfo: jest.fn(), onLost: lost });
		await turn();
		expect(() => {
			socket.close();
		}).not.toThrow();
		expect(lost).toHaveBeenCalledTimes(1);
		expect(sockets.available).toBe(false);
	});

	it('ignores garbage, and reads the next valid message', () => {
		const garbage = fc.oneof(
			fc.string(),
			fc.json(),
			fc.jsonValue().map((value) => JSON.stringify({ flow_task_info: value })),
			fc
				.jsonValue()
				.map((value) => JSON.stringify({ flow_task_info: [{ flow_task_id: 't', status: value }] })),
		);
		fc.assert(
			fc.property(fc.array(garbage), (frames) => {
				const { open, opened, infos } = scene();
				open('t');
				opened[0]?.open();
				for (const frame of frames) opened[0]?.say(frame);
				opened[0]?.say(message('t', 1));
				expect(infos).toMatchObject([{ taskId: 't', state: 'queued' }]);
			}),
		);
	});
});
