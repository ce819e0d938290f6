/**
 * An RTP range for each platform of a test, on this machine, whoever started it: two that shared one would give each
 * other's ports to new calls, to which callers of ended ones may still talk.
 */
import { createSocket, type Socket } from 'node:dgram';

const FIRST_PORT = 20_000;
const RANGES = 100;
const PORTS = 400;

let next = process.pid % RANGES;

export class RtpRange {
  /** The range as RTP_PORTS wants it. */
  readonly ports: string;
  /** Holds the last port of the range, which says to all others that the range is taken. */
  readonly #mark: Socket;

  private constructor(first: number, mark: Socket) {
    this.ports = `${first}-${first + PORTS - 3}`;
    this.#mark = mark;
  }

  /** The next range that nobody has. Throws where there is none. */
  static async take(): Promise<RtpRange> {
    for (let tries = 0; tries < RANGES; tries++) {
      const first = FIRST_PORT + PORTS * next;
      next = (next + 37) % RANGES; // It comes to each: the step and the number have no common divisor.
      const mark = await bound(first + PORTS - 1);
      if (mark !== undefined) return new RtpRange(first, mark);
    }
    throw new Error(`all ${RANGES} RTP ranges of ${PORTS} ports from ${FIRST_PORT} are taken`);
  }

  free(): void {
    this.#mark.close();
  }
}

/** A socket on that port, which keeps no process alive; `undefined` where another has it. */
async function bound(port: number): Promise<Socket | undefined> {
  const socket = createSocket('udp4').unref();
  const { promise, resolve } = Promise.withResolvers<Socket | undefined>();
  socket.once('error', () => resolve(undefined));
  socket.bind(port, '127.0.0.1', () => resolve(socket));
  return await promise;
}
