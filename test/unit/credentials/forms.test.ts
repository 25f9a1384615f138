import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { FlowAgentApi } from '../../../credentials/FlowAgentApi.credentials';
import { FlowBridgeApi } from '../../../credentials/FlowBridgeApi.credentials';
import { FlowPlatformApi } from '../../../credentials/FlowPlatformApi.credentials';

/* Tests what the forms of all credentials have in common. */

describe.each([
	{ credential: new FlowPlatformApi(), secret: 'apiKey' },
	{ credential: new FlowAgentApi(), secret: 'agentToken' },
	{ credential: new FlowBridgeApi(), secret: 'channelToken' },
])('$credential.name', ({ credential, secret }) => {
	const { properties } = credential;

	it('masks the secret and nothing else', () => {
		const masked = properties.filter(({ typeOptions }) => typeOptions?.password === true);
		expect(masked.map(({ name }) => name)).toEqual([secret]);
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
