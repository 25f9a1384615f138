import type { INodeExecutionData, IRunData, ITaskData } from 'n8n-workflow';

import { lastItems } from '../../../../nodes/AgentBridge/reply/pairedItems';

type Paired = INodeExecutionData['pairedItem'];

/** A node's run: the pairing of each item of its outputs, and the sources of its inputs. */
function task(
	outputs: Paired[][],
	...sources: Array<[node: string, run?: number, output?: number]>
): ITaskData {
	return {
		startTime: 0,
		executionIndex: 0,
		executionTime: 0,
		source: sources.map(([previousNode, previousNodeRun, previousNodeOutput]) => ({
			previousNode,
			previousNodeRun,
			previousNodeOutput,
		})),
		data: {
			main: outputs.map((items) =>
				items.map((pairedItem, i) => ({ json: { i }, ...(pairedItem !== undefined && { pairedItem }) })),
			),
		},
	};
}

const TRIGGER = task([[{ item: 0 }, { item: 1 }, { item: 2 }]]);

function origins(runData: IRunData, last = 'Last'): Array<number | undefined> {
	return lastItems({ Trigger: [TRIGGER], ...runData }, last, 'Trigger').map(({ origin }) => origin);
}

test.each<[what: string, runData: IRunData, origins: Array<number | undefined>]>([
	['pairs in a row', { A: [task([[2, 0]], ['Trigger'])], Last: [task([[{ item: 0 }, 1]], ['A'])] }, [2, 0]],
	['no pair', { Last: [task([[undefined, { item: 1 }]], ['Trigger'])] }, [undefined, 1]],
	['a list of one', { Last: [task([[[{ item: 2 }]]], ['Trigger'])] }, [2]],
	[
		'a list of the same',
		{ A: [task([[1, 1]], ['Trigger'])], Last: [task([[[{ item: 0 }, { item: 1 }]]], ['A'])] },
		[1],
	],
	['a list of several', { Last: [task([[[{ item: 0 }, { item: 1 }]]], ['Trigger'])] }, [undefined]],
	['an empty list', { Last: [task([[[]]], ['Trigger'])] }, [undefined]],
	['outputs in order', { Last: [task([[2], [0], []], ['Trigger'])] }, [2, 0]],
	[
		'two inputs',
		{
			A: [task([[2]], ['Trigger'])],
			B: [task([[0]], ['Trigger'])],
			Last: [
				task(
					[
						[
							{ item: 0, input: 1 },
							{ item: 0, input: 0 },
							{ item: 0, input: 2 },
						],
					],
					['A'],
					['B'],
				),
			],
		},
		[0, 2, undefined],
	],
	[
		'the second output of a branch, and its second run',
		{
			A: [task([[0], [0]], ['Trigger']), task([[0], [2, 1]], ['Trigger'])],
			Last: [task([[0]], ['A']), task([[1]], ['A', 1, 1])],
		},
		[1],
	],
	[
		'an item of another node',
		{ Last: [task([[{ item: 1, sourceOverwrite: { previousNode: 'Trigger' } }]])] },
		[1],
	],
	['a pair that leads nowhere', { Last: [task([[{ item: 7 }]], ['Away'])] }, [undefined]],
	[
		'a pair with an item that does not exist',
		{ A: [task([[0]], ['Trigger'])], Last: [task([[5]], ['A'])] },
		[undefined],
	],
	[
		'a list with one pair that leads nowhere after the known one',
		{
			Last: [task([[[{ item: 2 }, { item: 0, input: 7 }]]], ['Trigger'])],
		},
		[undefined],
	],
	[
		'a list with one pair that leads nowhere before the known one',
		{ Last: [task([[[{ item: 0, input: 7 }, { item: 2 }]]], ['Trigger'])] },
		[undefined],
	],
	['a cycle', { A: [task([[0]], ['Last'])], Last: [task([[0]], ['A'])] }, [undefined]],
])('traces items back to the trigger: %s', (_what, runData, expected) => {
	expect(origins(runData)).toEqual(expected);
});

test('finds no origins without output or if the node did not run', () => {
	expect(origins({ Last: [task([[]], ['Trigger'])] })).toEqual([]);
	expect(origins({}, 'Never')).toEqual([]);
	expect(origins({}, 'constructor')).toEqual([]);
});

test('finds the origin through a loop of 20,000 runs', () => {
	const loop = Array.from({ length: 20_000 }, (_, run) =>
		task([[0]], run === 0 ? ['Trigger'] : ['Loop', run - 1]),
	);
	expect(origins({ Loop: loop, Last: [task([[0]], ['Loop', 19_999])] })).toEqual([0]);
});
