// Shows where the time of a large batch goes: a CPU profile of n8n's process, for people to read. The profile itself is
// saved too, for the inspector of any Chromium.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { told } from '../figures';
import { flowTaskFlow, runWell } from '../flow';
import { hotPlaces } from '../hotPlaces';
import { INSPECTED, Inspector } from '../inspector';
import { cpuSecondsOf } from '../processMeter';
import type { Row } from '../stage';

const TASKS = 2_000;
const PLACES = 12;
const PERCENT = 100;

const folder = join(__dirname, '..', '..', '.e2e');
const profileFile = join(folder, 'bench.cpuprofile');

export const cpu: Row = {
	name: 'cpu',
	async measure(stage) {
		return await stage.withPlatform(
			{ runners: 64, taskMs: 500 },
			async (platform) =>
				await stage.withFreshN8n(async (n8n) => {
					const customer = await platform.customer();
					const run = { n8n, platform, customer };
					await runWell(n8n, await flowTaskFlow({ ...run, count: 20, label: 'warm-up' }));
					const inspector = await Inspector.of(n8n);
					const flow = await flowTaskFlow({ ...run, count: TASKS, label: 'profile' });
					const before = cpuSecondsOf(n8n.pid);
					await inspector.startProfile();
					await runWell(n8n, flow);
					const profile = await inspector.stopProfile();
					const seconds = cpuSecondsOf(n8n.pid) - before;
					inspector.close();
					mkdirSync(folder, { recursive: true });
					writeFileSync(profileFile, JSON.stringify(profile));
					const { functions, owners } = hotPlaces(profile, PLACES);
					return [
						told((seconds / TASKS) * 1000, `CPU of n8n for a task with its file, of ${TASKS}`, ' ms'),
						...owners.map(({ place, share }) => told(share * PERCENT, `of that, in ${place}`, ' %')),
						...functions.map(({ place, share }) => told(share * PERCENT, `hottest: ${place}`, ' %')),
					];
				}, INSPECTED),
		);
	},
};
