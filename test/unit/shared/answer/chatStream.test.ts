import fc from 'fast-check';

import { ChatStreams, type ChatStream, type SendChunk } from '../../../../nodes/shared/answer/chatStream';
import { redactor } from '../../../../nodes/shared/text/redact';
import { turn } from '../../testClock';

const KEY = 'sk-Abcdef0123456789';
const NOTHING_HIDDEN = redactor([]);

function recorder(send?: SendChunk) {
	const sent: string[] = [];
	const record: SendChunk = async (kind, itemIndex, text) => {
		await send?.(kind, itemIndex, text);
		sent.push(`${itemIndex} ${kind}${text === undefined ? '' : ` ${text}`}`);
	};
	return { sent, record };
}

test('streams the first item live, and keeps the next one until the first has ended', async () => {
	const { sent, record } = recorder();
	const outlets = new ChatStreams(record, NOTHING_HIDDEN);
	const [first, second] = [outlets.of(0), outlets.of(1)];
	await second.write('b');
	await first.write('a');
	expect(sent).toEqual(['0 begin', '0 item a']);
	await second.end();
	await first.end();
	expect(sent).toEqual(['0 begin', '0 item a', '0 end', '1 begin', '1 item b', '1 end']);
});

test('streams an item live once its turn comes', async () => {
	const { sent, record } = recorder();
	const outlets = new ChatStreams(record, NOTHING_HIDDEN);
	await outlets.of(0).end();
	const second = outlets.of(1);
	await second.write('b');
	expect(sent.at(-1)).toBe('1 item b');
});

test('ends an item that fails with an error chunk, and then streams the next', async () => {
	const { sent, record } = recorder();
	const outlets = new ChatStreams(record, NOTHING_HIDDEN);
	const first = outlets.of(0);
	await first.write('half');
	await first.fail('It broke off');
	await first.end();
	await first.fail('again');
	await outlets.of(1).end();
	// A chat shows all of it in a row, and n8n's words about the failure after it.
	expect(sent).toEqual([
		'0 begin',
		'0 item half',
		'0 item \n\n',
		'0 error It broke off\n\n',
		'1 begin',
		'1 end',
	]);
});

test('adds nothing to an item that ended before its turn', async () => {
	const { sent, record } = recorder();
	const outlets = new ChatStreams(record, NOTHING_HIDDEN);
	const [first, second] = [outlets.of(0), outlets.of(1)];
	await second.end();
	await second.fail('again');
	await second.end();
	await first.end();
	expect(sent).toEqual(['0 begin', '0 end', '1 begin', '1 end']);
});

test('ends an item once even if it is ended twice at the same time', async () => {
	const { sent, record } = recorder();
	const outlets = new ChatStreams(record, NOTHING_HIDDEN);
	await outlets.of(0).write('a');
	await Promise.all([outlets.of(0).end(), outlets.of(0).fail('stopped'), outlets.of(1).fail('stopped')]);
	expect(sent).toEqual(['0 begin', '0 item a', '0 end', '1 begin', '1 error stopped\n\n']);
});

test('keeps each chunk with its item, in order, if an item ends while others write', async () => {
	const { sent, record } = recorder(async () => {
		for (let wait = 20; wait > 0; wait--) await Promise.resolve();
	});
	const outlets = new ChatStreams(record, NOTHING_HIDDEN);
	const [a, b, c, d] = [outlets.of(0), outlets.of(1), outlets.of(2), outlets.of(3)];
	const speak = async (outlet: ChatStream, name: string, words: number): Promise<void> => {
		for (let word = 1; word <= words; word++) await outlet.write(`${name}${word}`);
		await outlet.end();
	};
	await Promise.all([speak(a, 'a', 2), speak(b, 'b', 6), speak(c, 'c', 3), speak(d, 'd', 9)]);
	const told = (name: string, index: number, words: number): string[] => [
		`${index} begin`,
		...Array.from({ length: words }, (_, word) => `${index} item ${name}${word + 1}`),
		`${index} end`,
	];
	expect(sent).toEqual([...told('a', 0, 2), ...told('b', 1, 6), ...told('c', 2, 3), ...told('d', 3, 9)]);
});

test('hides a key that arrives in pieces for every item, and loses nothing else', async () => {
	const { sent, record } = recorder();
	const outlets = new ChatStreams(record, redactor([KEY]));
	const [first, second] = [outlets.of(0), outlets.of(1)];
	await second.write(`b ${KEY.slice(0, 4)}`);
	await first.write('a s');
	await first.write(KEY.slice(1, 9));
	await first.write(`${KEY.slice(9)} asks`);
	await second.write(KEY.slice(4));
	await first.end();
	await second.fail('It broke off');
	expect(sent).toEqual([
		...['0 begin', '0 item a ', '0 item [hidden] ask', '0 item s', '0 end'],
		...['1 begin', '1 item b ', '1 item [hidden]', '1 item \n\n', '1 error It broke off\n\n'],
	]);
});

test('reports a failure as text, which shows no image in a chat', async () => {
	const { sent, record } = recorder();
	await new ChatStreams(record, redactor([KEY])).of(0).fail('![x](https://evil.example)');
	expect(sent.at(-1)?.trimEnd()).toBe(String.raw`0 error \!\[x\](https\://evil.example)`);
});

test('says a failure without the mark of an error if n8n will send an error of its own', async () => {
	const { sent, record } = recorder();
	const outlets = new ChatStreams(record, NOTHING_HIDDEN, true);
	await outlets.of(0).fail('It broke off');
	await outlets.of(1).warn('Nothing came');
	expect(sent).toEqual([
		...['0 begin', '0 item It broke off\n\n', '0 end'],
		...['1 begin', '1 error Nothing came\n\n'],
	]);
});

test('tolerates a listener that has gone', async () => {
	let calls = 0;
	const outlets = new ChatStreams(async () => {
		calls++;
		await Promise.reject(new Error('gone'));
	}, NOTHING_HIDDEN);
	for (const index of [0, 1]) {
		const outlet = outlets.of(index);
		await outlet.write('x');
		await outlet.end();
	}
	expect(calls).toBe(6);
});

test('streams item after item, each in order, whenever items write and however slow the listener is', async () => {
	await fc.assert(
		fc.asyncProperty(
			fc.integer({ min: 1, max: 5 }).chain((count) =>
				fc.tuple(
					fc.constant(count),
					fc.array(fc.tuple(fc.nat(count - 1), fc.constantFrom('say', 'say', 'end', 'fail')), {
						maxLength: 30,
					}),
					fc.array(fc.nat(3), { minLength: 1, maxLength: 5 }),
				),
			),
			async ([count, script, delays]) => {
				let sends = 0;
				const { sent, record } = recorder(async () => {
					for (let wait = delays[sends++ % delays.length] ?? 0; wait > 0; wait--) await Promise.resolve();
				});
				const streams = new ChatStreams(record, NOTHING_HIDDEN);
				const outlets = Array.from({ length: count }, (_, index) => streams.of(index));
				const expected: string[][] = outlets.map(() => []);
				const over = new Set<number>();
				const under: Promise<void>[] = [];
				const finish = [...script, ...outlets.map((_, index) => [index, 'end'] as const)];
				let words = 0;
				for (const [index, action] of finish) {
					if (over.has(index)) continue;
					if (action !== 'say') over.add(index);
					const word = `w${words++}`;
					const outlet = outlets[index];
					const lines = expected[index];
					if (!outlet || !lines) continue;
					if (lines.length === 0) lines.push(`${index} begin`);
					else if (action === 'fail') lines.push(`${index} item \n\n`);
					lines.push(
						`${index} ${action === 'say' ? `item ${word}` : action === 'end' ? 'end' : `error ${word}\n\n`}`,
					);
					under.push(
						action === 'say' ? outlet.write(word) : action === 'end' ? outlet.end() : outlet.fail(word),
					);
					// Each call is awaited, so that the expected order is known.
					await under.at(-1);
				}
				await Promise.all(under);
				await turn();
				expect(sent).toEqual(expected.flat());
			},
		),
		{ numRuns: 150 },
	);
});
