import type { Page } from 'playwright-core';

/** Flaws in the drawing of a workflow. */
export interface CanvasSurvey {
	/** Notes that overlap a node or its name. */
	coveredByNotes: string[];
	/** Names that are crossed by a connection. */
	struckThrough: string[];
	/** Notes that are crossed by a connection. */
	crossedNotes: string[];
	/** Notes that are too small for their text. */
	cutNotes: string[];
	/** Notes that are much taller than their text. */
	emptyNotes: string[];
}

/** The most height that a note may have below its text, at the canvas's full size: about two lines. */
const SPARE_HEIGHT_PX = 45;

/** The script that runs in the page, where the canvas is drawn. */
const SURVEY = `(() => {
	const STICKY = '.vue-flow__node:has([data-test-id="sticky"])';
	const boxOf = (element) => element.getBoundingClientRect();
	const isOver = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
	const titleOf = (note) => note.textContent.trim().split('\\n')[0];
	const notes = [...document.querySelectorAll(STICKY)];
	const nodes = [...document.querySelectorAll('[data-test-id="canvas-node"]')]
		.filter((node) => !node.closest(STICKY))
		.map((node) => {
			const words = [...node.querySelectorAll('[class*="description"] *')].filter(
				(element) => element.children.length === 0 && element.textContent.trim(),
			);
			return {
				name: node.getAttribute('data-node-name'),
				boxes: [boxOf(node), ...words.map(textBox)],
				label: words.map(textBox)[0],
			};
		});
	/** The box of the words alone, which may be narrower than their element. */
	function textBox(element) {
		const range = document.createRange();
		range.selectNodeContents(element);
		return range.getBoundingClientRect();
	}
	const lines = [...document.querySelectorAll('.vue-flow__edge-path')].map((path) => {
		const length = path.getTotalLength();
		const matrix = path.getScreenCTM();
		const steps = Math.ceil(length / 4);
		return Array.from({ length: steps + 1 }, (_, step) =>
			path.getPointAtLength((length * step) / steps).matrixTransform(matrix),
		);
	});
	const crosses = (box) =>
		lines.some((points) =>
			points.some(({ x, y }) => x > box.left + 2 && x < box.right - 2 && y > box.top + 2 && y < box.bottom - 2),
		);
	return {
		coveredByNotes: notes.flatMap((note) =>
			nodes
				.filter(({ boxes }) => boxes.some((box) => isOver(box, boxOf(note))))
				.map(({ name }) => titleOf(note) + ' / ' + name),
		),
		struckThrough: nodes.filter(({ label }) => label && crosses(label)).map(({ name }) => name),
		crossedNotes: notes.filter((note) => crosses(boxOf(note))).map(titleOf),
		cutNotes: notes
			.filter((note) => textBox(note).bottom > boxOf(note).bottom)
			.map(titleOf),
		emptyNotes: notes
			.filter((note) => spareHeight(note) > ${SPARE_HEIGHT_PX})
			.map((note) => titleOf(note) + ': ' + Math.round(spareHeight(note)) + ' px'),
	};
	/** In pixels of the canvas's full size, because a large workflow is drawn smaller. The text's own element fills the note. */
	function spareHeight(note) {
		const texts = document.createTreeWalker(note, NodeFilter.SHOW_TEXT);
		let lowest = -Infinity;
		while (texts.nextNode()) {
			if (texts.currentNode.textContent.trim()) lowest = Math.max(lowest, textBox(texts.currentNode).bottom);
		}
		const { bottom, height } = boxOf(note);
		return ((bottom - lowest) * note.offsetHeight) / height;
	}
})()`;

export async function surveyCanvas(page: Page): Promise<CanvasSurvey> {
	return await page.evaluate<CanvasSurvey>(SURVEY);
}
