import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';
import pLimit from 'p-limit';

import { deliverResults } from '../../shared/run/deliver';
import { ok } from '../../shared/errors/failure';
import { workItem } from '../../shared/errors/expressionError';
import { inputField, uploadField } from './files';
import { ItemForm } from './inputs';
import { optionsCollection } from '../../shared/form/options';
import { AGENT_OPTIONS } from './options';
import { inAgentRun, type AgentRun } from './run';
import type { Operation } from '../../shared/run/operation';

/** Uploads a file and returns the URL from which an agent can load it for a limited time (§4.8). */
export const uploadMedia: Operation = {
	value: 'uploadMedia',
	name: 'Upload Media',
	description: 'Upload a file and get a URL for the agent',
	action: 'Upload media',
	fields: [
		{ ...inputField, required: true },
		optionsCollection(AGENT_OPTIONS, ['concurrency', 'maxFileSizeMb', 'requestsPerSecond', 'timeoutSeconds']),
	],
	async execute(context) {
		return await inAgentRun(context, async (run) => await uploadAll(context, run));
	},
};

async function uploadAll(context: IExecuteFunctions, run: AgentRun): Promise<INodeExecutionData[][]> {
	const limit = pLimit(run.options.concurrency);
	const results = await Promise.all(
		context.getInputData().map(
			async (_, itemIndex) =>
				await limit(
					async () =>
						await workItem(async () => {
							const name = new ItemForm(context, itemIndex).text('binaryPropertyName', 'Input Data Field');
							if (!name.ok) return name;
							const upload = await uploadField(context, itemIndex, name.value, run);
							if (!upload.ok) return upload;
							const { url, name: fileName, mimeType, expiresAt } = upload.value;
							return ok({ url, name: fileName, mimeType, expiresAt });
						}),
				),
		),
	);
	return [deliverResults(context, results)];
}
