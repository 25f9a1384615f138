/** One line that n8n wrote. `level` is missing where n8n's logger did not write it, as in a crash. */
export interface LogLine {
	stream: 'stdout' | 'stderr';
	level?: string;
	message: string;
}

// Said by Node or a library about itself; n8n's own releases print them too.
const NOTICE = /DeprecationWarning|ExperimentalWarning|--trace-(deprecation|warnings)/;

/** What an n8n process said, line by line. It runs with N8N_LOG_FORMAT=json, so a level is never guessed. */
export class ProcessLog {
	readonly lines: LogLine[] = [];

	private readonly rest = { stdout: '', stderr: '' };

	add(stream: LogLine['stream'], chunk: string): void {
		const pieces = (this.rest[stream] + chunk).split('\n');
		this.rest[stream] = pieces.pop() ?? '';
		for (const piece of pieces) this.addLine(stream, piece);
	}

	/** A process that died may leave a line without an end. */
	end(): void {
		for (const stream of ['stdout', 'stderr'] as const) {
			this.addLine(stream, this.rest[stream]);
			this.rest[stream] = '';
		}
	}

	/** Lines of level "error", and whatever came by the error stream past n8n's logger. */
	errors(): string[] {
		return this.lines
			.filter(({ stream, level, message }) =>
				level === undefined ? stream === 'stderr' && !NOTICE.test(message) : level === 'error',
			)
			.map(({ message }) => message);
	}

	text(): string {
		return this.lines.map(({ level, message }) => (level ? `${level}: ${message}` : message)).join('\n');
	}

	/** The end of it, for an error message; migrations are most of a first start and never what went wrong. */
	tail(count = 30): string {
		const told = this.lines.filter(({ message }) => !/^(Starting|Finished) migration /.test(message));
		return told
			.slice(-count)
			.map(({ message }) => message)
			.join('\n');
	}

	private addLine(stream: LogLine['stream'], line: string): void {
		if (line.trim() === '') return;
		this.lines.push({ stream, ...parseLine(line) });
	}
}

function parseLine(line: string): Omit<LogLine, 'stream'> {
	try {
		const parsed: unknown = JSON.parse(line);
		if (typeof parsed === 'object' && parsed !== null && 'level' in parsed && 'message' in parsed) {
			return { level: String(parsed.level), message: String(parsed.message) };
		}
	} catch {
		// Not from n8n's logger.
	}
	return { message: line };
}
