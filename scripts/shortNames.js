const { readFile } = require('node:fs/promises');
const esbuild = require('esbuild');

/** What libraries call their own parts, seen by nobody else: with short names they are a fifth smaller. */
const OWN_NAMES = {
	jmespath:
		/^(_.*|types|name|children|visit|tokens|advance|expression|nud|led|start|binds|matchedToken|lookahead\w*|index|interpreter|runtime|functionTable|callFunction|createKeyFunction|errorToken|variadic|parse[A-Z]\w+|computeSliceParams|capSliceRange)$/,
	jsonschema:
		/^(addError|importErrors|preValidateProperty|deepCompareStrict|getDecimalPlaces|makeChild|disableFormat|throwAll|throwError|throwFirst|propertyPath|validateSchema|testType|instance|ValidatorResult\w*|SchemaError|SchemaContext|ValidationError|isSchema|ignoreProperties|isFormat|deepMerge|objectGetPath|encodePath|SchemaScanResult|attributes|unresolvedRefs|customFormats|preValidateProperty|skipAttributes|allowUnknownAttributes|superResolve|absoluteUri|FORMAT_REGEXPS)$/,
	valibot: /^(reference|expects|received|requirement|abortEarly|abortPipeEarly|typed|kind|async)$/,
};

/** Libraries whose parts refer to each other by name, over several files: one cache keeps the names the same. */
const shortNames = {
	name: 'short names',
	setup({ onLoad }) {
		const caches = new Map();
		onLoad({ filter: /node_modules[\\/](jmespath|jsonschema|valibot)[\\/].*\.m?js$/ }, async ({ path }) => {
			const [, library] = /node_modules[\\/](\w+)/.exec(path);
			const source = await readFile(path, 'utf8');
			// At once, so that no two files take the same name for different parts.
			const { code, mangleCache } = esbuild.transformSync(source, {
				mangleProps: OWN_NAMES[library],
				mangleCache: caches.get(library) ?? {},
			});
			caches.set(library, mangleCache);
			return { contents: code, loader: 'js' };
		});
	},
};

module.exports = { shortNames };
