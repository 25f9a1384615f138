import fc from 'fast-check';

import { nameInDisposition } from '../../../../nodes/shared/files/contentDisposition';
import { safeFileName } from '../../../../nodes/shared/files/fileName';

it.each<[string | undefined, string | undefined]>([
	[undefined, undefined],
	['', undefined],
	['inline', undefined],
	['attachment; filename=cat.png', 'cat.png'],
	['attachment; filename="a cat; really.png"; size=3', 'a cat; really.png'],
	[String.raw`attachment; filename="a \"cat\".png"`, 'a "cat".png'],
	["attachment; filename=x.png; filename*=UTF-8''na%C3%AFve%20%E7%8C%AB.png", 'naïve 猫.png'],
	["attachment; filename=plain.png; filename*=koi8-r''%F0.png", 'plain.png'],
	['ATTACHMENT; FileName = cat.png ', 'cat.png'],
	['attachment; filename="%E7%8C%AB.png"', '猫.png'],
	['attachment; filename="100%.png"', '100%.png'],
	["attachment; filename*=utf8'en'na%C3%AFve.png", 'naïve.png'],
	[`attachment; filename*=UTF-8''${Buffer.from('猫.png').toString('latin1')}`, '猫.png'],
	[`attachment; filename="${Buffer.from('猫.png').toString('latin1')}"`, '猫.png'],
	['attachment; filename="caf\u00e9.png"', 'café.png'],
	['filename="cat.png"', 'cat.png'],
	['attachment; filename=""', undefined],
])('reads from %j the name %j', (header, expected) => {
	expect(nameInDisposition(header)).toBe(expected);
});

it.each([
	["attachment; filename*=UTF-8''..%2F..%2Fetc%2Fcron.d%2Fx.png", 'x.png'],
	[String.raw`attachment; filename="..\\..\\CON .png"`, 'CON_.png'],
	["attachment; filename*=UTF-8''a%00%0Ab%E2%80%AE.png", 'a__b_.png'],
])('makes the hostile name in %j safe', (header, expected) => {
	expect(safeFileName(nameInDisposition(header) ?? '', 'png')).toBe(expected);
});

it('never throws', () => {
	fc.assert(
		fc.property(fc.string({ unit: 'binary' }), (text) => {
			nameInDisposition(`attachment; filename=${text}`);
			nameInDisposition(`attachment; filename*=UTF-8''${text}`);
			nameInDisposition(text);
		}),
	);
});
