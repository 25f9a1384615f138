// node scan.mjs <folder> <pattern>…: what n8n's official scanner says about a folder. A process of its own because
// the scanner is an ES module, which jest does not load.
import { analyzePackage } from '@n8n/scan-community-package/scanner/scanner.mjs';

const [dir, ...patterns] = process.argv.slice(2);
const { passed, message, details } = await analyzePackage(dir, patterns);
console.log(JSON.stringify({ passed, message, details }));
