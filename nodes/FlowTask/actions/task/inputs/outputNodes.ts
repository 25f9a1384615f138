import type { IExecuteFunctions } from 'n8n-workflow';

import { failInput, ok, type Result } from '../../../../shared/errors/failure';
import { excerpt, objectsIn } from '../../../../shared/text/json';
import type { DefinitionNode } from '../../../../shared/workflow/definition';
import type { OutputNode } from '../../../tasks/describeTask';
import type { NodeRun } from '../../run';
import { chosenText, enteredText } from '../../enteredText';

const NODES_SHOWN = 10;

/**
 * Reads the option "Output Nodes" of an item. With a workflow definition, nodes can be given by title, and a node that
 * the definition lacks is refused before anything is sent.
 * @returns `undefined` if the option is not used
 */
export function readOutputNodes(
	context: IExecuteFunctions,
	itemIndex: number,
	run: Pick<NodeRun, 'workflows'>,
): Result<readonly OutputNode[] | undefined> {
	const rows = objectsIn(context.getNodeParameter('options.outputNodes.node', itemIndex, []));
	const wanted = rows.map(({ nodeId, field }) => ({
		name: chosenText(nodeId),
		field: enteredText(field) || 'data',
	}));
	if (wanted.length === 0) return ok(undefined);
	if (wanted.some(({ name }) => name === '')) {
		return failInput(
			'A row of "Output Nodes" has no node',
			'Choose the node, or enter its ID or, with a workflow definition, its title. Nothing was sent for this item.',
		);
	}
	const known = run.workflows.knowledge(context, itemIndex);
	if (!known.ok) return known;
	const nodes = known.value.definition?.nodes;
	const found: OutputNode[] = [];
	for (const { name, field } of wanted) {
		const nodeId = nodes ? idOf(nodes, name) : ok(name);
		if (!nodeId.ok) return nodeId;
		if (found.some((one) => one.nodeId === nodeId.value)) {
			return failInput(
				`"Output Nodes" names node "${excerpt(nodeId.value, 40)}" twice`,
				'Remove one of the two rows. Nothing was sent for this item.',
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
			`"Output Nodes" names "${shown}", but the workflow has ${titled.length} nodes with that title`,
			`Enter the ID of one of them: ${titled.map(({ nodeId }) => nodeId).join(', ')}. Nothing was sent for this item.`,
		);
	}
	const list = nodes.slice(-NODES_SHOWN).map(({ nodeId, title }) => `${nodeId} (${excerpt(title, 40)})`);
	return failInput(
		`"Output Nodes" names "${shown}", which is not in the workflow definition`,
		`Enter the ID or the title of a node that saves files. The last nodes of the definition are: ${list.join(', ')}. Nothing was sent for this item.`,
	);
}
