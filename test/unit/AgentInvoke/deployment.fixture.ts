import { readDeployment, type Deployment } from '../../../nodes/AgentInvoke/deployment';

/** A deployment with these fields of its own; without any, the usual one. */
export function deploymentOf(fields: Readonly<Record<string, unknown>> = {}): Deployment {
	const read = readDeployment({ customFields: true, ...fields });
	if (!read.ok) throw new Error(read.failure.message);
	return read.value;
}

export const USUAL = deploymentOf();
