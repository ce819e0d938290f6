/** A TCP connection over which more comes than is worked on, read by the listener on a clock of the test's own. */
import { afterEach, expect, test } from 'bun:test';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type Listener, openListener } from '../../src/carrier/socket/listener.ts';
import type { Clock } from '../../src/clock.ts';
import { SIP_CONNECTION_TURN_MESSAGES, SIP_LATE_MS, SIP_TURN_MESSAGES, SIP_TURN_MS } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { TestCarrier, trunkTo } from './harness.ts';
import { RawPeer, sdp } from './raw-peer.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A message whose body makes it a kilobyte long. */
const message = (name: string) => {
  const body = 'x'.repeat(900);
  return `OPTIONS sip:${name}@x SIP/2.0\r\nCall-ID: ${name}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
};
const many = (name: string, count: number) => message(name).repeat(count);

/** A clock that only work moves on. No timer of it ever fires. */
class WorkClock implements Clock {
  ms = 1_000_000;
  now = () => this.ms;
  wall = () => this.ms;
  at = () => () => {};
}

interface Heard {
  readonly name: string;
  readonly isLate: boolean;
}

/** A listener of whose clock each message takes so much. `until` resolves once so many messages were heard. */
async function listening(takesMs: number) {
  const clock = new WorkClock();
  const heard: Heard[] = [];
  let waiting: { readonly count: number; readonly resolve: (heard: readonly Heard[]) => void } | undefined;
  const listener: Listener = await openListener({
    listen: [{ transport: 'tcp', host: '127.0.0.1', port: 0 }],
    tls: undefined,
    advertise: [],
    clock,
    log: silentLog,
    tlsOf: () => undefined,
    isKnown: () => true,
    isBanned: () => false,
    onMessage(bytes, _source, isLate) {
      heard.push({ name: /sip:(\w+)@/.exec(new TextDecoder().decode(bytes))?.[1] ?? '', isLate });
      clock.ms += takesMs;
      if (waiting !== undefined && heard.length >= waiting.count) waiting.resolve(heard);
    },
    onLost() {},
  });
  closers.push(() => listener.close());
  const until = (count: number) =>
    new Promise<readonly Heard[]>((resolve) => {
      waiting = { count, resolve };
      if (heard.length >= count) resolve(heard);
    });
  const connected = async (): Promise<Socket> => {
    const socket = connect(listener.ports[0]?.port ?? 0, '127.0.0.1');
    closers.push(() => socket.destroy());
    await once(socket, 'connect');
    return socket;
  };
  return { clock, heard, until, connected };
}

test('New calls are late once a connection has had more to say than is worked on for a second, and not after it', async () => {
  const { clock, heard, until, connected } = await listening(10);
  const socket = await connected();
  socket.write(many('flood', 2_000));
  await until(2_000);
  const first = heard.findIndex(({ isLate }) => isLate);
  expect(first).toBeGreaterThanOrEqual(SIP_LATE_MS / 10);
  expect(first).toBeLessThan(1_000);

  clock.ms += SIP_LATE_MS;
  socket.write(many('burst', 100));
  const burst = (await until(2_100)).slice(2_000);
  expect(burst.map(({ isLate }) => isLate)).not.toContain(true);
});

/** A clock on which some time passes each time that it is asked. */
class AskedClock extends WorkClock {
  override now = () => (this.ms += 0.5);
}

test('New calls that are late are answered 503, counted, and told to the operator with what to do', async () => {
  const trunk = trunkTo('sip:127.0.0.1:9', { inboundCidrs: ['127.0.0.1/32'] });
  const carrier = await TestCarrier.open([trunk], { clock: new AskedClock() });
  closers.push(() => carrier.close());
  const peer = await RawPeer.tcp(carrier.port('tcp'), '127.0.0.1');
  closers.push(() => peer.close());
  // None of them is for a number of ours, so that each is answered at once.
  const invites = Array.from({ length: 1_500 }, (_, at) =>
    peer.request('INVITE', { id: `call${at}`, number: '+15550999', body: sdp() }),
  );
  peer.send(invites.join(''));
  await peer.until(/^SIP\/2.0 503/);
  const { callsLate, datagramsLost } = carrier.carrier.load();
  expect(callsLate).toBeGreaterThan(0);
  expect(datagramsLost).toBe(0);
  expect(carrier.carrier.refusals()).toContainEqual(
    expect.objectContaining({ status: 503, transport: 'tcp', reason: expect.stringContaining('faster over the connection') }),
  );
});

test('A connection that brings little at a time is never late, however long it goes on', async () => {
  const { heard, until, connected } = await listening(100);
  const socket = await connected();
  for (let round = 1; round <= 30; round++) {
    socket.write(many('calm', 3));
    await until(3 * round);
  }
  expect(heard.map(({ isLate }) => isLate)).not.toContain(true);
});

/** The messages of a connection alone that are worked on between two looks, at most: one read and one turn. */
async function mostInATurn({ heard, connected }: Awaited<ReturnType<typeof listening>>): Promise<number> {
  const alone = await connected();
  alone.write(many('first', 1_000));
  let most = 0;
  for (let before = 0; heard.length < 1_000; before = heard.length) {
    await new Promise((resolve) => setImmediate(resolve));
    most = Math.max(most, heard.length - before);
  }
  return most;
}

test('A connection alone has the whole of a turn, as long as its messages take little time', async () => {
  const quick = await mostInATurn(await listening(0));
  expect(quick).toBeGreaterThan(2 * SIP_CONNECTION_TURN_MESSAGES);
  expect(quick).toBeLessThanOrEqual(SIP_TURN_MESSAGES + SIP_CONNECTION_TURN_MESSAGES);
  expect(await mostInATurn(await listening(SIP_TURN_MS))).toBeLessThanOrEqual(2 * SIP_CONNECTION_TURN_MESSAGES);
});

test('Beside another one a connection has its share of a round', async () => {
  const { until, connected } = await listening(0);
  const alone = await connected();
  alone.write(many('first', 1_000));
  await until(1_000);
  const other = await connected();
  alone.write(many('first', 1_000));
  await until(1_100);
  other.write(many('second', 40));
  const both = (await until(2_040)).slice(1_100);
  const last = both.findLastIndex(({ name }) => name === 'second');
  const between = both.slice(
    both.findIndex(({ name }) => name === 'second'),
    last,
  );
  // They take turns, eight by eight.
  expect(between.filter(({ name }) => name === 'first').length).toBeLessThanOrEqual(40 + SIP_TURN_MESSAGES);
});
