/**
 * TCP connections whose far end is gone without a word, as after a restart or where a firewall has forgotten them: the
 * first message to it is answered by a reset.
 */
import { afterEach, expect, test } from 'bun:test';
import { createServer, type Socket } from 'node:net';
import { TestCarrier, trunkTo } from './harness.ts';
import { field, sdp } from './raw-peer.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A carrier on TCP that answers what `answer` gives it: a status line, nothing, or a reset of the connection. */
async function carrierThat(answer: (method: string, seen: number) => string | 'reset' | undefined) {
  /** The requests that came, each with the number of its connection. */
  const heard: { readonly connection: number; readonly message: string }[] = [];
  let connections = 0;
  const server = createServer((socket: Socket) => {
    const connection = ++connections;
    closers.push(() => socket.destroy());
    socket.on('error', () => {});
    socket.on('data', (data) => {
      for (const message of data.toString().split(/(?<=\r\n)(?=[A-Z]+ sip:)/)) {
        const method = message.split(' ', 1)[0] ?? '';
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
  const carrier = await TestCarrier.open([trunkTo(`sip:127.0.0.1:${port};transport=tcp`)]);
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
  return { carrier, of };
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
