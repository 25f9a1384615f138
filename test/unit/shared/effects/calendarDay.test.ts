import { dayAfter, dayOf, isTimeZone } from '../../../../nodes/shared/effects/calendarDay';

test.each([
	['2030-01-01T12:00:00Z', 'UTC', '2030-01-01'],
	['2030-01-01T23:59:59.999Z', 'UTC', '2030-01-01'],
	['2030-01-02T00:00:00Z', 'UTC', '2030-01-02'],
	['2030-01-01T23:30:00Z', 'Europe/Berlin', '2030-01-02'],
	['2030-01-02T04:59:59Z', 'America/New_York', '2030-01-01'],
	['2030-01-01T10:00:00Z', 'Pacific/Kiritimati', '2030-01-02'],
	['2030-03-31T22:30:00Z', 'Europe/Berlin', '2030-04-01'], // daylight saving time began this morning
	['2030-03-31T22:30:00Z', 'America/New_York', '2030-03-31'],
])('at %s the date in %s is %s', (at, timeZone, day) => {
	expect(dayOf(Date.parse(at), timeZone)).toBe(day);
});

test('finds the next day, and tolerates unknown time zones', () => {
	expect(['2030-01-31', '2028-02-28', '2030-12-31'].map(dayAfter)).toEqual([
		...['2030-02-01', '2028-02-29', '2031-01-01'],
	]);
	expect(['UTC', 'Asia/Kolkata', 'DEFAULT', 'Nowhere/Else'].map(isTimeZone)).toEqual([
		...[true, true, false, false],
	]);
});
