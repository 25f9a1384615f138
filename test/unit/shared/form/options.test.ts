import { readNumberOptions } from '../../../../nodes/shared/form/options';

const OPTIONS = {
	retries: { label: 'Retries', min: 0, max: 10, fallback: 3 },
	temperature: { label: 'Temperature', min: 0, max: 2 },
} as const;

test.each([
	[{}, 3, undefined],
	[{ retries: '', temperature: null }, 3, undefined],
	[{ retries: 0, temperature: '0.5' }, 0, 0.5],
	[{ retries: ' 7 ' }, 7, undefined],
])('%j', (given, retries, temperature) => {
	const read = readNumberOptions(given, OPTIONS);
	expect(read.ok && [read.value('retries'), read.value('temperature')]).toEqual([retries, temperature]);
});

test.each([11, -1, 'x', ' ', NaN, Infinity, true, [], [5], {}, new Date()])(
	'%p is not a number of retries',
	(retries) => {
		expect(readNumberOptions({ retries }, OPTIONS)).toMatchObject({
			ok: false,
			failure: { message: '"Retries" must be a number from 0 to 10', kind: 'badInput' },
		});
	},
);

test('all that is wrong is said at once', () => {
	const read = readNumberOptions({ retries: 'x', temperature: 9 }, OPTIONS);
	expect(read.ok ? '' : read.failure.message).toBe(
		'"Retries" must be a number from 0 to 10; "Temperature" must be a number from 0 to 2',
	);
});

test.each([
	[{ retries: 'x' }, 'Correct it under "Options" in the node. Nothing was sent.'],
	[{ timeout: 'x' }, 'Correct it in the field "Timeout" in the node. Nothing was sent.'],
	[
		{ retries: 'x', temperature: 'x', timeout: 'x' },
		'Correct it under "Options" and in the field "Timeout" in the node. Nothing was sent.',
	],
])('%j: the advice names where it stands', (given, advice) => {
	const timeout = { label: 'Timeout', min: 1, max: 9, isField: true };
	const read = readNumberOptions<keyof typeof OPTIONS | 'timeout'>(given, { ...OPTIONS, timeout });
	expect(read).toMatchObject({ ok: false, failure: { advice } });
});
