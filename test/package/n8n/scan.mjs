// node scan.mjs <folder> <pattern>…: prints what n8n's official scanner says about a folder. It is a separate process,
// because the scanner is an ES module, which jest does not load.
import { analyzePackage } from '@n8n/scan-community-package/scanner/scanner.mjs';

const [dir, ...patterns] = process.argv.slice(2);
const { passed, message, details } = await analyzePackage(dir, patterns);
console.log(JSON.stringify({ passed, message, details }));
