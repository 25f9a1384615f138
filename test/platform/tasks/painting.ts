import { pick, seededRandom } from '../randomness';
import type { Random } from '../randomness';
import type { Sampling, Size } from './recipe';

interface Colour {
	readonly hue: number;
	readonly saturation: number;
	readonly lightness: number;
}

const colour = (hue: number, saturation = 70, lightness = 50): Colour => ({ hue, saturation, lightness });

/** Words with a colour of their own, so that a prompt about a red fox results in a red image. */
const WORD_COLOURS: Readonly<Record<string, Colour>> = {
	red: colour(2, 80),
	orange: colour(28, 90),
	gold: colour(44, 80),
	golden: colour(44, 80),
	green: colour(125, 60, 40),
	blue: colour(216, 80),
	black: colour(220, 12, 12),
	white: colour(210, 20, 94),
	sea: colour(200, 75, 42),
	lake: colour(205, 60, 48),
	snow: colour(205, 30, 92),
	forest: colour(135, 50, 27),
	meadow: colour(95, 55, 48),
	sunset: colour(18, 90, 56),
	sunrise: colour(34, 90, 62),
	night: colour(232, 55, 16),
	fox: colour(18, 80, 48),
};

/** Chooses colours by the words of a prompt, or by their letters if the words have none. */
function palette(sampling: Sampling): [Colour, Colour, Colour] {
	const words = sampling.positive.toLowerCase().match(/\p{L}+/gu) ?? [];
	const named = words.flatMap((word) => (Object.hasOwn(WORD_COLOURS, word) ? [WORD_COLOURS[word]] : []));
	const random = seededRandom(`palette/${sampling.positive}`);
	const invented = (): Colour => colour(random() * 360, 45 + random() * 40, 30 + random() * 40);
	const [first = invented(), second = invented(), third = invented()] = named;
	// Models and the negative prompt tint the colours of the words, but do not replace them.
	const tint = seededRandom(`tint/${sampling.negative}/${sampling.models.join()}`);
	const tinted = ({ hue, saturation, lightness }: Colour): Colour =>
		colour(hue + (tint() - 0.5) * 44, saturation, Math.min(95, Math.max(6, lightness + (tint() - 0.5) * 16)));
	return [tinted(first), tinted(second), tinted(third)];
}

type Shape = (random: Random, size: Size, paint: string) => string;

const at = (random: Random, length: number): string => (random() * length).toFixed(1);

const SHAPES: readonly Shape[] = [
	function disc(random, { width, height }, paint) {
		const radius = (0.02 + 0.13 * random() ** 2) * Math.min(width, height);
		return `<circle cx="${at(random, width)}" cy="${at(random, height)}" r="${radius.toFixed(1)}" ${paint}/>`;
	},
	function wave(random, { width, height }, paint) {
		const y = random() * height;
		const [rise, fall] = [(random() - 0.5) * height * 0.5, (random() - 0.5) * height * 0.5];
		const depth = height * (0.03 + random() * 0.12);
		const top = `C${width * 0.3} ${y + rise} ${width * 0.7} ${y + fall} ${width} ${y}`;
		const bottom = `C${width * 0.7} ${y + fall + depth} ${width * 0.3} ${y + rise + depth} 0 ${y + depth}`;
		return `<path d="M0 ${y}${top}V${y + depth}${bottom}Z" ${paint}/>`;
	},
	function tile(random, { width, height }, paint) {
		const side = Math.max(4, Math.min(width, height) / 12);
		const snap = (length: number): number => Math.floor((random() * length) / side) * side;
		const [x, y] = [snap(width), snap(height)];
		const [across, down] = [side * Math.ceil(random() * 3), side * Math.ceil(random() * 3)];
		return `<rect x="${x}" y="${y}" width="${across}" height="${down}" ${paint}/>`;
	},
];

function css({ hue, saturation, lightness }: Colour, random: Random, contrast: number): string {
	const lighter = Math.min(97, Math.max(4, lightness + (random() - 0.5) * 50 * contrast));
	return `hsl(${(hue + (random() - 0.5) * 26).toFixed(0)},${saturation.toFixed(0)}%,${lighter.toFixed(0)}%)`;
}

function styleOf({ positive, negative, models }: Sampling): string {
	return JSON.stringify([positive, negative, models]);
}

/**
 * The image of a sampling: the words decide the colours, the seed the pattern, the steps the number of shapes and cfg
 * the contrast. `index` is the position in a batch, whose images differ.
 */
export function paintingSvg(sampling: Sampling, index: number, size: Size): string {
	const { seed, sampler, scheduler, steps, cfg } = sampling;
	const { width, height } = size;
	const colours = palette(sampling);
	const random = seededRandom(`pattern/${seed}/${index}`);
	const touch = seededRandom(`touch/${seed}/${index}/${sampler}/${scheduler}/${styleOf(sampling)}`);
	const contrast = Math.min(1.6, 0.3 + cfg / 10);
	const shape = pick(SHAPES, random) ?? pick(SHAPES, random);
	const second = pick(SHAPES, random);
	const shapes: string[] = [];
	for (let step = 0; step < 3 + steps; step++) {
		const tint = colours[1 + (step % 2)] ?? colours[0];
		const opacity = Math.min(0.95, 0.3 + cfg / 25 + touch() * 0.2).toFixed(2);
		const paint = `fill="${css(tint, touch, contrast)}" opacity="${opacity}"`;
		const draw = step % 4 === 3 ? second : shape;
		if (draw !== undefined) shapes.push(draw(random, size, paint));
	}
	const [from, to] = [css(colours[0], touch, contrast), css(colours[0], touch, contrast)];
	const turn = (random() * 360).toFixed(0);
	return (
		`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">` +
		`<defs><linearGradient id="g" gradientTransform="rotate(${turn} .5 .5)">` +
		`<stop offset="0" stop-color="${from}"/><stop offset="1" stop-color="${to}"/></linearGradient></defs>` +
		`<rect width="100%" height="100%" fill="url(#g)"/>${shapes.join('')}</svg>`
	);
}

/** The blur of an image that few steps leave unfinished. */
export function unfinishedBlur(steps: number): number | undefined {
	return steps < 15 ? 0.4 + (15 - steps) * 0.45 : undefined;
}

function escapeXml(text: string): string {
	return (
		text
			.toWellFormed()
			// Characters that XML does not allow would make the whole image fail.
			.replace(/[\p{Cc}\ufffe\uffff]+/gu, ' ')
			.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
	);
}

/** A dark band at the foot, as wide as the image, with the lines in small print. */
export function labelSvg(lines: readonly string[], width: number): { svg: string; height: number } {
	const font = Math.max(8, Math.min(18, Math.round(width / 40)));
	const room = Math.max(4, Math.floor((width - font) / (font * 0.56)));
	const rows = lines.map((line, row) => {
		const characters = [...line.replace(/\s+/g, ' ')];
		const shown =
			characters.length > room ? `${characters.slice(0, room - 1).join('')}…` : characters.join('');
		const y = Math.round(font * (1.3 + row * 1.35));
		return `<text x="${font / 2}" y="${y}" fill="#fff" font-family="sans-serif" font-size="${font}">${escapeXml(shown)}</text>`;
	});
	const height = Math.round(font * (0.7 + lines.length * 1.35));
	const svg =
		`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">` +
		`<rect width="100%" height="100%" fill="#000" opacity="0.62"/>${rows.join('')}</svg>`;
	return { svg, height };
}
