import type { ILoadOptionsFunctions, INode } from 'n8n-workflow';

import { searchModels } from '../../../nodes/shared/models';

const NODE: INode = { id: '1', name: 'Chat', type: 't', typeVersion: 1, position: [0, 0], parameters: {} };

/** A deployment that answers the list in one way. */
async function search(answer: object, filter?: string, modelsPath = '/maas/v1/models') {
	const context = {
		getNode: () => NODE,
		getCredentials: async () =>
			await Promise.resolve({ apiKey: 'sk-0123456789abcdef', baseUrl: 'https://p.example', modelsPath }),
		helpers: {
			httpRequestWithAuthentication: async () =>
				await Promise.resolve({ statusCode: 200, headers: {}, ...answer }),
		},
	};
	return await searchModels.call(context as unknown as ILoadOptionsFunctions, filter);
}

test.each([
	['{"data":[{"id":"b"},{"id":"a"},{"id":"a"}]}', ['a', 'b']],
	['{"models":[{"model":"a"},{"name":"b"},"c",5,null,{}]}', ['a', 'b', 'c']],
	['["a"]', ['a']],
	['{"code":0,"msg":"Success","data":{"list":["a"]}}', ['a']],
])('models in %s', async (body, ids) => {
	const { results } = await search({ body });
	expect(results.map(({ value }) => value)).toEqual(ids);
});

test('a filter finds parts of a name, upper or lower case', async () => {
	const { results } = await search({ body: '["Vendor/Alpha","vendor/beta"]' }, 'ALPH');
	expect(results).toEqual([{ name: 'Vendor/Alpha', value: 'Vendor/Alpha' }]);
});

test.each([
	[{ body: '{"data":[]}' }, 'The platform listed no models'],
	[{ body: '<html>' }, 'The platform listed no models'],
	[{ body: `${'{"data":'.repeat(100_000)}[]${'}'.repeat(100_000)}` }, 'The platform listed no models'],
	[{ body: '['.repeat(1_000_000) }, 'The platform listed no models'],
	[{ statusCode: 400, body: '' }, 'refused to list the models: no reason was given (HTTP 400)'],
	[{ body: undefined }, 'The platform listed no models'],
	[{ statusCode: 404, body: 'Not found' }, 'The platform has no list of models under the "Models Path"'],
	[
		{ statusCode: 401, body: '{"error":{"message":"bad key sk-0123456789abcdef"}}' },
		'does not accept the API key',
	],
	[{ body: '{"code":401,"msg":"bad key"}' }, 'does not accept the API key'],
	[{ statusCode: 302, headers: { Location: 'https://other.example/x?k=1' } }, 'The base URL leads elsewhere'],
])('%j is said', async (answer, said) => {
	const error: unknown = await search(answer).catch((thrown: unknown) => thrown);
	expect(error).toMatchObject({ message: expect.stringContaining(said) });
	expect(JSON.stringify(error)).not.toContain('sk-0123456789abcdef');
});

test('without a path nothing is asked', async () => {
	await expect(search({ body: '["a"]' }, '', '')).rejects.toThrow(
		'The credential has no "Models Path", so there is no list of models',
	);
});
