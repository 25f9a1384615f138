import { escapeMarkdown, markdownLink } from '../../../../nodes/shared/text/markdown';

describe('escapeMarkdown', () => {
	it.each([
		['plain words (with some) punctuation: 1 + 1 = 2.', 'plain words (with some) punctuation: 1 + 1 = 2.'],
		['![x](https://evil.example/?q=1)', String.raw`\!\[x\](https\://evil.example/?q=1)`],
		['[x](javascript:alert(1))', String.raw`\[x\](javascript:alert(1))`],
		['<https://evil.example>', String.raw`\<https\://evil.example\>`],
		['<img src=x onerror=y>', String.raw`\<img src=x onerror=y\>`],
		['www.evil.example a@evil.example', String.raw`www\.evil.example a\@evil.example`],
		['a\n\n# b\r\n[c]: https://d', String.raw`a \# b \[c\]: https\://d`],
		['a\u2028b\u0000c', 'a b c'],
		['`a` **b** __c__ ~~d~~ |e|', String.raw`\`a\` \*\*b\*\* \_\_c\_\_ \~\~d\~\~ \|e\|`],
		['&lt;script&gt;', String.raw`\&lt;script\&gt;`],
		['\\[x](y)', String.raw`\\\[x\](y)`],
	])('escapes %j', (text, expected) => {
		expect(escapeMarkdown(text)).toBe(expected);
	});
});

describe('markdownLink', () => {
	it.each(['javascript:alert(1)', 'data:text/html,x', 'file:///etc/passwd', 'https:evil', 'HTTP', ''])(
		'does not link to %j',
		(url) => {
			expect(markdownLink('a.png', url, true)).toBe('a.png');
		},
	);
});
