// Checks each template as a person sees it who has imported its file into an n8n without any account.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { surveyCanvas } from './browser';
import { editorStage } from './stage';

const folder = join(__dirname, '..', '..', 'templates');
const stage = editorStage('template-import-', {});

/** The nodes that n8n marks in red: all that have fields to fill in, and no others. */
const MARKED: Record<string, string[]> = {
	'agent-approval.json': ['Ask the agent', 'Decline', 'Tell the agent'],
	'agent-long-render.json': ['Model', 'Submit', 'Wait'],
	'agent-pictures.json': ['Make a picture', 'Model'],
	'agent-tool.json': ['Ask the agent', 'Give the result', 'No such tool'],
	'chat-reasoning.json': ['Think and answer'],
	'chat-tool.json': ['Answer', 'Ask'],
	'image-batch.json': ['Make the pictures'],
	'image-review.json': ['Make the pictures'],
	'image-to-image-form.json': ['Repaint the picture'],
	'long-render.json': ['Submit', 'Wait'],
	'mcp-server.json': ['Get a picture', 'MCP Server', 'Progress of a picture', 'Submit a picture'],
	'submit-now-collect-later.json': ['Collect', 'Submit'],
	'support-inbox.json': ['Ask the agent', 'Go on without a person', 'New messages', 'Reply'],
};

test.each(readdirSync(folder).filter((file) => file.endsWith('.json')))(
	'%s: what is to be filled in is marked, and nothing lies over anything else',
	async (file) => {
		const { editor } = stage;
		await editor.importWorkflow(join(folder, file));
		expect({ marked: await editor.marked(), ...(await surveyCanvas(editor.page)) }).toEqual({
			marked: MARKED[file],
			coveredByNotes: [],
			struckThrough: [],
			crossedNotes: [],
			cutNotes: [],
			emptyNotes: [],
		});
	},
);
