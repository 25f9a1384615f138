import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { NodeHelpers, type ICredentialType, type INodeProperties } from 'n8n-workflow';

import { FlowAgentApi } from '../../../credentials/FlowAgentApi.credentials';
import { FlowBridgeApi } from '../../../credentials/FlowBridgeApi.credentials';
import { FlowPlatformApi } from '../../../credentials/FlowPlatformApi.credentials';

/* Tests what the forms of all credentials have in common. */

interface Form {
	readonly credential: ICredentialType;
	readonly secret: string;
	/** Secrets of other credentials, each with the name of its own credential. */
	readonly foreign: ReadonlyArray<readonly [string, string]>;
	readonly own: readonly string[];
}

const FORMS: readonly Form[] = [
	{
		credential: new FlowPlatformApi(),
		secret: 'apiKey',
		foreign: [
			['agt_x', 'FlowAgent API'],
			[' dbg_x', 'FlowAgent API'],
			['Bearer wst_x', 'FlowBridge API'],
		],
		own: ['sk-agt_', ''],
	},
	{
		credential: new FlowAgentApi(),
		secret: 'agentToken',
		foreign: [
			['sk-x', 'FlowPlatform API'],
			[' sk-x', 'FlowPlatform API'],
			['Bearer wst_x', 'FlowBridge API'],
		],
		own: ['agt_sk-', 'dbg_x', ''],
	},
	{
		credential: new FlowBridgeApi(),
		secret: 'channelToken',
		foreign: [
			['agt_x', 'FlowAgent API'],
			[' dbg_x', 'FlowAgent API'],
			['Bearer sk-x', 'FlowPlatform API'],
		],
		own: ['wst_sk-', ''],
	},
];

describe.each(FORMS)('$credential.name', ({ credential, secret, foreign, own }) => {
	const { properties } = credential;

	function noticesFor(token: string): INodeProperties[] {
		const defaults = Object.fromEntries(properties.map(({ name, default: value }) => [name, value]));
		return properties.filter(
			(property) =>
				property.type === 'notice' &&
				NodeHelpers.displayParameter({ ...defaults, [secret]: token }, property, null, null),
		);
	}

	it('masks the secret and nothing else', () => {
		const masked = properties.filter(({ typeOptions }) => typeOptions?.password === true);
		expect(masked.map(({ name }) => name)).toEqual([secret]);
	});

	it.each(foreign)('shows for %j, while it is typed, which credential it belongs to', (token, home) => {
		expect(noticesFor(token).map(({ displayName }) => displayName)).toEqual([expect.stringContaining(home)]);
	});

	// n8n shows a field if what its condition reads is an expression.
	it('says nothing of the secret itself if an expression stands for it', () => {
		const said = noticesFor('={{ $json.key }}').map(({ displayName }) => displayName);
		expect(said.filter((text) => !text.startsWith('A secret that starts with '))).toEqual([]);
	});

	it('shows no notice for a secret of its own kind', () => {
		expect(own.flatMap(noticesFor)).toEqual([]);
	});

	// On a busy machine a regular expression could exceed n8n's time limit, which would fail a request that reads the
	// credential.
	it('makes n8n evaluate no regular expression', () => {
		expect(JSON.stringify(properties)).not.toContain('"regex"');
	});

	it('has an icon for each theme, and they differ', () => {
		const icon = credential.icon as { readonly light: string; readonly dark: string };
		const [light, dark] = [icon.light, icon.dark].map((file) =>
			join(__dirname, '../../../credentials', file.replace('file:', '')),
		) as [string, string];
		expect(existsSync(light) && existsSync(dark)).toBe(true);
		expect(readFileSync(light, 'utf8')).not.toBe(readFileSync(dark, 'utf8'));
	});
});
