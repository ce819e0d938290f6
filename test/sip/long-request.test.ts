/** Requests that are too long for UDP (RFC 3261 §18.1.1), over real sockets. */
import { afterEach, describe, expect, test } from 'bun:test';
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { createServer, type Server, type Socket } from 'node:net';
import { Signals, TestCarrier, trunkTo } from '../carrier/harness.ts';
import { field } from '../carrier/raw-peer.ts';
import { refusedPort } from '../support/refused-port.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

interface Heard {
  readonly over: 'UDP' | 'TCP';
  readonly message: string;
  answer(status: string): void;
}

/** A carrier on one port, over UDP and, if asked for, TCP. */
class FarEnd {
  readonly heard: Heard[] = [];
  readonly port: number;
  #waiting: (() => void)[] = [];

  private constructor(udp: UdpSocket, tcp: Server | undefined) {
    this.port = udp.address().port;
    udp.on('message', (bytes, from) => this.#hear('UDP', bytes.toString(), (text) => udp.send(text, from.port, from.address)));
    tcp?.on('connection', (socket: Socket) => {
      socket.on('error', () => {});
      closers.push(() => socket.destroy());
      socket.on('data', (bytes) => this.#hear('TCP', bytes.toString(), (text) => void socket.write(text)));
    });
  }

  static async open(hasTcp: boolean): Promise<FarEnd> {
    for (;;) {
      const udp = createSocket('udp4');
      const refused = hasTcp ? undefined : await refusedPort();
      if (refused !== undefined) closers.push(() => refused.close());
      const isBound = new Promise<boolean>((resolve) => {
        udp.once('listening', () => resolve(true)).once('error', () => resolve(false));
      });
      udp.bind(refused?.port ?? 0, '127.0.0.1');
      if (!(await isBound)) continue;
      closers.push(() => udp.close());
      if (!hasTcp) return new FarEnd(udp, undefined);
      const tcp = createServer();
      const isOpen = new Promise<boolean>((resolve) => {
        tcp.once('listening', () => resolve(true)).once('error', () => resolve(false));
      });
      tcp.listen(udp.address().port, '127.0.0.1');
      if (!(await isOpen)) continue;
      closers.push(() => tcp.close());
      return new FarEnd(udp, tcp);
    }
  }

  async until(method: string): Promise<Heard> {
    for (;;) {
      const found = this.heard.find(({ message }) => message.startsWith(`${method} `));
      if (found !== undefined) return found;
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const timer = setTimeout(() => reject(new Error(`no ${method}`)), 8_000);
      this.#waiting.push(resolve);
      await promise.finally(() => clearTimeout(timer));
    }
  }

  #hear(over: Heard['over'], message: string, send: (text: string) => void): void {
    const answer = (status: string) => {
      const [to, from] = [field(message, 'To'), field(message, 'From')];
      const tag = to.includes('tag=') ? to : `${to};tag=far`;
      const fields = `Via: ${field(message, 'Via')}\r\nFrom: ${from}\r\nTo: ${tag}\r\nCall-ID: ${field(message, 'Call-ID')}\r\n`;
      send(`SIP/2.0 ${status}\r\n${fields}CSeq: ${field(message, 'CSeq')}\r\nContent-Length: 0\r\n\r\n`);
    };
    this.heard.push({ over, message, answer });
    for (const wake of this.#waiting.splice(0)) wake();
  }
}

const LONG = Object.fromEntries(Array.from({ length: 6 }, (_, i) => [`X-Long-${i}`, 'x'.repeat(200)]));

async function call(far: FarEnd, uri: string, sipHeaders: Record<string, string>) {
  const carrier = await TestCarrier.open([trunkTo(uri)]);
  closers.push(() => carrier.close());
  const signals = new Signals();
  const dialled = await carrier.carrier.dial({
    appUuid: 'app',
    to: '+15550100',
    from: '+15550002',
    listener: signals.listener,
    sipHeaders,
  });
  if ('unavailable' in dialled) throw new Error(dialled.unavailable);
  dialled.leg.start();
  return { leg: dialled.leg, signals, invite: await far.until('INVITE') };
}
const viaOf = ({ message }: Heard) => field(message, 'Via').split(' ')[0];

describe('an INVITE over 1,300 bytes', () => {
  test('goes over TCP, and so does its CANCEL; a shorter one goes over UDP', async () => {
    const far = await FarEnd.open(true);
    const { invite, leg, signals } = await call(far, `sip:127.0.0.1:${far.port}`, LONG);
    expect([invite.over, viaOf(invite), invite.message.length > 1300]).toEqual(['TCP', 'SIP/2.0/TCP', true]);
    invite.answer('180 Ringing');
    await signals.until('leg.ringing');
    leg.hangup();
    const cancel = await far.until('CANCEL');
    expect([cancel.over, field(cancel.message, 'Via')]).toEqual(['TCP', field(invite.message, 'Via')]);
    cancel.answer('200 OK');
    invite.answer('487 Request Terminated');
    await signals.until('leg.ended');
    expect((await far.until('ACK')).over).toBe('TCP');
    expect(far.heard.every(({ over }) => over === 'TCP')).toBe(true);

    const other = await FarEnd.open(true);
    const short = await call(other, `sip:127.0.0.1:${other.port}`, {});
    expect([short.invite.over, viaOf(short.invite)]).toEqual(['UDP', 'SIP/2.0/UDP']);
    short.leg.hangup();
  });

  test('goes over UDP when the connection is refused', async () => {
    const far = await FarEnd.open(false);
    const { invite, leg, signals } = await call(far, `sip:127.0.0.1:${far.port}`, LONG);
    expect([invite.over, viaOf(invite), invite.message.length > 1300]).toEqual(['UDP', 'SIP/2.0/UDP', true]);
    invite.answer('486 Busy Here');
    expect(await signals.until('leg.ended')).toMatchObject({ end: { cause: 'busy' } });
    leg.hangup();
  });

  test('goes over UDP where the trunk says so', async () => {
    const far = await FarEnd.open(true);
    const { invite, leg } = await call(far, `sip:127.0.0.1:${far.port};transport=udp`, LONG);
    expect(invite.over).toBe('UDP');
    leg.hangup();
  });
});
