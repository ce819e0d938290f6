/**
 * Keeps the embedded PostgreSQL running: it is no child of ours (it outlives a `kill -9` of the platform), so its end
 * is seen by asking. What is committed is on disk; commands meanwhile are 503, calls and audio go on.
 */
import { EMBEDDED_CHECK_MS } from '../../limits.ts';
import type { Log } from '../../log.ts';
import { type EmbeddedServer, startEmbedded } from './embedded.ts';

/** The server, started again whenever it is found dead, until it is stopped. */
export function supervised(dataDir: string, first: EmbeddedServer, log: Log): EmbeddedServer {
  let server = first;
  let stopped = false;
  let restarting: Promise<void> | undefined;

  const restart = async (): Promise<void> => {
    log.error({ pid: server.pid }, 'the embedded PostgreSQL has died: starting it again');
    try {
      server = await startEmbedded(dataDir, log);
    } catch (error) {
      log.error({ reason: String(error) }, 'the embedded PostgreSQL could not be started again; trying on');
    }
    restarting = undefined;
  };
  const timer = setInterval(() => {
    if (!stopped && restarting === undefined && !server.alive()) restarting = restart();
  }, EMBEDDED_CHECK_MS);

  return {
    ...first,
    alive: () => server.alive(),
    async stop() {
      stopped = true;
      clearInterval(timer);
      await restarting;
      await server.stop();
    },
  };
}
