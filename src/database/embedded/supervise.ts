/**
 * Keeps the embedded PostgreSQL running: it is no child of ours (it outlives a `kill -9` of the platform), so its end
 * is seen by asking. A server that ends closes its connections, and is asked for then; without any it is asked for
 * every few seconds. What is committed is on disk; commands meanwhile are 503, calls and audio go on.
 */
import { EMBEDDED_CHECK_AGAIN_MS, EMBEDDED_CHECK_MS } from '../../limits.ts';
import type { Log } from '../../log.ts';
import { type EmbeddedServer, startEmbedded } from './embedded.ts';

export interface SupervisedServer extends EmbeddedServer {
  /** Is told of each connection that was closed, for whatever reason. */
  connectionClosed(): void;
  /**
   * The server is this process's own from now on: where the process ends without stopping it, as at the second Ctrl-C,
   * it ends too. It outlives `kill -9` alone.
   */
  own(): void;
}

/** The server, started again whenever it is found dead, until it is stopped. */
export function supervised(dataDir: string, first: EmbeddedServer, log: Log): SupervisedServer {
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
  const check = (): void => {
    if (!stopped && restarting === undefined && !server.alive()) restarting = restart();
  };
  const timer = setInterval(check, EMBEDDED_CHECK_MS);
  let again: ReturnType<typeof setTimeout> | undefined;
  // A fast shutdown, which nobody waits for (PostgreSQL, Shutting Down the Server).
  const leave = (): void => {
    if (server.alive()) process.kill(server.pid, 'SIGINT');
  };

  return {
    ...first,
    alive: () => server.alive(),
    connectionClosed() {
      if (stopped) return;
      check();
      // A server that is stopped by somebody else closes its connections first and ends a moment later.
      again ??= setTimeout(() => {
        again = undefined;
        check();
      }, EMBEDDED_CHECK_AGAIN_MS);
    },
    own: () => void process.on('exit', leave),
    async stop() {
      stopped = true;
      process.off('exit', leave);
      clearInterval(timer);
      clearTimeout(again);
      await restarting;
      await server.stop();
    },
  };
}
