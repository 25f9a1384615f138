import { Readable } from 'node:stream';

import type { ILoadOptionsFunctions, INode } from 'n8n-workflow';

import { searchModels } from '../../../../nodes/shared/chat/models';

const NODE: INode = { id: '1', name: 'Chat', type: 't', typeVersion: 1, position: [0, 0], parameters: {} };

/** Searches the models of a deployment that returns this answer. */
async function search(answer: { body?: string | Readable }, filter?: string, modelsPath = '/maas/v1/models') {
	const context = {
		getNode: () => NODE,
		getCredentials: async () =>
			await Promise.resolve({ apiKey: 'sk-0123456789abcdef', baseUrl: 'https://p.example', modelsPath }),
		helpers: {
			httpRequestWithAuthentication: async () =>
				await Promise.resolve({
					...{ statusCode: 200, headers: {}, ...answer },
					...(typeof answer.body === 'string' && { body: Readable.from([Buffer.from(answer.body)]) }),
				}),
		},
	};
	return await searchModels.call(context as unknown as ILoadOptionsFunctions, filter);
}

/** A list that never ends. */
function endless(): Readable {
	const piece = Buffer.from('"model",'.repeat(8_192));
	return Readable.from(
		(function* () {
			yield Buffer.from('[');
			while (true) yield piece;
		})(),
	);
}

test.each([
	['{"data":[{"id":"b"},{"id":"a"},{"id":"a"}]}', ['a', 'b']],
	['{"models":[{"model":"a"},{"name":"b"},"c",5,null,{}]}', ['a', 'b', 'c']],
	['["a"]', ['a']],
	[String.raw`["model of \u0073k-0123456789abcdef"]`, ['model of [hidden]']],
	['{"code":0,"msg":"Success","data":{"list":["a"]}}', ['a']],
])('finds the models in %s', async (body, ids) => {
	const { results } = await search({ body });
	expect(results.map(({ value }) => value)).toEqual(ids);
});

test('gives up on an endless list', async () => {
	await expect(search({ body: endless() })).rejects.toThrow('the answer is too large');
});

test('shows the first thousand of a long list, and the filter finds the others', async () => {
	const body = JSON.stringify(
		Array.from({ length: 5_000 }, (_, index) => `m${String(index).padStart(4, '0')}`),
	);
	expect((await search({ body })).results).toHaveLength(1_000);
	expect((await search({ body }, '4999')).results).toEqual([{ name: 'm4999', value: 'm4999' }]);
});

test('the filter matches any part of a name and ignores case', async () => {
	const { results } = await search({ body: '["Vendor/Alpha","vendor/beta"]' }, 'ALPH');
	expect(results).toEqual([{ name: 'Vendor/Alpha', value: 'Vendor/Alpha' }]);
});

test.each([
	[{ body: '{"data":[]}' }, 'The platform lists no models'],
	[{ body: '<html>' }, 'The platform lists no models'],
	[{ body: `${'{"data":'.repeat(100_000)}[]${'}'.repeat(100_000)}` }, 'The platform lists no models'],
	[{ body: '['.repeat(1_000_000) }, 'The platform lists no models'],
	[{ statusCode: 400, body: '' }, 'refused the request to list the models: no reason was given (HTTP 400)'],
	[{ body: undefined }, 'the answer could not be read'],
	[{ statusCode: 404, body: 'Not found' }, "The platform has no list of models at the 'Models Path'"],
	[
		{ statusCode: 401, body: '{"error":{"message":"bad key sk-0123456789abcdef"}}' },
		'does not accept the API key',
	],
	[{ body: '{"code":401,"msg":"bad key"}' }, 'does not accept the API key'],
	[
		{ statusCode: 302, headers: { Location: 'https://other.example/x?k=1' }, body: '' },
		'The base URL redirects to another address',
	],
])('explains the answer %j', async (answer, said) => {
	const error: unknown = await search(answer).catch((thrown: unknown) => thrown);
	expect(error).toMatchObject({ message: expect.stringContaining(said) });
	expect(JSON.stringify(error)).not.toContain('sk-0123456789abcdef');
});

test('reports a busy platform without advising an option that a list does not have', async () => {
	await expect(search({ ...{ statusCode: 429 }, body: '{"msg":"slow down"}' })).rejects.toThrow(
		"The platform is not accepting more requests, so the node could not list the models. Open the list again later, or choose 'By ID' and enter the model's ID. The platform said: slow down.",
	);
});

test('sends nothing without a path', async () => {
	await expect(search({ body: '["a"]' }, '', '')).rejects.toThrow(
		"The credential has no 'Models Path', so there is no list of models",
	);
});
