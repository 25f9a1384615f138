import imageToImage from './workflows/image-to-image.json';
import textToImage from './workflows/text-to-image.json';
import twoOutputs from './workflows/two-outputs.json';

/** Exports in API format, by the workflow ID under which the command line hosts them. */
export const SAMPLE_WORKFLOWS = {
	'text-to-image': textToImage,
	'image-to-image': imageToImage,
	'two-outputs': twoOutputs,
} as const;
