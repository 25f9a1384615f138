import type { NodeExecutionHint } from 'n8n-workflow';

import { showHint } from '../../../../nodes/shared/run/deliver';

test('a hint has no tags that a service wrote', () => {
	const hints: NodeExecutionHint[] = [];
	showHint(
		{ addExecutionHints: (...added) => hints.push(...added) },
		'It said: <a href="https://evil.test">',
	);
	expect(hints).toMatchObject([{ message: 'It said: ‹a href="https://evil.test">' }]);
});
