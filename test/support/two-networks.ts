/**
 * A machine with two networks, in network namespaces of Linux (root, ip, nft):
 *
 *   lan 10.9.0.1 ─┐
 *              machine 198.18.0.1 ── 198.18.0.2 router 203.0.113.1 ── 203.0.113.2 far end
 *
 * The router has the machine's default route. The link behind it takes 1280 bytes at most, and nobody is told so. A
 * datagram to port 9 of the router is refused as of a protocol that it does not speak.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { run } from './nat.ts';

const RULES = `
table ip filter {
  chain inp { type filter hook input priority 0
    udp dport 9 reject with icmp type prot-unreachable
  }
  chain outp { type filter hook output priority 0
    icmp type destination-unreachable icmp code frag-needed drop
  }
}`;

const NAMES = ['machine', 'router', 'far'] as const;
type Name = (typeof NAMES)[number];

export class TwoNetworks implements Disposable {
  readonly #prefix = `st${process.pid}`;

  static open(): TwoNetworks {
    const networks = new TwoNetworks();
    try {
      networks.#build();
      return networks;
    } catch (error) {
      networks[Symbol.dispose]();
      throw error;
    }
  }

  /**
   * Runs a module of TypeScript in a namespace, within 40 s. Resolves with what it prints. `then` is called when it has
   * printed something.
   */
  async script(at: Name, source: string, then?: (child: ChildProcess) => void): Promise<string> {
    const command = ['netns', 'exec', this.#name(at), process.execPath, '--eval', source];
    const child = spawn('ip', command, { stdio: ['pipe', 'pipe', 'inherit'], timeout: 40_000 });
    let printed = '';
    for await (const chunk of child.stdout) {
      if (printed === '') then?.(child);
      printed += String(chunk);
    }
    return printed.trim();
  }

  /** The router drops all packets of TCP connections that are up, and tells nobody. */
  forgetConnections(): void {
    const rules = 'table ip forget { chain forw { type filter hook forward priority 0; tcp flags & syn == 0 drop; }; }';
    run('ip', 'netns', 'exec', this.#name('router'), 'nft', rules);
  }

  [Symbol.dispose](): void {
    for (const name of NAMES) spawnSync('ip', ['netns', 'delete', this.#name(name)], { stdio: 'ignore' });
  }

  #name(name: Name): string {
    return `${this.#prefix}-${name}`;
  }

  #build(): void {
    const [machine, router, far] = [this.#name('machine'), this.#name('router'), this.#name('far')];
    for (const name of [machine, router, far]) {
      run('ip', 'netns', 'add', name);
      run('ip', '-n', name, 'link', 'set', 'lo', 'up');
    }
    const link = (from: string, device: string, to: string, there: string, mtu: string) => {
      run('ip', '-n', from, 'link', 'add', device, 'mtu', mtu, 'type', 'veth', 'peer', 'name', there, 'netns', to);
      run('ip', '-n', to, 'link', 'set', there, 'mtu', mtu, 'up');
      run('ip', '-n', from, 'link', 'set', device, 'up');
    };
    const address = (name: string, device: string, value: string) => run('ip', '-n', name, 'addr', 'add', value, 'dev', device);
    link(machine, 'lan', far, 'unused', '1500');
    link(machine, 'wan', router, 'machine', '1500');
    link(router, 'far', far, 'eth0', '1280');
    address(machine, 'lan', '10.9.0.1/24');
    address(machine, 'wan', '198.18.0.1/30');
    address(router, 'machine', '198.18.0.2/30');
    address(router, 'far', '203.0.113.1/24');
    address(far, 'eth0', '203.0.113.2/24');
    run('ip', '-n', machine, 'route', 'add', 'default', 'via', '198.18.0.2');
    run('ip', '-n', far, 'route', 'add', 'default', 'via', '203.0.113.1');
    run('ip', 'netns', 'exec', router, 'sysctl', '-qw', 'net.ipv4.ip_forward=1', 'net.ipv4.icmp_ratelimit=0');
    run('ip', 'netns', 'exec', router, 'nft', RULES);
  }
}
