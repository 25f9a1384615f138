import { isJsonObject } from '../../../../nodes/shared/text/json';
import { send } from '../../../../nodes/AgentBridge/actions/send.operation';

test('adding the option "Use the Trigger\'s Connection" turns it on', () => {
	const added = send.fields.flatMap(({ options = [] }) => options).filter(isJsonObject);
	expect(added).toContainEqual(expect.objectContaining({ name: 'useTriggerConnection', default: true }));
});
