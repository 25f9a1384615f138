import type { IExecuteFunctions } from 'n8n-workflow';

/**
 * An expression that gets a value from an earlier node, for an item that no longer has it, e.g. after a Wait node.
 * Nearer nodes are preferred.
 * @param path in the earlier item, e.g. `session.id`
 * @returns undefined if no earlier node has such a value
 */
export function earlierValue(
	context: IExecuteFunctions,
	itemIndex: number,
	path: string,
): string | undefined {
	const { name: ownName } = context.getNode();
	const earlier = context.getParentNodes(ownName).map(({ name }) => name);
	return earlier
		.reverse()
		.filter((name) => name !== ownName)
		.flatMap((name) => ['item', 'last()'].map((which) => `{{ $(${quoted(name)}).${which}.json.${path} }}`))
		.find((expression) => givesValue(context, itemIndex, expression));
}

function givesValue(context: IExecuteFunctions, itemIndex: number, expression: string): boolean {
	try {
		const value = context.evaluateExpression(expression, itemIndex);
		return typeof value === 'number' || (typeof value === 'string' && value !== '');
	} catch {
		// The node has not run, or the item cannot be traced back to it.
		return false;
	}
}

function quoted(name: string): string {
	return `'${name.replace(/['\\]/g, String.raw`\$&`)}'`;
}
