import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';

/** The only address on which anything that a test or the demo starts listens. */
export const LOOPBACK = '127.0.0.1';

/** Finds ports that are free now. All are held until the last one is known, so no two are equal. */
export async function freePorts(count: number): Promise<number[]> {
	const servers = await Promise.all(Array.from({ length: count }, listenAnywhere));
	const ports = servers.map((server) => (server.address() as AddressInfo).port);
	await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
	return ports;
}

async function listenAnywhere() {
	const server = createServer();
	await new Promise<void>((resolve, reject) => {
		server.once('error', reject);
		server.listen(0, LOOPBACK, resolve);
	});
	return server;
}
