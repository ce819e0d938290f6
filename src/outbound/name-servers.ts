/**
 * Follows `/etc/resolv.conf`. c-ares reads it once, and would ask the first name servers for as long as the process
 * runs: none, where the platform was started before the network.
 */
import { setServers } from 'node:dns';
import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { NAME_SERVERS_LOOK_MS } from '../limits.ts';

interface NameServersOptions {
  readonly path: string;
  /** Milliseconds of any clock that does not step. */
  readonly now: () => number;
  readonly ask: (servers: readonly string[]) => void;
}

const SYSTEM: NameServersOptions = {
  path: '/etc/resolv.conf',
  now: () => performance.now(),
  ask: (servers) => setServers(servers),
};

export class NameServers {
  readonly #options: NameServersOptions;
  #lookedAt = -Infinity;
  /** What tells one state of the file from another; undefined before the first look. */
  #state: string | undefined;

  constructor(options: NameServersOptions = SYSTEM) {
    this.#options = options;
  }

  /** Call it before a look-up. It looks at the file once in a while; the first look finds what c-ares finds. */
  follow(): void {
    const { path, now, ask } = this.#options;
    if (now() - this.#lookedAt < NAME_SERVERS_LOOK_MS) return;
    this.#lookedAt = now();
    const before = this.#state;
    this.#state = stateOf(path);
    if (before === undefined || before === this.#state || this.#state === '') return;
    const servers = serversIn(path);
    if (servers.length > 0) ask(servers);
  }
}

/** Empty where there is no such file. */
function stateOf(path: string): string {
  const about = statSync(path, { throwIfNoEntry: false });
  return about === undefined ? '' : `${about.ino} ${about.mtimeMs} ${about.size}`;
}

/** The name servers of a file, three at most (resolv.conf(5)). An address with a zone is left out. */
function serversIn(path: string): readonly string[] {
  try {
    const lines = readFileSync(path, 'utf8').split('\n');
    const named = lines.flatMap((line) => /^\s*nameserver\s+(\S+)/.exec(line)?.[1] ?? []);
    return named.filter((address) => isIP(address) !== 0 && !address.includes('%')).slice(0, 3);
  } catch {
    return []; // It was there a moment ago, and is being written anew.
  }
}
