/**
 * Asks name servers for the addresses of a name, over UDP, and over TCP what does not go into a datagram. The resolver
 * of the runtime does so as well, but it takes each of the addresses in its answer for a socket, and goes through those
 * before it for each further one: a name with 4,000 of them, which any application may have us look up, took 60 ms of
 * the main thread. Here an answer takes as long as it takes to read NAME_ADDRESSES_MAX of them.
 */
import { randomInt } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { connect, isIPv6 } from 'node:net';
import { NAME_QUESTIONS_MAX, NAME_TRIES, NAME_TRY_MS } from '../../limits.ts';
import { type Answer, answerTo, type Family, isName, question } from './message.ts';

/** The address and the port of a name server. */
export interface NameServer {
  readonly host: string;
  readonly port: number;
}

/** Why there is no address, as Node has it: ENOTFOUND is what name servers say, all else is want of their answer. */
export type NameFailure = 'ENOTFOUND' | 'ETIMEOUT' | 'ESERVFAIL' | 'ECONNREFUSED' | 'EBUSY';

export class NameError extends Error {
  readonly code: NameFailure;

  constructor(code: NameFailure, name: string) {
    super(`${code} ${name}`);
    this.code = code;
  }
}

interface Waiting {
  readonly asked: Buffer;
  readonly family: Family;
  readonly settle: (outcome: Answer | NameFailure) => void;
}

export class NameClient {
  readonly #servers: () => readonly NameServer[];
  /** A socket for each server while anything is asked there: it has another port each time (RFC 5452 §9.2). */
  readonly #sockets = new Map<string, AskingSocket>();

  /** `servers` are asked in turn, as they are at the time. */
  constructor(servers: () => readonly NameServer[]) {
    this.#servers = servers;
  }

  /** The addresses of a whole name in one IP version, NAME_ADDRESSES_MAX at most. Rejects with `NameError` only. */
  async addresses(name: string, family: Family): Promise<readonly string[]> {
    const servers = isName(name) ? this.#servers() : [];
    let failure: NameFailure = isName(name) ? 'ECONNREFUSED' : 'ENOTFOUND';
    for (let tried = 0; tried < Math.max(NAME_TRIES, servers.length); tried++) {
      const server = servers[tried % servers.length];
      if (server === undefined) break;
      const answer = await this.#ask(server, name, family, NAME_TRY_MS * 2 ** Math.floor(tried / servers.length));
      if (typeof answer === 'string') failure = answer;
      else if (answer.code === 0 && answer.addresses.length > 0) return answer.addresses;
      else if (answer.code === 0 || answer.code === 3) failure = 'ENOTFOUND';
      else failure = 'ESERVFAIL';
      if (failure === 'ENOTFOUND' || failure === 'EBUSY') break;
    }
    throw new NameError(failure, name);
  }

  async #ask(server: NameServer, name: string, family: Family, waitMs: number): Promise<Answer | NameFailure> {
    const answer = await this.#overUdp(server, name, family, waitMs);
    if (typeof answer === 'string' || !answer.isCut) return answer;
    return await overTcp(server, name, family, waitMs);
  }

  #overUdp(server: NameServer, name: string, family: Family, waitMs: number): Promise<Answer | NameFailure> {
    const key = `${server.host} ${server.port}`;
    let socket = this.#sockets.get(key);
    if (socket === undefined) {
      socket = new AskingSocket(server, () => this.#sockets.delete(key));
      this.#sockets.set(key, socket);
    }
    return socket.ask(name, family, waitMs);
  }
}

/** A socket that is connected to one name server: what others send never comes to it. It is closed once it is idle. */
class AskingSocket {
  readonly #socket: Socket;
  readonly #waiting = new Map<number, Waiting>();
  readonly #connected: Promise<void>;
  readonly #closed: () => void;

  constructor({ host, port }: NameServer, closed: () => void) {
    this.#closed = closed;
    this.#socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4');
    this.#socket.on('message', (bytes) => this.#take(bytes));
    this.#socket.on('error', () => this.#fail());
    this.#connected = new Promise((resolve) => this.#socket.connect(port, host, resolve));
  }

  async ask(name: string, family: Family, waitMs: number): Promise<Answer | NameFailure> {
    if (this.#waiting.size >= NAME_QUESTIONS_MAX) return 'EBUSY';
    let id = randomInt(65_536);
    while (this.#waiting.has(id)) id = randomInt(65_536);
    const asked = question(id, name, family);
    const { promise, resolve } = Promise.withResolvers<Answer | NameFailure>();
    this.#waiting.set(id, { asked, family, settle: resolve });
    const timer = setTimeout(() => resolve('ETIMEOUT'), waitMs);
    void this.#connected.then(() => {
      if (this.#waiting.has(id)) this.#socket.send(asked);
    });
    return await promise.finally(() => {
      clearTimeout(timer);
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) this.#close();
    });
  }

  #take(bytes: Buffer): void {
    const waiting = bytes.length < 12 ? undefined : this.#waiting.get(bytes.readUInt16BE(0));
    const answer = waiting && answerTo(waiting.asked, bytes, waiting.family);
    if (answer !== undefined) waiting?.settle(answer);
  }

  /** Nobody listens at the server's port, or there is no way to it. */
  #fail(): void {
    for (const { settle } of this.#waiting.values()) settle('ECONNREFUSED');
  }

  #close(): void {
    this.#closed();
    this.#socket.close();
  }
}

/** RFC 1035 §4.2.2: a message over TCP begins with its length. */
function overTcp({ host, port }: NameServer, name: string, family: Family, waitMs: number): Promise<Answer | NameFailure> {
  const asked = question(randomInt(65_536), name, family);
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const parts: Buffer[] = [];
    let held = 0;
    const done = (outcome: Answer | NameFailure) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(outcome);
    };
    const timer = setTimeout(() => done('ETIMEOUT'), waitMs);
    socket.on('error', () => done('ECONNREFUSED'));
    socket.on('close', () => done('ESERVFAIL'));
    socket.on('connect', () => {
      const length = Buffer.alloc(2);
      length.writeUInt16BE(asked.length);
      socket.write(Buffer.concat([length, asked]));
    });
    socket.on('data', (chunk: Buffer) => {
      parts.push(chunk);
      held += chunk.length;
      if (held < 2) return;
      const all = Buffer.concat(parts.splice(0));
      parts.push(all);
      const end = 2 + all.readUInt16BE(0);
      if (held < end) return;
      const answer = answerTo(asked, all.subarray(2, end), family);
      done(answer !== undefined && answer.id === asked.readUInt16BE(0) ? answer : 'ESERVFAIL');
    });
  });
}
