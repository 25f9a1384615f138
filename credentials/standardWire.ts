import WIRE from '../docs/wires/standard.json';

/**
 * The standard wire: the envelope of §4.6, with default names for the fields that the documentation does not show. It is
 * the initial value of the credential's field "Description", with each list of words on one line.
 */
export const STANDARD_WIRE = JSON.stringify(WIRE, null, '\t').replace(/\[\s+("[^[{]*?)\s+\]/g, (list) =>
	list.replace(/\s+/g, ' '),
);
