import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { toErrorItem, toNodeError } from '../errors/nodeError';
import type { Failure } from '../errors/failure';
import { isTool } from './toolMode';

/**
 * A failure of the whole run. With Continue On Fail each item gets it: n8n would pass on a thrown one's input
 * items as if all were well.
 */
export function failRun(context: IExecuteFunctions, failure: Failure): INodeExecutionData[][] {
	if (!context.continueOnFail()) throw toNodeError(context.getNode(), failure);
	const asTool = isTool(context);
	return [context.getInputData().map((_, itemIndex) => toErrorItem(failure, itemIndex, asTool))];
}
