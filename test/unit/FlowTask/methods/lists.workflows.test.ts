import { workflowChoices } from '../../../../nodes/FlowTask/methods/lists';

test('the saved workflows are listed by name', () => {
	expect(workflowChoices(['Portrait', 'Poster'], '')).toEqual([
		{ name: 'Portrait', value: 'saved:Portrait' },
		{ name: 'Poster', value: 'saved:Poster' },
	]);
});

test('the search text is offered as a workflow ID', () => {
	expect(workflowChoices(['Portrait', 'Poster'], ' port ')).toEqual([
		{ name: 'Portrait', value: 'saved:Portrait' },
		{ name: 'Workflow with the ID "port"', value: 'port' },
	]);
});

test('an account without saved workflows gets an entry that says what to do instead', () => {
	expect(workflowChoices([], '')).toEqual([
		{ name: expect.stringContaining('enter an ID in the search field above'), value: '' },
	]);
});
