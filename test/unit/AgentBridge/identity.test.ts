import { deduplicationKey } from '../../../nodes/AgentBridge/identity';

test('one frame with an ID: workflow, node and ID, for n8n has one index for the whole instance', () => {
	expect(deduplicationKey('w1', 'n1', [{ id: 'f-1' }])).toBe('flowbridge:w1:n1:f-1');
	const keys = [
		['w1', 'n1'],
		['w1', 'n2'],
		['w2', 'n1'],
	].map(([workflow = '', node = '']) => deduplicationKey(workflow, node, [{ id: '1' }]));
	expect(new Set(keys).size).toBe(3);
});

test('a batch has none, for the same frames come in another batch next time; nor has a frame without an ID', () => {
	expect(deduplicationKey('w', 'n', [{ id: '1' }, { id: '2' }])).toBeUndefined();
	expect(deduplicationKey('w', 'n', [{ id: undefined }])).toBeUndefined();
	expect(deduplicationKey('w', 'n', [])).toBeUndefined();
});

test('a key fits into the column of n8n, however long the ID, and long IDs stay apart', () => {
	const keys = ['a', 'b'].map((end) =>
		deduplicationKey('w'.repeat(36), 'n'.repeat(36), [{ id: 'x'.repeat(5_000) + end }]),
	);
	expect(keys[0]).not.toBe(keys[1]);
	expect(keys[0]?.length).toBeLessThanOrEqual(255);
});
