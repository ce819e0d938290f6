/**
 * Long requests to a peer that may have no TCP: how long that is waited for, how it is remembered, and when it ends.
 */
import { afterEach, describe, expect, test } from 'bun:test';
import { createServer, type Server, type Socket } from 'node:net';
import { Streams } from '../../src/carrier/socket/stream.ts';
import { SIP_CONNECT_FALLBACK_MS, SIP_CONNECT_TIMEOUT_MS, SIP_NO_TCP_MAX, SIP_NO_TCP_MS } from '../../src/limits.ts';
import type { Call } from '../../src/sip/call/call.ts';
import type { Peer } from '../../src/sip/flow.ts';
import { WithoutTcp } from '../../src/sip/without-tcp.ts';
import { seeded } from '../support/random.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { bytes, Party, START } from './pair.ts';

const FAR: Peer = { transport: 'udp', host: '203.0.113.1', port: 5060, flow: 1, profile: { tcp: true } };

/** A user agent that dials, and what it has sent since the last look. */
function caller(peer = FAR) {
  const { agent } = new Party('192.0.2.1', seeded(17));
  const dial = (now: number): Call => {
    const parts = { uri: 'sip:b@203.0.113.1', from: '<sip:a@192.0.2.1>', to: '<sip:b@203.0.113.1>', credentials: undefined };
    const call = agent.invite({ ...parts, peer, body: bytes('v=0'), fields: [['x-long', 'x'.repeat(1_300)]] }, now);
    if (call === undefined) throw new Error('no call');
    return call;
  };
  const sent = () => agent.take().flatMap((output) => (output.type === 'send' ? [output] : []));
  return { agent, dial, sent };
}

describe('an INVITE that is too long for UDP', () => {
  test('waits for a connection only so long, then goes over UDP; later ones do at once, until some minutes are over', () => {
    const { agent, dial, sent } = caller();
    dial(START);
    const [first] = sent();
    expect(first?.peer).toMatchObject({ transport: 'tcp', connectMs: SIP_CONNECT_FALLBACK_MS });
    const failedAt = START + SIP_CONNECT_FALLBACK_MS;
    agent.sendFailed(first?.ticket ?? '', failedAt);
    expect(sent().map(({ peer }) => [peer.transport, peer.connectMs])).toEqual([['udp', undefined]]);
    dial(failedAt + SIP_NO_TCP_MS - 1);
    expect(sent().map(({ peer }) => peer.transport)).toEqual(['udp']);
    dial(failedAt + SIP_NO_TCP_MS);
    expect(sent().map(({ peer }) => peer.transport)).toEqual(['tcp']);
  });

  test('is not sent over UDP when the call was given up meanwhile, which is remembered for the next one', () => {
    const { agent, dial, sent } = caller();
    const call = dial(START);
    const [first] = sent();
    call.hangUp(START + 1_000);
    agent.sendFailed(first?.ticket ?? '', START + SIP_CONNECT_FALLBACK_MS);
    expect(sent()).toEqual([]);
    expect(agent.load()).toEqual({ dialogs: 0, transactions: 0 });
    dial(START + 2_000);
    expect(sent().map(({ peer }) => peer.transport)).toEqual(['udp']);
  });
});

test('The peers without TCP are remembered by host and port, the newest ones', () => {
  const peers = new WithoutTcp();
  const at = (port: number): Peer => ({ ...FAR, port });
  for (let port = 1; port <= SIP_NO_TCP_MAX; port++) peers.add(at(port), START);
  peers.add(at(1), START + 1);
  peers.add(at(SIP_NO_TCP_MAX + 1), START + 1);
  expect([1, 2, 3, SIP_NO_TCP_MAX + 1, SIP_NO_TCP_MAX + 2].map((port) => peers.has(at(port), START + 2))).toEqual([
    true,
    false,
    true,
    true,
    false,
  ]);
});

describe('a connection that does not come up', () => {
  const closers: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  /** The port of a server that takes TCP connections and never answers a TLS handshake. */
  async function silence(): Promise<number> {
    const server: Server = createServer((socket: Socket) => {
      socket.on('error', () => {});
      closers.push(() => socket.destroy());
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(() => server.close());
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  for (const [connectMs, limit] of [
    [undefined, SIP_CONNECT_TIMEOUT_MS],
    [SIP_CONNECT_FALLBACK_MS, SIP_CONNECT_FALLBACK_MS],
  ] as const)
    test(`is given up after ${limit} ms`, async () => {
      const clock = new VirtualClock();
      const options = {
        clock,
        tls: {},
        tlsOf: () => undefined,
        isKnown: () => true,
        isBanned: () => false,
        onMessage() {},
        onRefused() {},
        onLost() {},
      };
      const streams = new Streams(0, options);
      closers.push(() => streams.close());
      const target = {
        transport: 'tls',
        flow: 0,
        host: '127.0.0.1',
        port: await silence(),
        name: 'x',
        identity: '',
        opens: true,
      } as const;
      let failures = 0;
      const failed = new Promise<void>((resolve) =>
        streams.send({ ...target, connectMs }, bytes('INVITE'), () => {
          failures++;
          resolve();
        }),
      );
      await clock.advance(limit - 1);
      expect([failures, clock.armed]).toEqual([0, 1]);
      await clock.advance(1);
      await failed;
      expect([failures, streams.size]).toEqual([1, 0]);
    });
});
