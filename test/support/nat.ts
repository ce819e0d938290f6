/**
 * A telephone's home behind a router that masquerades, in network namespaces of Linux (root, ip, nft):
 *
 *   this machine 198.18.N.1 ── 198.18.N.2 router 192.168.1.1 ── 192.168.1.10 telephone
 *             └────── 198.18.N.5 ── 198.18.N.6, by which the test commands the telephone ──┘
 *
 * The router gives each flow a port at random, as many do at home.
 */
import { spawnSync } from 'node:child_process';

const has = (program: string, ...args: string[]) => spawnSync(program, args, { stdio: 'ignore' }).status === 0;

/** Whether this process may make namespaces, and has the programs for it. */
export const natInstalled = process.getuid?.() === 0 && has('ip', 'netns') && has('nft', '--version');

/** Runs a program to its end. Throws what it complains of where it fails. */
export function run(program: string, ...args: string[]): void {
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr}`);
}

const RULES = `
table ip nat {
  chain post { type nat hook postrouting priority 100; oifname "wan" masquerade random
  }
}
table ip filter {
  chain forw { type filter hook forward priority 0; policy drop
    ct state established,related accept
    oifname "wan" accept
  }
}`;

export class Nat implements Disposable {
  readonly #name: string;
  readonly #net: string;

  private constructor(index: number) {
    this.#name = `st${index}`;
    this.#net = `198.18.${index}`;
  }

  /** Builds one, with a network that nobody else on this machine has. */
  static open(): Nat {
    const first = process.pid % 250;
    for (let tried = 0; tried < 250; tried++) {
      const nat = new Nat((first + tried) % 250);
      if (!has('ip', 'netns', 'add', nat.#router)) continue;
      try {
        nat.#build();
        return nat;
      } catch (error) {
        nat[Symbol.dispose]();
        throw error;
      }
    }
    throw new Error('no network is left for a NAT');
  }

  /** The address of this machine on the side of the Internet. */
  get here(): string {
    return `${this.#net}.1`;
  }

  /** The public address of the router. */
  get outside(): string {
    return `${this.#net}.2`;
  }

  /** The namespace of the telephone, its address there, and the one at which it takes commands. */
  get home(): { readonly namespace: string; readonly address: string; readonly control: string } {
    return { namespace: this.#phone, address: '192.168.1.10', control: `${this.#net}.6` };
  }

  /** The router restarts: it has forgotten every flow. */
  restart(): void {
    run('ip', '-n', this.#router, 'link', 'set', 'wan', 'down');
    run('ip', '-n', this.#router, 'link', 'set', 'wan', 'up');
  }

  /** The time after which the router forgets a flow without a packet. */
  forgetAfter(seconds: number): void {
    for (const name of ['udp_timeout', 'udp_timeout_stream'])
      run('ip', 'netns', 'exec', this.#router, 'sysctl', '-qw', `net.netfilter.nf_conntrack_${name}=${seconds}`);
  }

  [Symbol.dispose](): void {
    for (const name of [this.#phone, this.#router]) spawnSync('ip', ['netns', 'delete', name], { stdio: 'ignore' });
  }

  get #router(): string {
    return `${this.#name}-router`;
  }

  get #phone(): string {
    return `${this.#name}-phone`;
  }

  #build(): void {
    const [router, phone, name] = [this.#router, this.#phone, this.#name];
    run('ip', 'netns', 'add', phone);
    for (const each of [router, phone]) run('ip', '-n', each, 'link', 'set', 'lo', 'up');
    run('ip', 'link', 'add', `${name}w`, 'type', 'veth', 'peer', 'name', 'wan', 'netns', router);
    run('ip', 'link', 'add', `${name}c`, 'type', 'veth', 'peer', 'name', 'control', 'netns', phone);
    run('ip', '-n', router, 'link', 'add', 'lan', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', phone);
    run('ip', 'addr', 'add', `${this.here}/30`, 'dev', `${name}w`);
    run('ip', 'addr', 'add', `${this.#net}.5/30`, 'dev', `${name}c`);
    run('ip', '-n', router, 'addr', 'add', `${this.outside}/30`, 'dev', 'wan');
    run('ip', '-n', router, 'addr', 'add', '192.168.1.1/24', 'dev', 'lan');
    run('ip', '-n', phone, 'addr', 'add', `${this.home.address}/24`, 'dev', 'eth0');
    run('ip', '-n', phone, 'addr', 'add', `${this.home.control}/30`, 'dev', 'control');
    for (const link of [`${name}w`, `${name}c`]) run('ip', 'link', 'set', link, 'up');
    for (const link of ['wan', 'lan']) run('ip', '-n', router, 'link', 'set', link, 'up');
    for (const link of ['eth0', 'control']) run('ip', '-n', phone, 'link', 'set', link, 'up');
    run('ip', '-n', phone, 'route', 'add', 'default', 'via', '192.168.1.1');
    run('ip', 'netns', 'exec', router, 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
    run('ip', 'netns', 'exec', router, 'nft', RULES);
  }
}
