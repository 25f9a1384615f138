import { withoutToken } from '../../../../nodes/FlowTask/api/progressSocket';
import { taskInfo } from '../taskInfo.builder';

const TOKEN = 'to+ken/"1"=';

describe('withoutToken', () => {
	const link = `https://h/a.png?authorization=${encodeURIComponent(TOKEN)}&x=1`;
	const info = taskInfo('t', {
		status: 3,
		errMsg: `no ${TOKEN}`,
		files: { '9': [link, `https://h/${TOKEN}`] },
		final_files: [link],
	});

	it('hides the token wherever the platform repeats it', () => {
		const shown = withoutToken(info, TOKEN);
		expect(shown).toMatchObject({
			errorMessage: 'no [hidden]',
			files: new Map([['9', ['https://h/a.png?authorization=[hidden]&x=1', 'https://h/[hidden]']]]),
			finalFiles: ['https://h/a.png?authorization=[hidden]&x=1'],
			raw: { flow_task_id: 't', errMsg: 'no [hidden]' },
		});
		expect(JSON.stringify([shown, [...shown.files]])).not.toContain('ken');
	});

	it('hides a token that no URL can contain', () => {
		const odd = 'half \ud800 token';
		expect(withoutToken(taskInfo('t', { errMsg: `no ${odd}` }), odd).errorMessage).toBe('no [hidden]');
	});

	it.each([undefined, 'another'])('leaves a report without the token unchanged: %s', (token) => {
		expect(withoutToken(info, token)).toEqual(info);
	});
});
