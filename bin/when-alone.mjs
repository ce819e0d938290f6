/**
 * Lets one process at a time work on a checkout: `npm start` and `npm test` may be begun at once where nothing is
 * installed or built yet, and would get in each other's way.
 *
 * Who works holds a socket of Linux's abstract names, which goes with its process however that ends. Where there are no
 * such names nobody waits.
 */
import { createHash } from 'node:crypto';
import { createServer } from 'node:net';

/** How often it is looked whether the other process is done, in milliseconds. */
const LOOK_MS = 200;
/** The longest wait for the other process, in milliseconds. The first installation takes some three minutes. */
const WAIT_MAX_MS = 600_000;

/** Calls `work` once no other process works on that folder. `say` is told where that takes a while. */
export function whenAlone(folder, say, work) {
  if (process.platform !== 'linux') return work();
  const path = `\0sidetone-${createHash('sha256').update(folder).digest('hex').slice(0, 32)}`;
  const began = Date.now();
  let isTold = false;
  const look = () => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error) => {
      // Any other error says nothing of another process.
      if (error.code !== 'EADDRINUSE') return work();
      if (Date.now() - began > WAIT_MAX_MS) {
        say('another process has worked on this checkout for ten minutes: going on beside it.');
        return work();
      }
      if (!isTold) say('waiting for another process that prepares this checkout …');
      isTold = true;
      setTimeout(look, LOOK_MS);
    });
    server.listen({ path }, () => {
      server.unref();
      work();
    });
  };
  look();
}
