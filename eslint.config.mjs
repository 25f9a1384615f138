import js from '@eslint/js';
import { n8nCommunityNodesPlugin } from '@n8n/eslint-plugin-community-nodes';
import { defineConfig, globalIgnores } from 'eslint/config';
import n8nNodesPlugin from 'eslint-plugin-n8n-nodes-base';
import tseslint from 'typescript-eslint';

// The files that n8n's own scanner reads as source; see SOURCE_FILE_PATTERNS in @n8n/scan-community-package.
const product = ['nodes/**/*.{js,ts,json}', 'credentials/**/*.{js,ts,json}'];

const nodeGlobals = Object.fromEntries(
	[
		...['process', 'console', 'Buffer', 'URL', 'URLSearchParams', 'fetch', 'AbortSignal', 'AbortController'],
		...['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'structuredClone'],
		...['WebSocket', 'FormData', 'Blob', 'TextDecoder', 'TextEncoder', 'performance', 'globalThis'],
	].map((name) => [name, 'readonly']),
);
const commonJsGlobals = {
	require: 'readonly',
	module: 'writable',
	exports: 'writable',
	__dirname: 'readonly',
};

export default defineConfig(
	globalIgnores(['dist/', 'coverage/', '.demo/', '.dev/', '.e2e/', '**/node_modules/', '**/fixtures/']),
	{ linterOptions: { reportUnusedDisableDirectives: 'error' } },

	// Scripts and configs in plain JavaScript.
	{
		files: ['**/*.{js,mjs,cjs}'],
		extends: [js.configs.recommended],
		languageOptions: { globals: nodeGlobals },
	},
	{
		files: ['**/*.{js,cjs}'],
		languageOptions: { sourceType: 'commonjs', globals: commonJsGlobals },
	},

	// Everything in TypeScript, with the rules that need types.
	{
		files: ['**/*.ts'],
		extends: [js.configs.recommended, tseslint.configs.strictTypeChecked],
		languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
		rules: {
			'no-undef': 'off', // tsc knows
			eqeqeq: 'error',
			'prefer-const': 'error',
			'@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'separate-type-imports' }],
			'@typescript-eslint/consistent-type-exports': 'error',
			'@typescript-eslint/no-explicit-any': 'error',
			'@typescript-eslint/no-unused-vars': [
				'error',
				{ argsIgnorePattern: '^_', varsIgnorePattern: '^_', ignoreRestSiblings: true },
			],
			'@typescript-eslint/switch-exhaustiveness-check': [
				'error',
				{ considerDefaultExhaustiveForUnions: true },
			],
			'@typescript-eslint/restrict-template-expressions': [
				'error',
				{ allowNumber: true, allowBoolean: true },
			],
			'@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
			// Spreading a string splits it into code points, which is always intended here.
			'@typescript-eslint/no-misused-spread': ['error', { allow: ['string'] }],
			// n8n's interfaces require async methods even if there is nothing to await.
			'@typescript-eslint/require-await': 'off',
			// Watchers are loops of "while (true)" with an exit.
			'@typescript-eslint/no-unnecessary-condition': ['error', { allowConstantLoopConditions: true }],
		},
	},

	// Tests read JSON of any shape and pass methods around, but do not use `any` either.
	{
		files: ['test/**/*.ts', 'bench/**/*.ts'],
		rules: {
			'@typescript-eslint/no-unsafe-argument': 'off',
			'@typescript-eslint/no-unsafe-assignment': 'off',
			'@typescript-eslint/no-unsafe-call': 'off',
			'@typescript-eslint/no-unsafe-member-access': 'off',
			'@typescript-eslint/no-unsafe-return': 'off',
			'@typescript-eslint/no-non-null-assertion': 'off',
			'@typescript-eslint/unbound-method': 'off',
		},
	},
	// The end-to-end tests have their own dependencies, so their types exist only once these are installed.
	{
		files: ['test/e2e/**/*.ts'],
		extends: [tseslint.configs.disableTypeChecked],
		languageOptions: { parserOptions: { projectService: false } },
	},

	// The checks of n8n itself, composed as in its scanner; test/package also runs the scanner.
	{
		files: ['package.json', ...product],
		extends: [n8nCommunityNodesPlugin.configs.recommended],
		plugins: { 'n8n-nodes-base': n8nNodesPlugin },
		// The scanner ignores inline comments, so code that breaks a rule fails there.
		linterOptions: { noInlineConfig: true, reportUnusedDisableDirectives: 'off' },
		rules: { 'no-console': 'error' },
	},
	{
		files: ['package.json', 'nodes/**/*.json', 'credentials/**/*.json'],
		languageOptions: { parser: tseslint.parser },
		// To the parser, a JSON document is one bare object.
		rules: { '@typescript-eslint/no-unused-expressions': 'off' },
	},
	{ files: ['package.json'], rules: { ...n8nNodesPlugin.configs.community.rules } },
	{
		files: ['credentials/**/*.ts'],
		rules: {
			...n8nNodesPlugin.configs.credentials.rules,
			// These are not valid for community nodes, or superseded; both are off in n8n's scanner, too.
			'n8n-nodes-base/cred-class-field-documentation-url-miscased': 'off',
			'n8n-nodes-base/cred-class-field-type-options-password-missing': 'off',
		},
	},
	{
		files: ['nodes/**/*.ts'],
		rules: {
			...n8nNodesPlugin.configs.nodes.rules,
			// This is off in n8n's scanner, too.
			'n8n-nodes-base/node-class-description-inputs-wrong-regular-node': 'off',
			'n8n-nodes-base/node-class-description-outputs-wrong': 'off',
			'n8n-nodes-base/node-param-type-options-max-value-present': 'off',
		},
	},
	// This is as strict as the lint of @n8n/node-cli, which does not accept "_".
	{
		files: ['nodes/**/*.ts', 'credentials/**/*.ts'],
		rules: { '@typescript-eslint/no-unused-vars': ['error', {}] },
	},
);
