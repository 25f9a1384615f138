import type { IExecuteFunctions } from 'n8n-workflow';

import { isTool } from '../../../../shared/errors/nodeError';
import { failInput, ok, NOT_SENT, type Result } from '../../../../shared/errors/failure';
import { excerpt, objectsIn } from '../../../../shared/text/json';
import { booleanOf } from '../../../../shared/text/textOf';
import type { DefinitionNode } from '../../../../shared/workflow/definition';
import { enteredStem, slugOf } from '../../../../shared/files/fileName';
import { readChoice } from '../../../../shared/form/options';
import type { Delivery, OutputNode, TaskJob } from '../../../tasks/engine';
import type { TaskFacts } from '../../../tasks/observer';
import { savesNothing } from '../../../workflow/fileNodes';
import type { NodeRun } from '../../run';
import { chosenText, enteredText, textParameter } from '../../enteredText';

/** Reads how the tasks of an item are output. An AI agent reads text, so nothing is downloaded for it. */
export function taskMaker(run: NodeRun, itemIndex: number) {
	const { context } = run;
	const outputs = readOutputNodes(run, itemIndex);
	if (!outputs.ok) return outputs;
	const chosen = readChoice(
		"'Output'",
		['filePerItem', 'allFiles', 'urls'],
		context.getNodeParameter('options.output', itemIndex, ''),
	);
	if (!chosen.ok) return chosen;
	const files = readChoice(
		"'Files'",
		['finalFiles', 'all'],
		context.getNodeParameter('options.expert.files', itemIndex, ''),
	);
	if (!files.ok) return files;
	const known = run.workflows.knowledge(itemIndex);
	const definition = known.ok ? known.value.definition : undefined;
	const delivery: Delivery = {
		form: isTool(context.getNode()) ? 'urls' : chosen.value,
		binaryField: textParameter(context, 'options.binaryPropertyName', itemIndex) || 'data',
		simplify: readSimplify(context, itemIndex),
		mayBeEmpty: definition !== undefined && savesNothing(definition),
		files: outputs.value?.map(({ nodeId }) => nodeId) ?? files.value,
		outputs: outputs.value,
	};
	const fileName = enteredText(context.getNodeParameter('options.fileName', itemIndex, ''));
	return ok((start: TaskJob['start'], facts: TaskFacts, record?: TaskJob['record']): TaskJob => ({
		itemIndex,
		facts,
		delivery,
		fileStem: fileStem(fileName, itemIndex, facts),
		start,
		record,
	}));
}

export function readSimplify(context: IExecuteFunctions, itemIndex: number): boolean {
	return booleanOf(context.getNodeParameter('options.simplify', itemIndex, true)) !== false;
}

/** The name of a task's files without extension; `undefined` if they keep the names in their links. */
function fileStem(
	entered: string,
	itemIndex: number,
	{ item = itemIndex, variant, prompt = '' }: TaskFacts,
): string | undefined {
	const slug = slugOf(prompt);
	const stem = enteredStem(entered) || (slug && `${slug}_${item + 1}`);
	if (!stem) return undefined;
	return variant === undefined ? stem : `${stem}_v${variant}`;
}

const NODES_SHOWN = 10;

/** With a workflow definition, nodes can be given by title, and a node that it lacks is refused. */
function readOutputNodes(
	{ context, workflows }: NodeRun,
	itemIndex: number,
): Result<readonly OutputNode[] | undefined> {
	const rows = objectsIn(context.getNodeParameter('options.expert.outputNodes.node', itemIndex, []));
	const wanted = rows.map(({ nodeId, field }) => ({
		name: chosenText(nodeId),
		field: enteredText(field) || 'data',
	}));
	if (wanted.length === 0) return ok(undefined);
	if (wanted.some(({ name }) => name === '')) {
		return failInput(
			"A row of 'Output Nodes' has no node",
			`Choose the node, or enter its ID or, with a workflow definition, its title. ${NOT_SENT}`,
		);
	}
	const known = workflows.knowledge(itemIndex);
	if (!known.ok) return known;
	const nodes = known.value.definition?.nodes;
	const found: OutputNode[] = [];
	for (const { name, field } of wanted) {
		const nodeId = nodes ? idOf(nodes, name) : ok(name);
		if (!nodeId.ok) return nodeId;
		if (found.some((one) => one.nodeId === nodeId.value)) {
			return failInput(
				`'Output Nodes' names node "${excerpt(nodeId.value, 40)}" twice`,
				`Remove one of the two rows. ${NOT_SENT}`,
			);
		}
		found.push({ nodeId: nodeId.value, field });
	}
	return ok(found);
}

/** The ID of the node with this ID, or else with this title. */
function idOf(nodes: readonly DefinitionNode[], name: string): Result<string> {
	if (nodes.some(({ nodeId }) => nodeId === name)) return ok(name);
	const titled = nodes.filter(({ title }) => title.trim().toLowerCase() === name.toLowerCase());
	const [only, ...others] = titled;
	if (only && others.length === 0) return ok(only.nodeId);
	const shown = excerpt(name, 40);
	if (only) {
		return failInput(
			`'Output Nodes' names "${shown}", but the workflow has ${titled.length} nodes with that title`,
			`Enter the ID of one of them: ${titled.map(({ nodeId }) => nodeId).join(', ')}. ${NOT_SENT}`,
		);
	}
	const list = nodes.slice(-NODES_SHOWN).map(({ nodeId, title }) => `${nodeId} (${excerpt(title, 40)})`);
	return failInput(
		`'Output Nodes' names "${shown}", which is not in the workflow definition`,
		`Enter the ID or the title of a node that saves files. The last nodes of the definition are: ${list.join(', ')}. ${NOT_SENT}`,
	);
}
