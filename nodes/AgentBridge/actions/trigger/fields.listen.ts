import type { INodeProperties } from 'n8n-workflow';

import { defineOptions, optionsCollection } from '../../../shared/form/options';
import { REPLY_TEMPLATE } from '../../reply/replyTemplate';
import { CONNECTION_OPTIONS, EVENT_OPTIONS, MAX_SECONDS } from '../fields.bridge';

const MAX_FRAMES = 1_000_000_000;

const REPLY_FRAME_HELP =
	'The frame to send for each item of the last node, as your platform expects it. <code>"$json.text"</code> stands for a value of the item, <code>"$json"</code> for the whole item, <code>"$frame.path"</code> for a value of the received frame. A field whose value is missing is left out; <code>$$</code> is a dollar sign.';

export const LISTEN_OPTIONS = defineOptions({
	...CONNECTION_OPTIONS,
	...EVENT_OPTIONS,
	idleTimeoutSeconds: {
		displayName: 'Idle Timeout (Seconds)',
		name: 'idleTimeoutSeconds',
		type: 'number',
		default: 90,
		typeOptions: { minValue: 0, maxValue: MAX_SECONDS },
		whenAbsent: 0,
		description:
			'If nothing arrives for this long, the connection is considered dead and is reopened. Set it together with a heartbeat that the platform answers. 0 means never.',
	},
	maxBatch: {
		displayName: 'Max Frames per Execution',
		name: 'maxBatch',
		type: 'number',
		default: 100,
		typeOptions: { minValue: 1, maxValue: MAX_FRAMES },
		description:
			'Frames that arrive while the workflow runs go into its next execution together, as items, in order. 1 means one execution per frame, one after another.',
	},
	maxQueued: {
		displayName: 'Max Waiting Frames',
		name: 'maxQueued',
		type: 'number',
		default: 10_000,
		typeOptions: { minValue: 1, maxValue: MAX_FRAMES },
		description:
			'If more frames than this are waiting for the workflow, the connection is closed until they are processed, and a failed execution reports it',
	},
	reply: {
		displayName: 'Reply',
		name: 'reply',
		type: 'fixedCollection',
		// The default is complete, so that adding the option is enough to get replies if "ID Path" is filled in.
		default: { frame: { template: REPLY_TEMPLATE, correlationPath: '', replyPath: 'reply_to' } },
		placeholder: 'Add frame',
		description:
			"Sends the last node's output, one frame per item, over the trigger's own connection after the execution has succeeded. Not available in editor tests or in queue mode, where n8n does not pass the output to the trigger: use 'Agent Bridge' with \"Use the Trigger's Connection\" there.",
		options: [
			{
				displayName: 'Frame',
				name: 'frame',
				values: [
					{
						displayName: 'Reply Frame',
						name: 'template',
						type: 'json',
						default: REPLY_TEMPLATE,
						description: REPLY_FRAME_HELP,
					},
					{
						displayName: 'ID to Repeat',
						name: 'correlationPath',
						type: 'string',
						default: '',
						placeholder: 'e.g. message_id',
						description:
							'Where the received frame holds the value that its reply repeats. Empty means the ID Path.',
					},
					{
						displayName: 'ID in Reply',
						name: 'replyPath',
						type: 'string',
						default: 'reply_to',
						description:
							'Where the reply repeats that value. Leave it empty if your platform does not correlate frames.',
					},
				],
			},
		],
	},
	testTimeoutSeconds: {
		displayName: 'Test Timeout (Seconds)',
		name: 'testTimeoutSeconds',
		type: 'number',
		default: 120,
		typeOptions: { minValue: 0, maxValue: MAX_SECONDS },
		description: 'How long a test in the editor waits for the first frame',
	},
});

/** The trigger's fields. The operator enters paths, because the fields of frames are not documented (§6.2). */
export const LISTEN_FIELDS: readonly INodeProperties[] = [
	{
		displayName: 'Events',
		name: 'eventFilter',
		type: 'string',
		default: '',
		placeholder: 'e.g. message, interrupt',
		hint: 'Empty means every event; with "message", only {"type": "message", …} starts the workflow',
		description:
			"The events that start the workflow, separated by commas. Empty includes answers to a heartbeat. The option 'Event Path' says where a frame names its event.",
	},
	{
		displayName: 'ID Path',
		name: 'idPath',
		type: 'string',
		default: '',
		placeholder: 'e.g. message_id',
		hint: 'For {"type": "message", "message_id": "m-1"}, enter message_id: no message is then handled twice',
		description:
			'Where a frame holds its own ID. A frame whose ID has been seen is skipped. Leave empty if your platform gives no ID, or gives the same ID to different frames.',
	},
	optionsCollection(LISTEN_OPTIONS),
];
