import type { ILoadOptionsFunctions } from 'n8n-workflow';

import { searchSeeds, workflowChoices } from '../../../../nodes/FlowTask/methods/lists';

/** n8n cuts longer entries of a list off. */
const SHOWN_CHARS = 55;

test('the saved workflows are listed by name', () => {
	expect(workflowChoices(['Portrait', 'Poster'], '')).toEqual([
		{ name: 'Portrait', value: 'saved:Portrait' },
		{ name: 'Poster', value: 'saved:Poster' },
	]);
});

test('the search text is offered as a workflow ID', () => {
	expect(workflowChoices(['Portrait', 'Poster'], ' port ')).toEqual([
		{ name: 'Portrait', value: 'saved:Portrait' },
		{ name: 'port', value: 'port' },
	]);
});

test('a search text that is a saved name is not offered as an ID, too: the list would show it twice', () => {
	expect(workflowChoices(['Portrait'], 'Portrait')).toEqual([{ name: 'Portrait', value: 'saved:Portrait' }]);
});

test('an account without saved workflows gets an entry that says what to do instead', () => {
	const [entry, ...others] = workflowChoices([], '');
	expect(entry).toMatchObject({
		name: expect.stringContaining('enter a workflow ID above') as string,
		value: '',
	});
	expect(others).toEqual([]);
	expect(entry?.name.length).toBeLessThanOrEqual(SHOWN_CHARS);
});

test('a list that needs the export names the other way to fill in the field', async () => {
	const form = { getCurrentNodeParameter: () => '{}' } as unknown as ILoadOptionsFunctions;
	const { results } = await searchSeeds.call(form, 'anything');
	expect(results).toEqual([{ name: expect.stringContaining("'By Name'") as string, value: '' }]);
	expect(results[0]?.name.length).toBeLessThanOrEqual(SHOWN_CHARS);
});
