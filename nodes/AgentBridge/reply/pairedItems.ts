import type { IRunData, ITaskData } from 'n8n-workflow';

interface ItemPosition {
	readonly node: string;
	readonly run: number;
	readonly output: number;
	readonly item: number;
}

/**
 * The items of a node's last run, on all its outputs. The origin of an item is the position of the trigger item that it
 * is paired with; undefined if it is paired with none or several.
 */
export function lastItems(runData: IRunData, lastNode: string, trigger: string) {
	const run = (runData[lastNode]?.length ?? 0) - 1;
	const outputs = taskAt(runData, lastNode, run)?.data?.main ?? [];
	return outputs.flatMap((items, output) =>
		(items ?? []).map(({ json }, item) => ({
			json,
			origin: originOf(runData, { node: lastNode, run, output, item }, trigger),
		})),
	);
}

/** Follows the pairs back to the trigger. Iterative, because a node in a loop may have thousands of runs. */
function originOf(runData: IRunData, from: ItemPosition, trigger: string): number | undefined {
	const open: ItemPosition[] = [from];
	const seen = new Set<string>();
	let origin: number | undefined;
	for (let position = open.pop(); position; position = open.pop()) {
		if (position.node === trigger) {
			if (origin !== undefined && origin !== position.item) return undefined;
			origin = position.item;
			continue;
		}
		const name = JSON.stringify(Object.values(position));
		if (seen.has(name)) continue;
		seen.add(name);
		const before = positionsBefore(runData, position);
		// A single dead end makes the origin unknown: it might have led to another item.
		if (before.length === 0 || before.includes(undefined)) return undefined;
		open.push(...before.filter((one) => one !== undefined));
	}
	return origin;
}

/** Where the pairs of an item point, `undefined` for a pair that points nowhere; empty if n8n knows no pair. */
function positionsBefore(runData: IRunData, at: ItemPosition): Array<ItemPosition | undefined> {
	const task = taskAt(runData, at.node, at.run);
	const paired = task?.data?.main?.[at.output]?.[at.item]?.pairedItem ?? [];
	return [paired].flat().map((pair) => {
		const { item, input = 0, sourceOverwrite } = typeof pair === 'number' ? { item: pair } : pair;
		const source = sourceOverwrite ?? task?.source[input];
		if (!source) return undefined;
		const { previousNode, previousNodeRun = 0, previousNodeOutput = 0 } = source;
		return { node: previousNode, run: previousNodeRun, output: previousNodeOutput, item };
	});
}

function taskAt(runData: IRunData, node: string, run: number): ITaskData | undefined {
	return Object.hasOwn(runData, node) ? runData[node]?.[run] : undefined;
}
