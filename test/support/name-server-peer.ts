/** A name server of a test, on a port of its own over UDP and TCP (RFC 1035 §4). */
import { createSocket, type Socket } from 'node:dgram';
import { getServers, setServers } from 'node:dns';
import { type AddressInfo, createServer, isIPv6, type Server } from 'node:net';

const HEADER_BYTES = 12;
/** What follows the name in a question: its type and its class. */
const AFTER_NAME_BYTES = 4;

export interface Question {
  readonly bytes: Buffer;
  readonly name: string;
  readonly type: number;
  readonly overTcp: boolean;
  /** The port that it came from. */
  readonly port: number;
}

interface Reply {
  readonly code?: number;
  readonly isCut?: boolean;
  readonly records?: readonly Buffer[];
  /** How many records those are, where one buffer has several. */
  readonly count?: number;
}

export class NameServerPeer {
  readonly host = '127.0.0.1';
  readonly port: number;
  readonly #udp: Socket;
  readonly #tcp: Server;
  /** What to answer; undefined: nothing. */
  answers: (asked: Question) => Buffer | undefined | Promise<Buffer | undefined> = () => undefined;

  private constructor(udp: Socket, tcp: Server) {
    this.#udp = udp;
    this.#tcp = tcp;
    this.port = udp.address().port;
    udp.on('message', async (bytes, { port }) => {
      const answer = await this.answers(questionOf(bytes, false, port));
      if (answer !== undefined) this.send(answer, port);
    });
    tcp.on('connection', (socket) => {
      socket.on('error', () => {});
      // A question is one segment.
      socket.on('data', async (bytes: Buffer) => {
        const answer = await this.answers(questionOf(Buffer.from(bytes.subarray(2)), true, socket.remotePort ?? 0));
        if (answer === undefined) return;
        const length = Buffer.alloc(2);
        length.writeUInt16BE(answer.length);
        socket.end(Buffer.concat([length, answer]));
      });
    });
  }

  static async open(): Promise<NameServerPeer> {
    for (;;) {
      const tcp = createServer();
      await new Promise<void>((resolve) => tcp.listen(0, '127.0.0.1', resolve));
      const { port } = tcp.address() as AddressInfo;
      const udp = createSocket('udp4');
      const isBound = await new Promise<boolean>((resolve) => {
        udp.once('error', () => resolve(false));
        udp.bind(port, '127.0.0.1', () => resolve(true));
      });
      if (isBound) return new NameServerPeer(udp, tcp);
      udp.close();
      tcp.close();
    }
  }

  send(bytes: Buffer, port: number): void {
    this.#udp.send(bytes, port, '127.0.0.1');
  }

  close(): void {
    this.#udp.close();
    this.#tcp.close();
  }
}

export interface HeldNames {
  tell(): void;
  close(): void;
}

/**
 * Has this process ask a peer for names, which says 127.0.0.1 of each once `tell` is called. `close` has it ask whom it
 * asked before.
 */
export async function heldNames(): Promise<HeldNames> {
  const [usual, peer, told] = [getServers(), await NameServerPeer.open(), Promise.withResolvers<void>()];
  peer.answers = async (asked) => {
    await told.promise;
    return reply(asked, { records: [addressRecord('127.0.0.1')] });
  };
  setServers([`${peer.host}:${peer.port}`]);
  return {
    tell: told.resolve,
    close() {
      setServers(usual);
      peer.close();
    },
  };
}

function questionOf(bytes: Buffer, overTcp: boolean, port: number): Question {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = bytes[at] ?? 0; length > 0; length = bytes[at] ?? 0) {
    labels.push(bytes.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { bytes, name: labels.join('.'), type: bytes.readUInt16BE(at + 1), overTcp, port };
}

/** The answer to a question. */
export function reply({ bytes }: Pick<Question, 'bytes'>, { code = 0, isCut = false, records = [], count }: Reply): Buffer {
  const header = Buffer.from(bytes.subarray(0, bytes.indexOf(0, HEADER_BYTES) + 1 + AFTER_NAME_BYTES));
  header.writeUInt16BE(0x8180 | (isCut ? 0x0200 : 0) | code, 2);
  header.writeUInt16BE(count ?? records.length, 6);
  header.writeUInt16BE(0, 10);
  return Buffer.concat([header, ...records]);
}

/** A record of the name in question, which its name points to. */
function record(type: number, data: Buffer): Buffer {
  const fixed = Buffer.from([0xc0, HEADER_BYTES, 0, type, 0, 1, 0, 0, 0, 0, 0, data.length]);
  return Buffer.concat([fixed, data]);
}

/** An IPv6 address with all of its groups, or an IPv4 one. */
export const addressRecord = (address: string): Buffer =>
  isIPv6(address)
    ? record(
        28,
        Buffer.from(
          address
            .split(':')
            .map((group) => group.padStart(4, '0'))
            .join(''),
          'hex',
        ),
      )
    : record(1, Buffer.from(address.split('.').map(Number)));

export const aliasRecord = (name: string): Buffer =>
  record(
    5,
    Buffer.from(
      `${name
        .split('.')
        .map((label) => String.fromCharCode(label.length) + label)
        .join('')}\0`,
      'latin1',
    ),
  );
