import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { NodeHelpers } from 'n8n-workflow';
import { FlowBridgeApi } from '../../../credentials/FlowBridgeApi.credentials';
import { DEFAULT_PATH, DEFAULT_PROTOCOL } from '../../../nodes/AgentBridge/account';

const credential = new FlowBridgeApi();
const field = (name: string) => credential.properties.find((property) => property.name === name);

function noticesFor(token: string): string[] {
	return credential.properties
		.filter(
			(property) =>
				property.type === 'notice' &&
				NodeHelpers.displayParameter({ channelToken: token }, property, null, null),
		)
		.map(({ displayName }) => displayName);
}

it('offers its token to no other node: it has neither authenticate nor a test request', () => {
	expect(Object.keys(credential)).not.toEqual(expect.arrayContaining(['authenticate']));
	expect(Object.keys(credential)).not.toEqual(expect.arrayContaining(['test']));
});

it('masks the token and nothing else', () => {
	const masked = credential.properties.filter(({ typeOptions }) => typeOptions?.password === true);
	expect(masked).toEqual([field('channelToken')]);
});

it('has the defaults that the nodes fall back to', () => {
	expect([field('bridgePath')?.default, field('subprotocol')?.default]).toEqual([
		DEFAULT_PATH,
		DEFAULT_PROTOCOL,
	]);
});

it.each([
	['agt_x', 'FlowAgent API'],
	[' dbg_x', 'FlowAgent API'],
	['Bearer sk-x', 'FlowPlatform API'],
])('says while %j is typed where it belongs', (token, home) => {
	expect(noticesFor(token)).toEqual([expect.stringContaining(home)]);
});

// On a busy machine n8n's time limit for them would fail a request that reads the credential.
it('asks n8n for no regular expression', () => {
	expect(JSON.stringify(credential.properties)).not.toContain('"regex"');
});

it('is silent about a channel token', () => {
	expect(noticesFor('wst_sk-')).toEqual([]);
});

it('has an icon for each theme, and they differ', () => {
	const [light = '', dark = ''] = [credential.icon.light, credential.icon.dark].map((icon) =>
		join(__dirname, '../../../credentials', icon.replace('file:', '')),
	);
	expect(existsSync(light) && existsSync(dark)).toBe(true);
	expect(readFileSync(light, 'utf8')).not.toBe(readFileSync(dark, 'utf8'));
});
