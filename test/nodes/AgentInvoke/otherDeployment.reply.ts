import type { ServerResponse } from 'node:http';

import type { OtherOptions, Plan } from './otherDeployment.plan';

type Data = Readonly<Record<string, unknown>>;

const KEEP_ALIVE_MS = 200;
const PIECES = 3;

/** What the second server answers to one call. */
export class OtherReply {
	private isStream = false;
	private events = 0;
	/** The line was cut, or the body ended early, as planned. */
	private isOver = false;
	private keepAlive: NodeJS.Timeout | undefined;

	constructor(
		private readonly response: ServerResponse,
		private readonly options: OtherOptions,
		private readonly trace: string,
	) {
		response.on('error', () => undefined);
	}

	refuse(status: number, code: string): void {
		this.whole(this.failing(status, code), status);
	}

	/** An answer in one piece. */
	answer(data: Data, reason: string, status = 200): void {
		this.whole(this.succeeding(data, reason), status);
	}

	openStream(): void {
		this.isStream = true;
		this.response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
		this.response.write('retry: 10000\r\n\r\n');
		const keepAlive = (): void => void this.response.write(': still here\r\n\r\n');
		this.keepAlive = setInterval(keepAlive, this.options.keepAliveMs ?? KEEP_ALIVE_MS);
		this.response.on('close', () => {
			clearInterval(this.keepAlive);
		});
	}

	/** An event of a stream; nothing where the answer is none. */
	async tell(kind: string, data: Data, plan: Plan): Promise<void> {
		if (!this.isStream || this.breaksOff(plan)) return;
		this.write(kind, this.succeeding(data, 'UNDER_WAY'));
		if (plan.pauseMs) await new Promise((resolve) => setTimeout(resolve, plan.pauseMs));
	}

	async tellText(text: string, plan: Plan): Promise<void> {
		if (text === '') return;
		// A draft of the whole answer, which is neither a piece of it nor its end.
		if (this.options.envelope === false) {
			await this.tell('draft', { outcome: { blocks: [{ kind: 'speech', text: 'a draft' }] } }, plan);
		}
		const letters = [...text];
		const size = Math.max(1, Math.ceil(letters.length / PIECES));
		for (let at = 0; at < letters.length; at += size) {
			await this.tell('bit', { bit: { text: letters.slice(at, at + size).join('') } }, plan);
		}
	}

	/** The turn succeeded. */
	finish(data: Data, reason: string, plan: Plan): void {
		if (this.breaksOff(plan)) return;
		if (!this.isStream) {
			this.answer(data, reason);
			return;
		}
		// Where the body ends the stream, what costs and waits is told by one more event before it.
		const isNamed = this.options.streamEnd !== 'body';
		const { outcome: _told, ...rest } = data;
		this.write(isNamed ? 'over' : 'tally', this.succeeding(isNamed ? data : rest, reason));
		this.end();
	}

	/** The turn ran, and failed. */
	fail(status: number, code: string, plan: Plan): void {
		if (this.breaksOff(plan)) return;
		if (!this.isStream) {
			this.refuse(status, code);
			return;
		}
		this.write('alarm', this.failing(status, code));
		this.end();
	}

	private end(): void {
		clearInterval(this.keepAlive);
		this.response.end();
	}

	private succeeding(data: Data, reason: string): Data {
		const trace = { id: this.trace };
		if (this.options.envelope === false) return { state: reason, trace, ...data };
		return { success_response: true, http_status_code: 200, trace, data: { reason, ...data } };
	}

	private failing(status: number, code: string): Data {
		const trace = { id: this.trace };
		const words = `The desk says ${code.toLowerCase().replaceAll('_', ' ')}.`;
		if (this.options.envelope === false) return { fault: { code, words }, trace };
		return { success_response: false, http_status_code: status, trace, data: { reason: code, words } };
	}

	/** The outer status says nothing where there is an envelope. */
	private whole(body: Data, status: number): void {
		const outer = this.options.envelope === false ? status : 200;
		this.response.writeHead(outer, { 'content-type': 'application/json' }).end(written(body));
	}

	/** The JSON in several lines, and no `event:` line. */
	private write(kind: string, body: Data): void {
		this.events++;
		const lines = written({ kind, ...body }, 1).split('\n');
		const id = `id: ${this.trace}/${this.events}\r\n`;
		this.response.write(`${id}${lines.map((line) => `data: ${line}\r\n`).join('')}\r\n`);
	}

	private breaksOff({ cutAfter, endAfter }: Plan): boolean {
		if (this.isOver) return true;
		if (cutAfter !== undefined && this.events >= cutAfter) this.isOver = true;
		else if (endAfter !== undefined && this.events >= endAfter) this.isOver = true;
		else return false;
		if (cutAfter === undefined || this.events < cutAfter) {
			this.end();
			return true;
		}
		clearInterval(this.keepAlive);
		// What was written has to leave before the line is cut.
		setTimeout(() => this.response.socket?.resetAndDestroy(), 20);
		return true;
	}
}

/** JSON in which a bigint is a number of all its digits. */
function written(value: Data, indent?: number): string {
	const text = JSON.stringify(
		value,
		(_key, inner: unknown) => (typeof inner === 'bigint' ? `bigint:${inner}` : inner),
		indent,
	);
	return text.replace(/"bigint:(\d+)"/g, '$1');
}
