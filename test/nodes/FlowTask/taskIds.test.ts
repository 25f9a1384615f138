import { sharedStage } from '../harness/stage';
import { openStage } from './flowTask.fixture';

const stage = sharedStage(openStage);

const LONG = ['7200000000000000001', '7200000000000000002'];

/** The IDs that the node polled. */
function askedIds(): string[] {
	return [...new Set(stage.platform.books().polls.flatMap(({ ids }) => ids))].sort();
}

test.each<[string, string]>([
	['a JSON list of numbers', `[${LONG.join(', ')}]`],
	['a JSON list of texts', JSON.stringify(LONG)],
	['a JSON list of items', `[{"taskId": ${LONG[0]}}, {"taskId": "${LONG[1]}"}]`],
	['a list between fences', `\`\`\`json\n[${LONG.join(',')}]\n\`\`\``],
	['a list that lost its end', `["${LONG[0]}", ${LONG[1]}`],
	['lines', LONG.join('\n')],
	['words', LONG.join(', ')],
	['an expression that returns such a text', `={{ '[${LONG.join(',')}]' }}`],
])('task IDs above 2^53 keep their digits: %s', async (_name, taskIds) => {
	for (const operation of ['get', 'wait']) {
		const run = await stage.run([{ json: {} }], { operation, taskIds }, { onError: 'continueErrorOutput' });
		expect(run.status).toBe('success');
		expect(askedIds()).toEqual(LONG);
		stage.platform.resetBooks();
	}
});

test.each(['={{ 7200000000000000001 }}', '={{ [7200000000000000001, "b"] }}', '={{ $json }}'])(
	'the task IDs %s, which n8n has rounded, are not sent',
	async (taskIds) => {
		for (const operation of ['get', 'wait']) {
			const run = await stage.run([{ json: { taskId: 2 ** 60 } }], { operation, taskIds });
			expect(run.error?.message).toMatch(
				/^'Task IDs' contains (7200000000000000000|1152921504606847000), which is a number beyond 9007199254740991, so n8n rounds its last digits/,
			);
			expect(run.error?.description).toContain('pass it as text: in JSON, put it in quotation marks');
			expect(askedIds()).toEqual([]);
		}
	},
);

test('a list may lack quotation marks, and an ID may be a number', async () => {
	const items = [
		{ json: { ids: '[3f1c, 77b]' } },
		{ json: { ids: 12345 } },
		{ json: { ids: '{"taskId": "x-y"}' } },
	];
	const parameters = { operation: 'get', taskIds: '={{ $json.ids }}' };
	const run = await stage.run(items, parameters, { onError: 'continueErrorOutput' });
	expect(run.items(1)).toHaveLength(4);
	expect(askedIds()).toEqual(['12345', '3f1c', '77b', 'x-y']);
});
