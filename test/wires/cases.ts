import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { RealServer } from './realServer';

/** A product, and how it differs from the others where a probe can tell. */
export interface RealCase {
	readonly name: string;
	readonly description: string;
	readonly invokePath: string;
	open(): Promise<RealServer>;
	readonly takesFiles?: boolean;
	/** How it refuses a session that it does not know; without it, it opens a new one of that name. */
	readonly unknownSession?: string;
	/** Whether it refuses a second message to a session whose agent still runs. */
	readonly hasBusySessions?: boolean;
	/** What an agent is told that is asked for approval of its tool, and what the agent then says. */
	readonly approval: string;
	readonly approved: RegExp;
	/** What becomes of an answer to an interrupt that has been answered. */
	readonly answeredTwice: 'refused' | 'runs again' | 'nothing';
	/** The interrupts of an agent that asks for two tools at once. */
	readonly asksAtOnce: number;
	/** Whether an interrupt that comes after another of the same run has an ID of its own. */
	readonly namesEach?: boolean;
	/** The name of an application whose agents answer in turn, the second of them with "edited". */
	readonly inTurn?: string;
}

const WIRES = join(__dirname, '../../docs/wires');

export const REAL_CASES: readonly RealCase[] = [
	{
		name: 'LangGraph',
		description: 'langgraph',
		invokePath: '/runs/stream',
		open: async () => await RealServer.start('langgraph'),
		// Its server for development says the same as of a busy one.
		unknownSession: 'session_busy',
		hasBusySessions: true,
		approval: '{ "decisions": [{ "type": "approve" }] }',
		approved: /^given \[\{"decisions":\[\{"type":"approve"\}\]\}\]$/,
		answeredTwice: 'nothing',
		asksAtOnce: 2,
	},
	{
		name: 'A2A 0.3',
		description: 'a2a',
		invokePath: '/a2a',
		open: async () => await RealServer.start('a2a', ['0.3']),
		takesFiles: true,
		approval: '{ "approved": true }',
		approved: /^given \["\{.*approved.*\}"\]$/,
		answeredTwice: 'refused',
		asksAtOnce: 1,
	},
	{
		name: 'A2A 1.0',
		description: 'a2a-1',
		invokePath: '/a2a',
		open: async () => await RealServer.start('a2a', ['1']),
		takesFiles: true,
		approval: '{ "approved": true }',
		approved: /^given \["\{.*approved.*\}"\]$/,
		answeredTwice: 'refused',
		asksAtOnce: 1,
	},
	{
		name: 'Mastra',
		description: 'mastra',
		invokePath: '/unused',
		open: async () => await RealServer.start('mastra'),
		takesFiles: true,
		approval: '{ "approved": true }',
		approved: /^given \[.*"paid":7.*\]$/,
		answeredTwice: 'refused',
		asksAtOnce: 1,
		namesEach: true,
	},
	{
		name: 'ADK',
		description: 'adk',
		invokePath: '/unused',
		open: async () => await RealServer.start('adk'),
		takesFiles: true,
		unknownSession: 'session_not_found',
		approval: '{ "approved": true }',
		approved: /^given \[.*"approved":true.*\]$/,
		answeredTwice: 'runs again',
		asksAtOnce: 2,
		inTurn: 'in-turn',
	},
];

/** The description as it is shipped, with the operator's own values filled in. */
export function descriptionOf({ description }: RealCase): string {
	return readFileSync(join(WIRES, `${description}.json`), 'utf8').replace(/YOUR-[A-Z-]+/g, 'mine-1');
}
