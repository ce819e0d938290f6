/**
 * Mends known faults of packages that their makers have not released a fix for, by replacing exact lines in
 * node_modules. Each has its reason and its report here, and goes when a release has it. What does not match is left as
 * it is and named, because a newer version may not need it.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * postgres.js 3.4.9 (porsager/postgres #1133, #1208). A connection that closes while a write waits for the end of the
 * turn never writes again: each reconnect runs into its timeout, until the whole pool is dead. Or the write finds no
 * socket, and ends the process. What was sent between a reset and its close event is never settled. And a connection
 * whose first query is taken back before it is up is never used. test/database/reset.test.ts fails without this.
 *
 * The rows of a query that failed after its first ones stay counted, so that the answer to the next one begins with so
 * many holes (#1119): test/database/holes.test.ts. Of several hosts it tries one after the other without end, also
 * where none answers: test/database/several-servers.test.ts.
 */
const POSTGRES = {
  file: 'node_modules/postgres/src/connection.js',
  changes: [
    [
      '  function nextWrite(fn) {\n    const x = socket.write(chunk, fn)\n',
      '  function nextWrite(fn) {\n    if (socket === null) {\n      chunk = nextWriteTimer = null\n' +
        "      error(Errors.connection('CONNECTION_CLOSED', options))\n      return false\n    }\n" +
        '    const x = socket.write(chunk, fn)\n',
    ],
    ['    clearImmediate(nextWriteTimer)\n    if (socket) {\n', '    dropWrite()\n    if (socket) {\n'],
    ['    clearImmediate(nextWriteTimer)\n    socket.removeListener', '    dropWrite()\n    socket.removeListener'],
    [
      '    if (initial) {\n      if (target',
      '    if (initial && initial.cancelled) initial = null\n    if (initial) {\n      if (target',
    ],
    ['    !hadError && (query || sent.length) && error(', '    ;(query || sent.length) && error('],
    [
      '    query = results = errorResponse = null\n    result = new Result()\n',
      '    query = results = errorResponse = null\n    result = new Result()\n    rows = 0\n',
    ],
    [
      '    if (connection.queue === queues.connecting && options.host[retries + 1])\n      return\n\n',
      '    if (connection.queue === queues.connecting && options.host[++retries])\n      return\n\n    retries = 0\n',
    ],
    [
      '  function terminate() {\n',
      '  function dropWrite() {\n    clearImmediate(nextWriteTimer)\n    chunk = nextWriteTimer = null\n  }\n\n  function terminate() {\n',
    ],
  ],
};

/** Mends the packages below `root`. `say` is told of what could not be. */
export function mendPackages(root, say) {
  for (const { file, changes } of [POSTGRES]) {
    const path = join(root, file);
    const before = readFileSync(path, 'utf8');
    let after = before;
    for (const [from, to] of changes) {
      if (after.includes(to)) continue;
      if (after.includes(from)) after = after.replace(from, to);
      else say(`${file} is not as it was when it was mended; see bin/mend-packages.mjs.`);
    }
    if (after !== before) writeFileSync(path, after);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  mendPackages(join(dirname(fileURLToPath(import.meta.url)), '..'), (line) => console.error(line));
