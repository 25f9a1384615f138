// npm run bench: measures how far the nodes are from what is possible, and from what people build today.
// --only=<row> measures one row, --quick the counts alone. See README.md.
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type Figure } from './figures';
import { agentRivals } from './rows/agentRivals';
import { agents } from './rows/agents';
import { batch } from './rows/batch';
import { chance } from './rows/chance';
import { chats, questions } from './rows/chats';
import { cpu } from './rows/cpu';
import { faults } from './rows/faults';
import { fleet } from './rows/fleet';
import { growth, pieces } from './rows/growth';
import { largeExports } from './rows/largeExport';
import { latency } from './rows/latency';
import { load } from './rows/load';
import { files } from './rows/memory';
import { record } from './rows/record';
import { pressure } from './rows/pressure';
import { racing } from './rows/racing';
import { rivals } from './rows/rivals';
import { sessions } from './rows/sessions';
import { downloads, upload } from './rows/slowLines';
import { sse } from './rows/sse';
import { Stage, type Row } from './stage';
import { figureOf, summaryOf, type Results } from './summary';

const ROWS: readonly Row[] = [
	...[
		batch,
		latency,
		rivals,
		faults,
		pressure,
		files,
		upload,
		downloads,
		growth,
		pieces,
		record,
		fleet,
		chance,
	],
	...[sse, chats, questions, sessions, agents, agentRivals, racing, load, largeExports, cpu],
];

const resultsFile = join(__dirname, 'results.json');
const summaryFile = join(__dirname, 'SUMMARY.md');
const figureFile = join(__dirname, '..', 'docs', 'images', 'figures.svg');

const versionIn = (file: string): string =>
	(JSON.parse(readFileSync(join(__dirname, '..', file), 'utf8')) as { version: string }).version;

function readResults(): Results['rows'] {
	try {
		return (JSON.parse(readFileSync(resultsFile, 'utf8')) as Results).rows;
	} catch {
		return {};
	}
}

/** Saves the figures of a row; rows that were not measured this time keep their last ones. */
function save(name: string, figures: readonly Figure[]): void {
	const rows = { ...readResults(), [name]: { date: new Date().toISOString().slice(0, 10), figures } };
	const results: Results = {
		n8n: versionIn('test/e2e/node_modules/n8n/package.json'),
		node: process.versions.node,
		cores: availableParallelism(),
		rows: Object.fromEntries(
			ROWS.flatMap((row) => {
				const known = rows[row.name];
				return known ? [[row.name, known]] : [];
			}),
		),
	};
	writeFileSync(resultsFile, `${JSON.stringify(results, null, 2)}\n`);
	writeFileSync(summaryFile, summaryOf(results));
	writeFileSync(figureFile, figureOf(results));
}

function print(figures: readonly Figure[]): void {
	console.table(Object.fromEntries(figures.map((figure) => [figure.what, describe(figure)])));
}

function chosenRows(only: string | undefined, isQuick: boolean): readonly Row[] {
	if (only === undefined) return isQuick ? ROWS.filter((row) => row.isQuick) : ROWS;
	const chosen = ROWS.filter(({ name }) => only.split(',').includes(name));
	if (chosen.length > 0) return chosen;
	throw new Error(`There is no row "${only}". Rows: ${ROWS.map(({ name }) => name).join(', ')}`);
}

async function main(): Promise<boolean> {
	const { values } = parseArgs({
		options: { only: { type: 'string' }, quick: { type: 'boolean', default: false } },
	});
	const rows = chosenRows(values.only, values.quick);
	const stage = await Stage.open(values.quick);
	const all: Figure[] = [];
	const broken: string[] = [];
	try {
		for (const row of rows) {
			const startedMs = Date.now();
			try {
				const figures = await row.measure(stage);
				all.push(...figures);
				if (!values.quick) save(row.name, figures);
				print(figures);
			} catch (error) {
				console.error(error);
				broken.push(row.name);
			}
			console.log(`${row.name}: ${((Date.now() - startedMs) / 1000).toFixed(0)} s\n`);
		}
	} finally {
		await stage.close();
	}
	const missed = all.filter(({ isMet }) => !isMet);
	console.log(`${all.length - missed.length} of ${all.length} figures as they should be`);
	for (const { what } of missed) console.log(`missed: ${what}`);
	for (const name of broken) console.log(`could not be measured: ${name}`);
	return broken.length === 0 && missed.every(({ kind }) => kind !== 'count');
}

main().then(
	(isGood) => {
		process.exitCode = isGood ? 0 : 1;
	},
	(error: unknown) => {
		console.error(error);
		process.exitCode = 1;
	},
);
