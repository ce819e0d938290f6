/**
 * TCP connections whose far end is gone without a word, as after a restart or where a firewall has forgotten them: the
 * first message to it is answered by a reset.
 */
import { afterEach, expect, test } from 'bun:test';
import { createServer, type Socket } from 'node:net';
import { SIP_REGISTER_RETRY_SEC } from '../../src/limits.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';
import { TestCarrier, trunkTo } from './harness.ts';
import { field, sdp } from './raw-peer.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A carrier on TCP that answers what `answer` gives it: a status line, nothing, or a reset of the connection. */
async function carrierThat(
  answer: (method: string, seen: number) => string | 'reset' | undefined,
  { trunk = {}, ...more }: { readonly trunk?: Parameters<typeof trunkTo>[1]; readonly clock?: VirtualClock } = {},
) {
  /** The requests that came, each with the number of its connection. */
  const heard: { readonly connection: number; readonly message: string }[] = [];
  let connections = 0;
  const sockets = new Set<Socket>();
  const server = createServer((socket: Socket) => {
    const connection = ++connections;
    sockets.add(socket);
    closers.push(() => socket.destroy());
    socket.on('error', () => {});
    socket.on('data', (data) => {
      for (const message of data.toString().split(/(?<=\r\n)(?=[A-Z]+ sip:)/)) {
        const method = /^[A-Z]+(?= )/.exec(message)?.[0];
        if (method === undefined) continue;
        heard.push({ connection, message });
        const seen = heard.filter((each) => each.message.startsWith(`${method} `)).length;
        const status = method === 'ACK' ? undefined : answer(method, seen);
        if (status === 'reset') socket.resetAndDestroy();
        else if (status !== undefined) socket.write(responseTo(message, status));
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  closers.push(() => server.close());
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const carrier = await TestCarrier.open([trunkTo(`sip:127.0.0.1:${port};transport=tcp`, trunk)], more);
  closers.push(() => carrier.close());
  const responseTo = (request: string, status: string) => {
    const body = /^200/.test(status) && request.startsWith('INVITE') ? sdp() : '';
    const to = field(request, 'To');
    return (
      `SIP/2.0 ${status}\r\nVia: ${field(request, 'Via')}\r\nFrom: ${field(request, 'From')}\r\n` +
      `To: ${to.includes('tag=') ? to : `${to};tag=z`}\r\nCall-ID: ${field(request, 'Call-ID')}\r\nCSeq: ${field(request, 'CSeq')}\r\n` +
      `Contact: <sip:z@127.0.0.1:${port};transport=tcp>\r\n${body === '' ? '' : 'Content-Type: application/sdp\r\n'}` +
      `Content-Length: ${body.length}\r\n\r\n${body}`
    );
  };
  const of = (method: string) => heard.filter(({ message }) => message.startsWith(`${method} `));
  const closeAll = () => {
    for (const socket of sockets) socket.end();
    sockets.clear();
  };
  return { carrier, of, closeAll };
}

test('A call over a TCP connection that turns out to be dead goes over a new one, as the same INVITE', async () => {
  const { carrier, of } = await carrierThat((_, seen) => (seen === 2 ? 'reset' : '486 Busy Here'));
  await (await carrier.dial()).signals.until('leg.ended');
  expect(await (await carrier.dial()).signals.until('leg.ended')).toMatchObject({ end: { cause: 'busy' } });
  const [first, lost, again] = of('INVITE');
  expect([first?.connection, lost?.connection, again?.connection]).toEqual([1, 1, 2]);
  expect(again?.message).toBe(lost?.message ?? '');
});

test('A call whose new connection is lost as well ends at once as carrier_unreachable', async () => {
  const { carrier, of } = await carrierThat((_, seen) => (seen > 1 ? 'reset' : '486 Busy Here'));
  await (await carrier.dial()).signals.until('leg.ended');
  expect(await (await carrier.dial()).signals.until('leg.ended', 5_000)).toMatchObject({ end: { cause: 'carrier_unreachable' } });
  expect(of('INVITE')).toHaveLength(3);
});

test('The BYE of a call whose connection turns out to be dead reaches the carrier over a new one', async () => {
  const { carrier, of } = await carrierThat((method, seen) => (method === 'BYE' && seen === 1 ? 'reset' : '200 OK'));
  const { leg, signals } = await carrier.dial();
  await signals.until('leg.answered');
  leg.hangup();
  await carrier.idle();
  expect(of('BYE').map(({ connection }) => connection)).toEqual([1, 2]);
});

test('A trunk that is registered over TCP is registered again when that connection closes, but not twice in half a minute', async () => {
  const clock = new VirtualClock();
  const trunk = { username: 'u', password: 'p', register: true };
  const { of, closeAll } = await carrierThat((method) => (method === 'REGISTER' ? '200 OK' : undefined), { trunk, clock });
  const registered = async (times: number) => {
    for (let looks = 0; of('REGISTER').length < times; looks++) {
      if (looks > 1_000) throw new Error(`registered ${of('REGISTER').length} times`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  /** Lets what is on its way arrive. */
  const arrived = async () => {
    for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setTimeout(resolve, 1));
    await settle();
  };
  await registered(1);
  await arrived();
  await clock.advance(40_000);
  closeAll();
  await registered(2);
  await arrived();
  closeAll();
  await arrived();
  await clock.advance(SIP_REGISTER_RETRY_SEC * 1000 - 1);
  await arrived();
  expect(of('REGISTER')).toHaveLength(2);
  await clock.advance(1);
  await registered(3);
  expect(of('REGISTER').map(({ connection }) => connection)).toEqual([1, 2, 3]);
});
