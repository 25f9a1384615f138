import { join } from 'node:path';
import { packTarball } from './runner';

/** The variable that contains the path of the package as it would be published. */
export const TARBALL_VARIABLE = 'FLOWTASK_E2E_TARBALL';

/** Builds and packs the package once for all test files. */
export default async function packOnce(): Promise<void> {
	process.env[TARBALL_VARIABLE] = await packTarball(join(__dirname, '..', '..', '.e2e'));
}

export function packedTarball(): string {
	const tarball = process.env[TARBALL_VARIABLE];
	if (tarball === undefined) throw new Error('Run the tests with --config test/e2e/jest.config.js.');
	return tarball;
}
