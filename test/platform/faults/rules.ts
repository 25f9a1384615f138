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
 * When a fault acts. `before`: in place of the work. `task`: on the task that is created. `answer`: on the content of the
 * answer. `delivery` and `pace`: while the answer is sent. `socket`: on an open socket. A request has at most one `before`
 * and one `delivery` fault; the others are combined.
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
	numbersAsStrings: { phase: 'answer', targets: [...CALLS, 'socket'] },
	filesNull: { phase: 'answer', targets: ['info', 'socket'] },
	missingIds: { phase: 'answer', targets: ['info'] },
	unknownStatus: { phase: 'answer', targets: ['info', 'socket'] },
	noProgress: { phase: 'answer', targets: ['info', 'socket'] },
	expiredLink: { phase: 'answer', targets: ['info', 'socket', 'file', 'media'] },
	tokenExpired: { phase: 'answer', targets: ['invoke', 'media'] },
	sessionGone: { phase: 'answer', targets: ['invoke'] },
	resetAfter: { phase: 'delivery', targets: CALLS },
	truncatedJson: { phase: 'delivery', targets: CALLS },
	deepInfo: { phase: 'delivery', targets: ['info'] },
	fileReset: { phase: 'delivery', targets: ['file'] },
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
	/** The probability for each matching request; default 1. */
	probability: v.optional(share),
	/** How many faults occur in all; default: no limit. */
	times: v.optional(whole),
	/** How many matching requests pass first; default 0. */
	skip: v.optional(whole),
	/** Affects only requests with this text: submit, info, chat, invoke in the body, file in the path, socket in the task ID. */
	match: v.optional(v.string()),
	/**
	 * 5xx: default 503; gateways also answer 408 and 499. socketRefuse: default 503. redirect: default 302.
	 * unknownStatus: the task status, default 7.
	 */
	status: v.optional(whole),
	/** 429 (and 5xx and code, if it is set): how `Retry-After` is written; default `seconds`. */
	retryAfter: v.optional(v.picklist(['seconds', 'date', 'none'])),
	/** The value of `Retry-After`; default 1. */
	retryAfterSeconds: v.optional(whole),
	/** The body of 429 and 5xx; default `envelope`. */
	body: v.optional(v.picklist(['envelope', 'html', 'empty'])),
	/** `code`: default 50000. socketClose: default 1011; 1005 means no code. */
	code: v.optional(v.pipe(v.number(), v.integer())),
	/** The text of `code`, failTask, denyTask. socketClose: the reason. wrongProtocol: the server's choice; default: none. */
	msg: v.optional(v.string()),
	/** slowBody: how long the body takes; default 500. */
	ms: v.optional(whole),
	/**
	 * socketDrop, socketSilent, socketClose: after how many messages; default 1, 0, 0. missingIds: how many; default half.
	 * deepInfo: how many levels; default 5,000. resetAfter and truncatedJson of a stream: after how many chunks; default 1.
	 */
	after: v.optional(whole),
	/** truncatedJson: with a content-length that fits, or by a cut connection; default: alternately. */
	cut: v.optional(v.picklist(['length', 'connection'])),
	/** 5xx, html200, hang: the work is done all the same (a gateway that gave up). */
	afterWork: v.optional(v.boolean()),
});

export type FaultRule = v.InferOutput<typeof faultRuleSchema>;

export const campaignSchema = v.strictObject({
	/** The share of all requests and sockets, 0 to 1. */
	rate: share,
	seed: v.optional(v.number()),
	/** The kinds of faults; default: 429, 5xx, resets, truncated bodies, cut files, dropped and refused sockets. */
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

/** Whether the caller cannot tell after this fault if the work was done: no answer, or one that a gateway may send. */
export function leavesUnclear({ kind }: FaultRule): boolean {
	return ['5xx', 'resetBefore', 'resetAfter', 'hang', 'truncatedJson', 'html200'].includes(kind);
}

export function phaseOf(rule: FaultRule, target: FaultTarget): FaultPhase {
	if (rule.afterWork === true && FAULTS[rule.kind].phase === 'before') return 'delivery';
	if (target === 'file' && rule.kind === 'expiredLink') return 'before';
	return FAULTS[rule.kind].phase;
}
