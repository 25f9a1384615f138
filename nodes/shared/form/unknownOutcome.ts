import { defineOptions, oneOf } from './options';

/** How messages name the way to request again what may have been carried out. */
export const SEND_AGAIN = "set 'If the Outcome Is Unknown' under 'Cost and Speed' to Send Again";

/** What to do about a request that was sent but got no clear answer. */
export function unknownOutcomeField(words: Readonly<Record<'fail' | 'sendAgain' | 'what', string>>) {
	return defineOptions({
		onUnknownOutcome: {
			displayName: 'If the Outcome Is Unknown',
			name: 'onUnknownOutcome',
			isLimit: true,
			type: 'options',
			default: 'error',
			options: [
				{ name: 'Fail', value: 'error', description: words.fail },
				{ name: 'Send Again', value: 'sendAgain', description: words.sendAgain },
			],
			description: words.what,
		},
	});
}

/** Whether to send such a request again. */
export function isSentAgain({ onUnknownOutcome }: Readonly<Record<string, unknown>>): boolean {
	return oneOf(['error', 'sendAgain'], onUnknownOutcome) === 'sendAgain';
}
