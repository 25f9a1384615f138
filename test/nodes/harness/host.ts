import { Logger } from '@n8n/backend-common';
import { GlobalConfig, InstanceSettingsConfig } from '@n8n/config';
import { Container } from '@n8n/di';
import { BinaryDataService, InstanceSettings } from 'n8n-core';
import { SSHClientsManager } from 'n8n-core/dist/execution-engine/ssh-clients-manager';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { CapturedLogger, type LogLine } from './log.capture';
import { passTimeQuickly } from './quickTime';
import { recogniseErrorsOfAllRealms } from './realm';

/** The parts of n8n that exist once per process: its settings, its logger and its binary store. */
export interface Host {
	/** n8n's user folder, which is temporary. */
	folder: string;
	binaryData: BinaryDataService;
	/** Lines that were logged outside any run, such as while the package was loaded. */
	logs: LogLine[];
	passTimeAsUsual(): void;
}

let current: Promise<Host> | undefined;
let users = 0;

/** How the time of a process passes; returns what ends that. */
export type Passing = () => () => void;

/**
 * n8n's services are singletons of the DI container, so all harnesses of a process share one host.
 * @param passTime outside jest, which alone can let time pass quickly, nothing is to be changed
 */
export async function acquireHost(passTime: Passing = passTimeQuickly): Promise<Host> {
	users += 1;
	current ??= startHost(passTime);
	return await current;
}

export async function releaseHost(): Promise<void> {
	users -= 1;
	if (users > 0 || !current) return;
	const { folder, passTimeAsUsual } = await current;
	current = undefined;
	// It adds a listener for the end of the process, which runs many test files.
	Container.get(SSHClientsManager).onShutdown();
	Container.reset();
	passTimeAsUsual();
	await rm(folder, { recursive: true, force: true });
}

async function startHost(passTime: Passing): Promise<Host> {
	recogniseErrorsOfAllRealms();
	const passTimeAsUsual = passTime();
	const folder = await mkdtemp(path.join(tmpdir(), 'n8n-harness-'));
	// n8n's configuration classes read the environment on first use, which is below. Jest gives each test
	// file its own copy of process.env, so nothing leaks.
	Object.assign(process.env, {
		N8N_USER_FOLDER: folder,
		N8N_ENCRYPTION_KEY: 'harness-encryption-key',
		N8N_DEFAULT_BINARY_DATA_MODE: 'filesystem',
		N8N_LOG_LEVEL: 'silent',
		N8N_SSRF_PROTECTION_ENABLED: 'false', // n8n's default; the platform under test is on the loopback interface
	});
	for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY']) {
		Reflect.deleteProperty(process.env, name);
		Reflect.deleteProperty(process.env, name.toLowerCase());
	}
	const logs: LogLine[] = [];
	Container.set(
		Logger,
		new CapturedLogger(Container.get(GlobalConfig), Container.get(InstanceSettingsConfig), logs),
	);
	Container.get(InstanceSettings).markAsLeader();
	const binaryData = Container.get(BinaryDataService);
	await binaryData.init();
	return { folder, binaryData, logs, passTimeAsUsual };
}
