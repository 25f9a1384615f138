import * as v from 'valibot';

export const FAULT_TARGETS = [
	'submit',
	'info',
	'upload',
	'file',
	'socket',
	'chat',
	'models',
	'bridge',
	'invoke',
	'media',
] as const;
export type FaultTarget = (typeof FAULT_TARGETS)[number];

/**
 * When a fault acts. `before`: in place of the work. `task`: on the task that is made. `answer`: on the content of the
 * answer. `delivery` and `pace`: on the way out. `socket`: on an open socket. One request has at most one fault of
 * `before` and one of `delivery`; all else adds up.
 */
export type FaultPhase = 'before' | 'task' | 'answer' | 'delivery' | 'pace' | 'socket';

interface FaultNature {
	readonly phase: FaultPhase;
	readonly targets: readonly FaultTarget[];
}

const CALLS: readonly FaultTarget[] = ['submit', 'info', 'upload', 'chat', 'models', 'invoke', 'media'];
const HTTP: readonly FaultTarget[] = [...CALLS, 'file'];
const SOCKETS: readonly FaultTarget[] = ['socket', 'bridge'];

export const FAULTS = {
	'429': { phase: 'before', targets: HTTP },
	'5xx': { phase: 'before', targets: HTTP },
	resetBefore: { phase: 'before', targets: FAULT_TARGETS },
	hang: { phase: 'before', targets: FAULT_TARGETS },
	code: { phase: 'before', targets: CALLS },
	html200: { phase: 'before', targets: HTTP },
	redirect: { phase: 'before', targets: HTTP },
	socketRefuse: { phase: 'before', targets: SOCKETS },
	failTask: { phase: 'task', targets: ['submit'] },
	denyTask: { phase: 'task', targets: ['submit'] },
	stuckTask: { phase: 'task', targets: ['submit'] },
	missingPromptToken: { phase: 'answer', targets: ['submit'] },
	numbersAsStrings: { phase: 'answer', targets: [...CALLS, 'socket'] },
	filesNull: { phase: 'answer', targets: ['info', 'socket'] },
	missingIds: { phase: 'answer', targets: ['info'] },
	unknownStatus: { phase: 'answer', targets: ['submit', 'info', 'socket'] },
	noProgress: { phase: 'answer', targets: ['submit', 'info', 'socket'] },
	expiredLink: { phase: 'answer', targets: ['info', 'socket', 'file', 'media'] },
	tokenExpired: { phase: 'answer', targets: ['invoke', 'media'] },
	sessionGone: { phase: 'answer', targets: ['invoke'] },
	resetAfter: { phase: 'delivery', targets: CALLS },
	truncatedJson: { phase: 'delivery', targets: CALLS },
	fileReset: { phase: 'delivery', targets: ['file'] },
	fileWrongType: { phase: 'delivery', targets: ['file'] },
	fileEmpty: { phase: 'delivery', targets: ['file'] },
	slowBody: { phase: 'pace', targets: HTTP },
	socketDrop: { phase: 'socket', targets: SOCKETS },
	socketSilent: { phase: 'socket', targets: SOCKETS },
	socketGarbage: { phase: 'socket', targets: SOCKETS },
	socketClose: { phase: 'socket', targets: ['bridge'] },
	wrongProtocol: { phase: 'socket', targets: ['bridge'] },
	duplicateFrames: { phase: 'socket', targets: ['bridge'] },
} as const satisfies Record<string, FaultNature>;

export type FaultKind = keyof typeof FAULTS;

const kindSchema = v.custom<FaultKind>((kind) => typeof kind === 'string' && Object.hasOwn(FAULTS, kind));
const whole = v.pipe(v.number(), v.integer(), v.minValue(0));
const share = v.pipe(v.number(), v.minValue(0), v.maxValue(1));

export const faultRuleSchema = v.strictObject({
	on: v.picklist([...FAULT_TARGETS, 'any']),
	kind: kindSchema,
	/** Of each matching request; default 1. */
	probability: v.optional(share),
	/** So many faults, then no more; default: without end. */
	times: v.optional(whole),
	/** So many matching requests pass first; default 0. */
	skip: v.optional(whole),
	/** Only requests that hold this text: submit, info, chat and invoke in the body, file in the path, socket in the task id. */
	match: v.optional(v.string()),
	/** 5xx: default 503; 408 and 499 are what gateways say as well. socketRefuse: default 503. redirect: default 302. unknownStatus: the task status, default 7. */
	status: v.optional(whole),
	/** 429 (and 5xx and code, where it is given): how `Retry-After` is written; default `seconds`. */
	retryAfter: v.optional(v.picklist(['seconds', 'date', 'none'])),
	/** Default 1. */
	retryAfterSeconds: v.optional(whole),
	/** Of 429 and 5xx; default `envelope`. */
	body: v.optional(v.picklist(['envelope', 'html', 'empty'])),
	/** `code`: default 50000. socketClose: default 1011; 1005 names no code. */
	code: v.optional(v.pipe(v.number(), v.integer())),
	/** Text of `code`, failTask, denyTask. socketClose: the reason. wrongProtocol: what the server chooses; default: none. */
	msg: v.optional(v.string()),
	/** slowBody: how long the body takes; default 500. */
	ms: v.optional(whole),
	/**
	 * socketDrop, socketSilent, socketClose: after so many messages; default 1, 0, 0. missingIds: how many; default half. resetAfter
	 * and truncatedJson of a stream: after so many chunks; default 1.
	 */
	after: v.optional(whole),
	/** truncatedJson: with a content-length that fits, or by a cut connection; default: in turn. */
	cut: v.optional(v.picklist(['length', 'connection'])),
	/** 5xx, html200, hang: the work is done all the same (a gateway that gave up). */
	afterWork: v.optional(v.boolean()),
});

export type FaultRule = v.InferOutput<typeof faultRuleSchema>;

export const campaignSchema = v.strictObject({
	/** Of all requests and sockets, 0 to 1. */
	rate: share,
	seed: v.optional(v.number()),
	/** Default: 429, 5xx, resets, truncated bodies, cut files, dropped and refused sockets. */
	kinds: v.optional(v.array(kindSchema)),
});

export type Campaign = v.InferOutput<typeof campaignSchema>;

export const CAMPAIGN_KINDS: readonly FaultKind[] = [
	...(['429', '5xx', 'resetBefore', 'resetAfter', 'truncatedJson'] as const),
	...(['fileReset', 'socketDrop', 'socketRefuse'] as const),
];

export function suits(kind: FaultKind, target: FaultTarget): boolean {
	const targets: readonly FaultTarget[] = FAULTS[kind].targets;
	return targets.includes(target);
}

/** Whether a caller cannot tell after this fault if the work was done: no answer, or one as gateways write it too. */
export function leavesUnclear({ kind }: FaultRule): boolean {
	return ['5xx', 'resetBefore', 'resetAfter', 'hang', 'truncatedJson', 'html200'].includes(kind);
}

export function phaseOf(rule: FaultRule, target: FaultTarget): FaultPhase {
	if (rule.afterWork === true && FAULTS[rule.kind].phase === 'before') return 'delivery';
	// What alters an answer changes the task itself where a task is being made.
	if (target === 'submit' && (rule.kind === 'noProgress' || rule.kind === 'unknownStatus')) return 'task';
	if (target === 'file' && rule.kind === 'expiredLink') return 'before';
	return FAULTS[rule.kind].phase;
}
