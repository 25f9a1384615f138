import { FlowBridgeApi } from '../../../credentials/FlowBridgeApi.credentials';
import { DEFAULT_PATH, DEFAULT_PROTOCOL } from '../../../nodes/AgentBridge/account';

const credential = new FlowBridgeApi();
const field = (name: string) => credential.properties.find((property) => property.name === name);

it('does not offer its token to other nodes: it has neither authenticate nor a test request', () => {
	expect(Object.keys(credential)).not.toEqual(expect.arrayContaining(['authenticate']));
	expect(Object.keys(credential)).not.toEqual(expect.arrayContaining(['test']));
});

it('has the defaults that the nodes fall back to', () => {
	expect([field('bridgePath')?.default, field('subprotocol')?.default]).toEqual([
		DEFAULT_PATH,
		DEFAULT_PROTOCOL,
	]);
});
