/** Scanners are banned, and nobody that we know is. */
import { afterEach, describe, expect, test } from 'bun:test';
import { BanList } from '../../src/carrier/ban-list.ts';
import { SIP_BAN_UDP_MAX_SEC } from '../../src/limits.ts';
import fc from '../support/fast-check.ts';
import { TestCarrier, trunkTo } from './harness.ts';
import { field, RawPeer, sdp } from './raw-peer.ts';

const carriers: TestCarrier[] = [];
const peers: RawPeer[] = [];
afterEach(async () => {
  for (const peer of peers.splice(0)) peer.close();
  for (const carrier of carriers.splice(0)) await carrier.close();
});

async function open(after: number, cidr = '127.0.0.1/32'): Promise<TestCarrier> {
  const carrier = await TestCarrier.open([trunkTo('sip:127.0.0.1:9', { inboundCidrs: [cidr] })], { ban: { after, sec: 600 } });
  carriers.push(carrier);
  return carrier;
}

async function peerOf(carrier: TestCarrier, host: string, transport: 'udp' | 'tcp' = 'udp'): Promise<RawPeer> {
  const peer = await RawPeer[transport](carrier.port(transport), host);
  peers.push(peer);
  return peer;
}

let scans = 0;

/** Sends INVITEs one after the other, each when the one before was refused. */
async function scan(peer: RawPeer, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    peer.send(peer.request('INVITE', { id: `scan${++scans}`, body: sdp() }));
    const to = field(await peer.until(/^SIP\/2.0 403/), 'To');
    // What acknowledges a refusal is not refused itself.
    peer.send(peer.request('ACK', { id: `scan${scans}`, to }));
  }
}

describe('an address that is refused again and again', () => {
  test('is not listened to any more, over UDP and TCP, and the operator is told', async () => {
    const carrier = await open(3);
    const stranger = await peerOf(carrier, '127.0.0.66');
    const before = await peerOf(carrier, '127.0.0.66', 'tcp');
    await scan(stranger, 3);
    stranger.send(stranger.request('OPTIONS', { id: 'after' }));
    before.send(before.request('OPTIONS', { id: 'connected before' }));
    const known = await peerOf(carrier, '127.0.0.1');
    known.send(known.request('OPTIONS', { id: 'known' }));
    await known.until(/^SIP\/2.0 200/);
    expect(stranger.heard).toEqual([]);
    const connected = await peerOf(carrier, '127.0.0.66', 'tcp');
    for (const each of [before, connected]) {
      for (let looks = 0; looks < 400 && !each.closed; looks++) await new Promise((resolve) => setTimeout(resolve, 5));
      expect(each.closed).toBe(true);
    }
    expect(carrier.carrier.bans()).toEqual({ now: 1, total: 1 });
    expect(carrier.carrier.refusals()[0]).toMatchObject({
      source: '127.0.0.66',
      status: 0,
      reason: 'Too many of its requests were refused: the source is not listened to for 60 s',
    });
  });

  test('is heard again as soon as it is in the range of a trunk', async () => {
    const carrier = await open(3);
    const stranger = await peerOf(carrier, '127.0.0.66');
    await scan(stranger, 3);
    carrier.trunks = [trunkTo('sip:127.0.0.1:9', { inboundCidrs: ['127.0.0.66/32'] })];
    carrier.carrier.trunksChanged();
    expect(carrier.carrier.bans()).toEqual({ now: 0, total: 1 });
    stranger.send(stranger.request('OPTIONS', { id: 'again' }));
    await stranger.until(/^SIP\/2.0 200/);
  });

  test('is never banned where a trunk is, nor where a call is up', async () => {
    const carrier = await open(2);
    const trunk = await peerOf(carrier, '127.0.0.1');
    for (let i = 0; i < 5; i++) {
      trunk.send(trunk.request('INVITE', { id: `none${i}`, number: '+15550999', body: sdp() }));
      await trunk.until(/^SIP\/2.0 404/);
    }
    expect(carrier.carrier.bans().total).toBe(0);
    carrier.onIncoming = ({ call }) => call.leg.answer();
    const caller = await peerOf(carrier, '127.0.0.77');
    carrier.trunks = [trunkTo('sip:127.0.0.1:9', { inboundCidrs: ['127.0.0.77/32'] })];
    carrier.carrier.trunksChanged();
    caller.send(caller.request('INVITE', { id: 'up', body: sdp() }));
    await caller.until(/^SIP\/2.0 200/);
    carrier.trunks = [trunkTo('sip:127.0.0.1:9', { inboundCidrs: ['127.0.0.1/32'] })];
    carrier.carrier.trunksChanged();
    await scan(caller, 3);
    expect(carrier.carrier.bans().total).toBe(0);
  });

  test('is not banned at all with SIP_BAN_AFTER=0', async () => {
    const carrier = await open(0);
    await scan(await peerOf(carrier, '127.0.0.66'), 4);
    expect(carrier.carrier.bans().total).toBe(0);
  });
});

test('A ban comes with the refusal that is one too many within a minute, and lasts a minute at most for datagrams', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 20_000 }), { maxLength: 40 }), fc.boolean(), (gaps, isDatagram) => {
      const bans = new BanList({ after: 5, sec: 600 });
      let now = 0;
      let window = { began: Number.NEGATIVE_INFINITY, count: 0 };
      for (const gap of gaps) {
        now += gap;
        if (now >= window.began + 60_000) window = { began: now, count: 0 };
        window.count++;
        const sec = bans.refused('192.0.2.1', isDatagram, now, () => true);
        expect(sec).toBe(window.count < 5 ? undefined : isDatagram ? SIP_BAN_UDP_MAX_SEC : 600);
        if (sec === undefined) continue;
        expect([bans.isBanned('192.0.2.1', now + sec * 1000 - 1), bans.isBanned('192.0.2.2', now)]).toEqual([true, false]);
        window = { began: Number.NEGATIVE_INFINITY, count: 0 };
      }
    }),
  );
});
