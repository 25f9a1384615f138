import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** The service writes this for `&` in its links: six characters, as in JSON text that was escaped twice. */
const ESCAPED_AMPERSAND = '\\u0026';

export type LinkProblem = 'badSignature' | 'expired';

/** Signed links that are good until a time. Their signature is Base64, so decoding such a link once more breaks it. */
export class FileLinks {
	readonly #secret = randomBytes(32);
	#origin = '';

	/** Known once the file host listens. */
	setOrigin(origin: string): void {
		this.#origin = origin;
	}

	/** `path` may hold any characters; the answer is a link as the service writes it. */
	link(path: string, untilSeconds: number): string {
		const encoded = path.split('/').map(encodeURIComponent).join('/');
		const query = [
			`Expires=${untilSeconds}`,
			'KeyId=local-platform',
			`Signature=${encodeURIComponent(this.#sign(path, untilSeconds))}`,
		];
		return `${this.#origin}${encoded}?${query.join(ESCAPED_AMPERSAND)}`;
	}

	problem(path: string, query: URLSearchParams, nowMs: number): LinkProblem | undefined {
		const untilSeconds = Number(query.get('Expires'));
		const given = Buffer.from(query.get('Signature') ?? '');
		const right = Buffer.from(this.#sign(path, untilSeconds));
		if (given.length !== right.length || !timingSafeEqual(given, right)) return 'badSignature';
		return nowMs >= untilSeconds * 1000 ? 'expired' : undefined;
	}

	#sign(path: string, untilSeconds: number): string {
		return createHmac('sha256', this.#secret).update(`${path}\n${untilSeconds}`).digest('base64');
	}
}
