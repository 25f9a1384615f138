import { promptChoice } from '../../../../nodes/FlowTask/workflow/inputRanking';
import { readDefinition } from '../../../../nodes/shared/workflow/definition';
import { valueOf } from '../../results';
const node = (class_type: string, inputs: object = {}) => ({ class_type, inputs });
const enc = (text: unknown, clip: unknown = ['4', 1]) => node('CLIPTextEncode', { text, clip });
const base = {
	'3': node('KSampler', { seed: 5, positive: ['6', 0], negative: ['7', 0], latent_image: ['5', 0] }),
	'5': node('EmptyLatentImage', { width: 512, height: 512 }),
	'4': node('CheckpointLoaderSimple', { ckpt_name: 'm.safetensors' }),
	'8': node('VAEDecode', { samples: ['13', 0], vae: ['4', 2] }),
	'9': node('SaveImage', { filename_prefix: 'out', images: ['8', 0] }),
};
const filled = (n: object) => promptChoice(valueOf(readDefinition(n))).filled.map(({ node: { nodeId }, input: { name } }) => nodeId + '/' + name);
test('x', () => {
	const out = [];
	out.push(filled({ ...base, '6': enc(''), '7': enc(''), '13': node('KSampler', { seed: 5, positive: ['7', 0], negative: ['7', 0], latent_image: ['3', 0] }) }));
	out.push(filled({ ...base, '6': enc(''), '7': enc(''), '16': enc(''), '13': node('KSampler', { seed: 5, positive: ['16', 0], negative: ['16', 0], latent_image: ['3', 0] }) }));
	out.push(filled({ ...base, '6': enc('a fox'), '7': enc(''), '13': node('KSampler', { seed: 5, positive: ['7', 0], negative: ['7', 0], latent_image: ['3', 0] }) }));
	out.push(filled({ ...base, '6': enc(''), '7': enc(''), '17': enc(''), '13': node('KSampler', { seed: 5, positive: ['6', 0], negative: ['7', 0], latent_image: ['3', 0] }), '20': node('ControlNetApplyAdvanced', { positive: ['17', 0], negative: ['7', 0], image: ['8', 0] }) }));
	console.log(JSON.stringify(out));
});
