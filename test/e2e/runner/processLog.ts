/** One line that n8n wrote. `level` is missing if n8n's logger did not write it, as in a crash. */
export interface LogLine {
	stream: 'stdout' | 'stderr';
	level?: string;
	message: string;
}

// Node or a library prints these notices, in n8n's own releases too.
const NOTICE = /DeprecationWarning|ExperimentalWarning|--trace-(deprecation|warnings)/;

/** The log of an n8n process, line by line. It runs with N8N_LOG_FORMAT=json, so a level is never guessed. */
export class ProcessLog {
	readonly lines: LogLine[] = [];

	private readonly rest = { stdout: '', stderr: '' };

	add(stream: LogLine['stream'], chunk: string): void {
		const pieces = (this.rest[stream] + chunk).split('\n');
		this.rest[stream] = pieces.pop() ?? '';
		for (const piece of pieces) this.addLine(stream, piece);
	}

	/** Adds the last line of a process that died, which may be incomplete. */
	end(): void {
		for (const stream of ['stdout', 'stderr'] as const) {
			this.addLine(stream, this.rest[stream]);
			this.rest[stream] = '';
		}
	}

	/** Lines of level "error", and lines of the error stream that bypassed n8n's logger. */
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

	/** The end of the log for an error message, without migrations, which fill a first start and are never the cause. */
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
		// This line is not from n8n's logger.
	}
	return { message: line };
}
