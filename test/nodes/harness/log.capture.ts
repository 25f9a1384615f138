import { Logger } from '@n8n/backend-common';
import type { GlobalConfig, InstanceSettingsConfig } from '@n8n/config';
import { AsyncLocalStorage } from 'node:async_hooks';
import { inspect } from 'node:util';

export interface LogLine {
	/** `ui` is a message that n8n sends to the editor's console (manual mode only). */
	level: 'error' | 'warn' | 'info' | 'debug' | 'ui';
	message: string;
	metadata?: unknown;
}

export type LogSink = (line: LogLine) => void;

/**
 * n8n has one logger for the whole process and its lines name no execution. The asynchronous context of a run
 * identifies its lines, even with simultaneous runs and after its execution was cancelled.
 */
export const logContext = new AsyncLocalStorage<LogSink>();

type Metadata = Record<string, unknown>;

/** n8n's own Logger, which passes lines to the running execution instead of winston's transports. */
export class CapturedLogger extends Logger {
	constructor(
		globalConfig: GlobalConfig,
		instanceSettingsConfig: InstanceSettingsConfig,
		private readonly unattributed: LogLine[],
	) {
		super(globalConfig, instanceSettingsConfig);
	}

	override scoped(): Logger {
		return this;
	}

	override error(message: string, metadata?: Metadata): void {
		this.capture('error', message, metadata);
	}

	override warn(message: string, metadata?: Metadata): void {
		this.capture('warn', message, metadata);
	}

	override info(message: string, metadata?: Metadata): void {
		this.capture('info', message, metadata);
	}

	override debug(message: string, metadata?: Metadata): void {
		this.capture('debug', message, metadata);
	}

	private capture(level: LogLine['level'], message: string, metadata: Metadata = {}): void {
		const line: LogLine = { level, message, metadata: withPlainErrors(metadata) };
		const sink = logContext.getStore();
		if (sink) sink(line);
		else this.unattributed.push(line);
	}
}

/** Reduces an Error in the metadata to the four fields that n8n logs; other fields never reach a log. */
function withPlainErrors(metadata: Metadata): Metadata {
	return Object.fromEntries(
		Object.entries(metadata).map(([key, value]) => [key, value instanceof Error ? plainError(value) : value]),
	);
}

function plainError(error: Error, seen = new Set<unknown>()): Metadata {
	seen.add(error);
	const { name, message, stack, cause } = error;
	if (cause === undefined || seen.has(cause)) return { name, message, stack };
	return { name, message, stack, cause: cause instanceof Error ? plainError(cause, seen) : inspect(cause) };
}
