// Writes the bench on one page and the image of the README, both from results.json.
import { rounded, type Figure } from './figures';

export interface Results {
	/** The figures of each row's last measurement. */
	rows: Record<string, { date: string; figures: readonly Figure[] }>;
	n8n: string;
	node: string;
	cores: number;
}

/** The page: figures that depend on the machine, one per line with the spread, and counts only if they are missed. */
export function summaryOf({ rows, n8n, node, cores }: Results): string {
	const all = Object.entries(rows).flatMap(([row, { figures }]) =>
		figures.map((figure) => ({ row, ...figure })),
	);
	const counts = all.filter(({ kind }) => kind === 'count');
	const missed = counts.filter(({ isMet }) => !isMet);
	const lines = all
		.filter((figure) => figure.kind === 'time' || missed.some(({ what }) => what === figure.what))
		.map(
			(figure) =>
				`| \`${figure.row}\` | ${figure.what} | ${shown(figure.measured, figure)} | ${spread(figure)} | ${figure.target} | ${figure.isMet ? 'met' : '**missed**'} |`,
		);
	return [
		'# The bench on one page',
		'',
		`Written by \`npm run bench\`: n8n ${n8n}, Node ${node}, ${cores} cores. Medians, or the slower of two executions (\`pressure\`), with the range of the runs where there were several.`,
		`Of ${counts.length} counts (tasks made twice, calls, statements and the like) ${counts.length - missed.length} are as they should be.`,
		'',
		'| row | what | measured | spread | target | |',
		'| --- | --- | --- | --- | --- | --- |',
		...lines,
		'',
	].join('\n');
}

function shown(value: number, { unit }: Figure): string {
	return `${rounded(value)}${unit}`;
}

function spread(figure: Figure): string {
	const { runs = [] } = figure;
	if (runs.length < 2) return '';
	return `${rounded(Math.min(...runs))} to ${shown(Math.max(...runs), figure)}`;
}

/** Answers to what users ask first: is it fast, does it make few calls, is anything lost? */
const TILES = [
	{
		what: 'wall time, 50 images',
		ours: 'FlowTask, 50 items: wall time',
		theirs: 'one at a time, 50 items: wall time',
		beside: 'a loop, one at a time',
	},
	{
		what: 'HTTP calls, 50 images',
		ours: 'FlowTask, 50 items: HTTP calls',
		theirs: 'one at a time, 50 items: HTTP calls',
		beside: 'a loop, one at a time',
	},
	{
		what: 'paid for twice, a tenth of all requests failing',
		ours: 'FlowTask, On Error: Continue: paid for twice',
		theirs: 'all at once, Retry On Fail: paid for twice',
		beside: 'HTTP Request with Retry On Fail',
	},
] as const;

const TILE_PX = 300;

/** The image: three tiles, readable on a light and a dark page. */
export function figureOf({ rows }: Results): string {
	const figures = Object.values(rows).flatMap((row) => row.figures);
	const valueOf = (what: string): string => {
		const figure = figures.find((one) => one.what === what);
		if (!figure) throw new Error(`results.json has no figure "${what}"`);
		return shown(figure.measured, figure);
	};
	const tiles = TILES.map(({ what, ours, theirs, beside }, index) => {
		const x = index * TILE_PX + TILE_PX / 2;
		return [
			`<text x="${x}" y="24" class="what">${what}</text>`,
			`<text x="${x}" y="78" class="ours">${valueOf(ours)}</text>`,
			`<text x="${x}" y="108" class="theirs">${beside}: ${valueOf(theirs)}</text>`,
		].join('\n');
	});
	const width = TILES.length * TILE_PX;
	return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} 128" width="${width}" role="img">
<style>text { font-family: system-ui, sans-serif; text-anchor: middle; font-size: 13px; fill: #7b8494 } .ours { font-size: 44px; font-weight: 600; fill: #14a37f }</style>
${tiles.join('\n')}
</svg>
`;
}
