/**
 * Follows `/etc/resolv.conf`. The runtime reads it once, and would ask the first name servers for as long as the
 * process runs: none, where the platform was started before the network.
 */
import { setServers } from 'node:dns';
import { isIP } from 'node:net';
import { NAME_DOTS_MAX, NAME_SUFFIXES_MAX } from '../../limits.ts';
import { FollowedFile } from './followed-file.ts';

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

interface ResolvConf {
  readonly servers: readonly string[];
  /** The suffixes that are tried with a name, and the dots with which it is asked for as it is before that. */
  readonly suffixes: readonly string[];
  readonly dots: number;
}

export class NameServers {
  readonly #ask: NameServersOptions['ask'];
  readonly #file: FollowedFile<ResolvConf>;
  #known: ResolvConf | undefined;

  constructor({ path, now, ask }: NameServersOptions = SYSTEM) {
    this.#ask = ask;
    this.#file = new FollowedFile(path, resolvConf, now);
  }

  /** Call it before a look-up. It looks at the file once in a while; the first look finds what the runtime finds. */
  follow(): ResolvConf {
    const before = this.#known;
    const found = this.#file.content;
    this.#known = found;
    if (before !== undefined && before !== found && found.servers.length > 0) this.#ask(found.servers);
    return found;
  }
}

/** Three name servers at most; an address with a zone is left out. Of several `search` the last one counts. */
function resolvConf(text: string): ResolvConf {
  const lines = text.split('\n');
  const named = lines.flatMap((line) => /^\s*nameserver\s+(\S+)/.exec(line)?.[1] ?? []);
  const search = lines.flatMap((line) => /^\s*(?:search|domain)\s+(.+)/.exec(line)?.[1] ?? []).at(-1) ?? '';
  const dots = Number(/^\s*options\s.*\bndots:(\d+)/m.exec(text)?.[1] ?? 1);
  return {
    servers: named.filter((address) => isIP(address) !== 0 && !address.includes('%')).slice(0, 3),
    suffixes: search
      .split(/\s+/)
      .filter((suffix) => suffix !== '' && suffix !== '.')
      .slice(0, NAME_SUFFIXES_MAX),
    dots: Math.min(dots, NAME_DOTS_MAX),
  };
}
