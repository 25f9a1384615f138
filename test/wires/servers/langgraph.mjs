// LangGraph's server for development, in memory, with a graph whose model is `script.mjs`.
import { createServer } from 'node:net';
import { join } from 'node:path';
import { startServer } from '@langchain/langgraph-api/server';
import { listens } from './script.mjs';

/** The server passes no port 0 on as such: it would report its name for it. */
async function freePort() {
	const probe = createServer().listen(0, '127.0.0.1');
	await new Promise((resolve) => probe.once('listening', resolve));
	const { port } = probe.address();
	await new Promise((resolve) => probe.close(resolve));
	return port;
}

const port = Number(process.env.PORT) || (await freePort());
await startServer({
	port,
	host: '127.0.0.1',
	nWorkers: 10,
	// It writes its threads into its folder.
	cwd: process.cwd(),
	graphs: { 'mine-1': `${join(import.meta.dirname, 'langgraphGraph.mjs')}:graph` },
	auth: { path: `${join(import.meta.dirname, 'langgraphGraph.mjs')}:auth`, disable_studio_auth: true },
});
listens(port);
