// n8n reads the "n8n" section of package.json and loads the files listed there; nothing imports this package. This file
// is what "main" points to, so that `require('n8n-nodes-flowtask')` does not fail.
module.exports = {};
