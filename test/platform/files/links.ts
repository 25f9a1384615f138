import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** What the service writes for `&` in its links: six characters, as in JSON text that was escaped twice. */
const ESCAPED_AMPERSAND = '\\u0026';

export type LinkProblem = 'badSignature' | 'expired';

/** Makes signed links that expire. Their signature is Base64, so decoding a link a second time breaks it. */
export class FileLinks {
	readonly #secret = randomBytes(32);
	#origin = '';

	/** Sets the origin, which is known once the file host is listening. */
	setOrigin(origin: string): void {
		this.#origin = origin;
	}

	/** Makes a link as the service writes it; `path` may contain any characters. */
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
