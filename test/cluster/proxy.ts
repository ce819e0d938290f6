/**
 * A TCP proxy before a node's NATS or PostgreSQL, which can misbehave as a network does. What a black hole swallows is
 * delivered when it passes again, late, as the buffers of a real network would.
 */
import { createConnection, createServer, type NetConnectOpts, type Server, type Socket } from 'node:net';

export type ProxyMode = 'pass' | 'blackhole' | 'reset' | { readonly delayMs: number };

interface Pair {
  /** It alone lies in a black hole. */
  isFrozen: boolean;
  readonly near: Socket;
  readonly far: Socket;
  /** Chunks that wait, with the side that they are for. */
  readonly held: { readonly to: Socket; readonly chunk: Buffer }[];
}

export class FaultProxy {
  #target: NetConnectOpts;
  readonly #pairs = new Set<Pair>();
  /** Connections that came during a black hole. */
  readonly #waiting = new Set<Socket>();
  #server: Server | undefined;
  #mode: ProxyMode = 'pass';

  private constructor(target: NetConnectOpts) {
    this.#target = target;
  }

  static async start(target: NetConnectOpts, host = '127.0.0.1'): Promise<FaultProxy> {
    const proxy = new FaultProxy(target);
    const server = createServer((near) => proxy.#accept(near));
    await new Promise<void>((resolve) => server.listen(0, host, resolve));
    proxy.#server = server;
    return proxy;
  }

  get port(): number {
    const address = this.#server?.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  /** Leads new connections elsewhere. Those that are up stay. */
  lead(target: NetConnectOpts): void {
    this.#target = target;
  }

  set(mode: ProxyMode): void {
    this.#mode = mode;
    if (mode === 'reset') {
      for (const { near, far } of this.#pairs) {
        near.destroy();
        far.destroy();
      }
      for (const near of this.#waiting) near.destroy();
    }
    if (mode !== 'pass') return;
    for (const near of this.#waiting) this.#connect(near);
    this.#waiting.clear();
    for (const { held } of this.#pairs) for (const { to, chunk } of held.splice(0)) to.write(chunk);
  }

  /** What is sent on the connections that are up now waits for `thaw`. New ones pass. */
  freeze(): void {
    for (const pair of this.#pairs) pair.isFrozen = true;
  }

  /** Delivers what waits, as TCP does that has sent it again. */
  thaw(): void {
    for (const pair of this.#pairs) {
      pair.isFrozen = false;
      for (const { to, chunk } of pair.held.splice(0)) to.write(chunk);
    }
  }

  stop(): void {
    this.set('reset');
    this.#server?.close();
  }

  #accept(near: Socket): void {
    near.on('error', () => {});
    if (this.#mode === 'reset') near.destroy();
    else if (this.#mode === 'blackhole') {
      this.#waiting.add(near);
      near.once('close', () => this.#waiting.delete(near));
    } else this.#connect(near);
  }

  #connect(near: Socket): void {
    const far = createConnection(this.#target);
    const pair: Pair = { isFrozen: false, near, far, held: [] };
    this.#pairs.add(pair);
    const pass = (to: Socket) => (chunk: Buffer) => {
      const mode = this.#mode;
      if (mode === 'blackhole' || pair.isFrozen) pair.held.push({ to, chunk });
      else if (typeof mode === 'object') setTimeout(() => to.write(chunk), mode.delayMs);
      else to.write(chunk);
    };
    near.on('data', pass(far));
    far.on('data', pass(near));
    far.on('error', () => near.destroy());
    near.on('close', () => far.destroy());
    far.on('close', () => {
      near.destroy();
      this.#pairs.delete(pair);
    });
  }
}
