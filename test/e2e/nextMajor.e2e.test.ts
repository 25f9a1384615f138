// Checks what n8n 3 changes: n8n 2 knows the rules of its next version and judges workflows and settings by them.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPlatform } from '../platform';
import type { LocalPlatform } from '../platform';
import textToImage from '../platform/workflows/text-to-image.json';
import { batchService, pictures } from './batchService';
import { packedTarball } from './packOnce';
import { startRegistry } from './packageRegistry';
import type { PackageRegistry } from './packageRegistry';
import { failureOf, killEveryN8n, LIKE_N8N_3, outputItems, readTemplate, startN8n } from './runner';
import type { RunningN8n } from './runner';
import { platformAccount } from './stage';

const START_DEADLINE_MS = 300_000;
const userFolder = mkdtempSync(join(tmpdir(), 'next-major-'));

/** Findings that n8n reports for any n8n 2, or that do not concern this package. */
const OF_EVERY_N8N_2 = [
	'docker-only-deployment-v3',
	'compression-node-limits-v3',
	// n8n reports this even if the ranges that n8n 3 blocks are listed in addition to the default ones.
	'ssrf-default-blocked-ranges-v3',
	'workflow-import-url-removed-v3',
];

interface Report {
	report: {
		workflowResults: Array<{ ruleId: string; nbAffectedWorkflows: number }>;
		instanceResults: Array<{ ruleId: string }>;
	};
	totalWorkflows: number;
}

let platform: LocalPlatform;
let registry: PackageRegistry;
let n8n: RunningN8n;

beforeAll(async () => {
	platform = await startPlatform({ runners: 4, taskMs: 100 });
	registry = await startRegistry(packedTarball(), join(userFolder, 'npm'));
	n8n = await startN8n({
		userFolder,
		env: {
			...LIKE_N8N_3,
			...registry.env,
			N8N_COMMUNITY_PACKAGES_MANAGED_BY_ENV: 'true',
			N8N_COMMUNITY_PACKAGES: JSON.stringify([registry.entry]),
		},
	});
}, START_DEADLINE_MS);

afterAll(async () => {
	await killEveryN8n();
	await registry?.close();
	await platform?.close();
	rmSync(userFolder, { recursive: true, force: true, maxRetries: 3 });
});

it('changes nothing that a template uses', async () => {
	const folder = join(__dirname, '..', '..', 'templates');
	const templates = readdirSync(folder).filter((file) => file.endsWith('.json'));
	for (const file of templates) await n8n.client.createWorkflow(readTemplate(file));

	const { report, totalWorkflows } = await n8n.client.call<Report>(
		'POST',
		'/rest/breaking-changes/report/refresh?version=v3',
	);
	expect(totalWorkflows).toBeGreaterThanOrEqual(templates.length);
	expect(report.workflowResults).toEqual([]);
	const told = report.instanceResults.map(({ ruleId }) => ruleId);
	expect(told.filter((ruleId) => !OF_EVERY_N8N_2.includes(ruleId))).toEqual([]);
});

it('makes images with the settings of n8n 3, as files of the execution', async () => {
	const { workflowId } = await platform.hostWorkflow(textToImage);
	const account = await platformAccount({ platform, n8n });
	const batch = await n8n.client.createWorkflow(
		batchService({
			path: 'like-n8n-3',
			answers: 'lastNode',
			steps: [pictures('Pictures', account, workflowId)],
		}),
	);
	await n8n.client.activate(batch);
	const answer = await n8n.client.callWebhook('like-n8n-3', { keys: ['a red door', 'a blue door'] });
	expect(answer.status).toBe(200);

	const [summary] = await n8n.client.listExecutions(batch);
	const execution = await n8n.client.getExecution(String(summary?.id));
	const files = outputItems(execution, 'Pictures').flatMap(({ binary }) => Object.values(binary ?? {}));
	expect(files.map(({ id }) => id)).toEqual([
		expect.stringMatching(/^filesystem/),
		expect.stringMatching(/^filesystem/),
	]);
	expect(n8n.log.errors()).toEqual([]);
});

it('lets no workflow call one that any workflow may call', async () => {
	const start = {
		...{ id: 'start', name: 'Start', type: 'n8n-nodes-base.executeWorkflowTrigger', typeVersion: 1.1 },
		...{ position: [0, 0], parameters: { inputSource: 'passthrough' } },
	};
	const called = { nodes: [start], connections: {}, settings: { callerPolicy: 'any' } };
	const workflow = await n8n.client.createWorkflow(
		batchService({
			path: 'any-caller',
			answers: 'lastNode',
			steps: [
				{
					id: 'call',
					name: 'Call',
					type: 'n8n-nodes-base.executeWorkflow',
					typeVersion: 1.2,
					position: [400, 0],
					parameters: { source: 'parameter', workflowJson: JSON.stringify(called) },
				},
			],
		}),
	);
	await n8n.client.activate(workflow);
	await n8n.client.callWebhook('any-caller', { keys: ['a'] });
	const [summary] = await n8n.client.listExecutions(workflow);
	const execution = await n8n.client.getExecution(String(summary?.id));
	expect(failureOf(execution)).toMatch(/cannot be called by this workflow/);
});
