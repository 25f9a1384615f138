import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';

const SLAB = Buffer.alloc(64 * 1024);
for (let offset = 0; offset < SLAB.length; offset += 32) {
	createHash('sha256').update(String(offset)).digest().copy(SLAB, offset);
}

const TAIL_BYTES = 12; // the IEND chunk
const CHUNK_BYTES = 12; // length, type and checksum of any chunk
const CHUNK_TYPE = Buffer.from('paDd'); // private and ancillary, so decoders ignore it

/** Checksums of padding chunks by length; a run uses only a few lengths. */
const checksums = new Map<number, number>();

function* slabs(bytes: number): Generator<Buffer> {
	for (let left = bytes; left > 0; left -= SLAB.length)
		yield left >= SLAB.length ? SLAB : SLAB.subarray(0, left);
}

function checksum(bytes: number): number {
	const known = checksums.get(bytes);
	if (known !== undefined) return known;
	let sum = crc32(CHUNK_TYPE);
	for (const slab of slabs(bytes)) sum = crc32(slab, sum);
	checksums.set(bytes, sum);
	return sum;
}

export interface FileContent {
	readonly length: number;
	chunks(): Generator<Buffer>;
}

/** A PNG file of any length, reached by a chunk that decoders ignore. The whole file is never in memory. */
export function paddedPng(png: Buffer, wantedBytes: number): FileContent {
	const padding = wantedBytes - png.length - CHUNK_BYTES;
	if (padding <= 0) {
		return {
			length: png.length,
			*chunks() {
				yield png;
			},
		};
	}
	const length = Buffer.alloc(4);
	length.writeUInt32BE(padding);
	const sum = Buffer.alloc(4);
	sum.writeUInt32BE(checksum(padding));
	return {
		length: png.length + CHUNK_BYTES + padding,
		*chunks() {
			yield Buffer.concat([png.subarray(0, -TAIL_BYTES), length, CHUNK_TYPE]);
			yield* slabs(padding);
			yield Buffer.concat([sum, png.subarray(-TAIL_BYTES)]);
		},
	};
}
