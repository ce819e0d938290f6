/** SIPp as the carrier: a peer that is not ours, over real sockets. */
import { afterEach, describe, expect, test } from 'bun:test';
import { SIP_LEG_EVENT_KEYS } from '../../src/limits.ts';
import { freePort, type SippOptions, sipp, sippInstalled } from '../support/sipp.ts';
import { type Incoming, TestCarrier, trunkTo } from './harness.ts';

if (!sippInstalled) console.log('skipped: sipp (Debian package sip-tester) is not installed');

const open: TestCarrier[] = [];
const carrierWith = async (...from: Parameters<typeof TestCarrier.open>) => {
  const carrier = await TestCarrier.open(...from);
  open.push(carrier);
  return carrier;
};
afterEach(async () => {
  for (const carrier of open.splice(0)) {
    await carrier.close();
    expect(carrier.media.open.size).toBe(0);
  }
});

const run = async (options: SippOptions) =>
  sipp({ timeoutSec: 20, rate: 50, ...options, scenario: `../../carrier/sipp/${options.scenario}` });
const call = async (carrier: TestCarrier, scenario: string, more: Partial<SippOptions> = {}) => {
  const transport = more.transport ?? 'udp';
  const peer = await run({ scenario, to: `127.0.0.1:${carrier.port(transport)}`, ...more });
  return { done: async () => expect([await peer.done, peer.errors()]).toEqual([true, expect.anything()]) };
};
const endOf = async ({ signals }: Pick<Incoming, 'signals'>) => {
  const signal = await signals.until('leg.ended');
  return signal.type === 'leg.ended' ? signal.end : undefined;
};
const first = async (carrier: TestCarrier): Promise<Incoming> => {
  const known = carrier.incoming[0];
  if (known !== undefined) return known;
  return new Promise((resolve) => {
    const before = carrier.onIncoming;
    carrier.onIncoming = (incoming) => {
      before(incoming);
      resolve(incoming);
    };
  });
};

describe.skipIf(!sippInstalled)('SIPp calls in', () => {
  for (const transport of ['udp', 'tcp'] as const) {
    test(`is answered and hangs up, over ${transport}`, async () => {
      const carrier = await carrierWith();
      carrier.onIncoming = ({ call: { leg } }) => {
        leg.ring();
        leg.answer();
      };
      const peer = await call(carrier, 'caller-hangs-up', { transport, pauseMs: 50, calls: 5, rate: 50 });
      await peer.done();
      for (const incoming of carrier.incoming) {
        expect(await endOf(incoming)).toMatchObject({ cause: 'completed', by: 'caller' });
        expect(incoming.signals.types()).toEqual(['leg.ringing', 'leg.answered', 'leg.ended']);
        expect(incoming.call).toMatchObject({ callerId: '+15550199', did: '+15550002', appUuid: 'app', trunk: 'carrier' });
      }
      expect(carrier.incoming).toHaveLength(5);
    }, 30_000);
  }

  test('is hung up by us', async () => {
    const carrier = await carrierWith();
    carrier.onIncoming = ({ call: { leg } }) => leg.answer();
    const peer = await call(carrier, 'caller-is-hung-up');
    const incoming = await first(carrier);
    await incoming.signals.until('leg.answered');
    incoming.call.leg.hangup();
    incoming.call.leg.hangup();
    await peer.done();
    expect(await endOf(incoming)).toMatchObject({ cause: 'completed', by: 'callee' });
  }, 30_000);

  test('is listened to for tones, although telephone-event was agreed, until its first keys come as events', async () => {
    const carrier = await carrierWith();
    carrier.onIncoming = ({ call: { leg } }) => leg.answer();
    const peer = await call(carrier, 'caller-is-hung-up');
    const incoming = await first(carrier);
    await incoming.signals.until('leg.answered');
    expect(carrier.media.negotiated.at(-1)?.telephoneEventPayloadType).toBeNumber();
    const press = (method: 'rfc4733' | 'inband') => carrier.media.notify({ type: 'digit', digit: '5', durationMs: 100, method });
    for (let i = 0; i < 5; i++) press('inband');
    for (let i = 1; i < SIP_LEG_EVENT_KEYS; i++) press('rfc4733');
    expect(carrier.media.tones).toEqual([true]);
    press('rfc4733');
    expect(carrier.media.tones).toEqual([true, false]);
    incoming.call.leg.secure?.(true);
    incoming.call.leg.secure?.(false);
    expect(carrier.media.tones).toEqual([true, false, true, false]);
    incoming.call.leg.hangup();
    await peer.done();
  }, 30_000);

  test('cancels while it rings', async () => {
    const carrier = await carrierWith();
    carrier.onIncoming = ({ call: { leg } }) => leg.ring();
    await (await call(carrier, 'caller-cancels')).done();
    expect(await endOf(await first(carrier))).toMatchObject({ cause: 'cancelled', by: 'caller' });
  }, 30_000);

  test('is rejected with the status of each reason', async () => {
    const carrier = await carrierWith();
    const reasons = ['number_not_found', 'invalid_number', 'timeout', 'busy', 'rejected'] as const;
    carrier.onIncoming = ({ call: { leg } }) => leg.reject(reasons[carrier.incoming.length - 1] ?? 'busy');
    await (await call(carrier, 'caller-is-refused', { calls: 5 })).done();
    expect(carrier.incoming).toHaveLength(5);
    for (const incoming of carrier.incoming) await endOf(incoming);
  }, 30_000);

  test('holds by re-INVITE in three ways and comes back each time', async () => {
    const carrier = await carrierWith();
    carrier.onIncoming = ({ call: { leg } }) => leg.answer();
    await (await call(carrier, 'caller-holds')).done();
    const { signals } = await first(carrier);
    await signals.until('leg.ended');
    const hold = ['leg.held', 'leg.resumed'];
    expect(signals.types()).toEqual(['leg.answered', ...hold, ...hold, ...hold, 'leg.ended']);
    expect(carrier.media.negotiated.map((each) => each.receive)).toEqual([true, false, true, false, true, false, true]);
  }, 30_000);

  test('holds by UPDATE', async () => {
    const carrier = await carrierWith();
    carrier.onIncoming = ({ call: { leg } }) => leg.answer();
    await (await call(carrier, 'caller-updates')).done();
    const { signals } = await first(carrier);
    await signals.until('leg.ended');
    expect(signals.types()).toEqual(['leg.answered', 'leg.held', 'leg.resumed', 'leg.ended']);
  }, 30_000);

  test('without an offer gets ours, and its answer in the ACK starts the audio', async () => {
    const carrier = await carrierWith();
    carrier.onIncoming = ({ call: { leg } }) => leg.answer();
    await (await call(carrier, 'caller-offers-late')).done();
    await endOf(await first(carrier));
    expect(carrier.media.negotiated).toMatchObject([
      { codec: 'PCMU', telephoneEventPayloadType: 101, remotePort: 6000, learnFrom: expect.arrayContaining(['127.0.0.1']) },
    ]);
  }, 30_000);

  test('whose ACK is lost is sent the 200 again', async () => {
    const carrier = await carrierWith();
    carrier.onIncoming = ({ call: { leg } }) => leg.answer();
    await (await call(carrier, 'caller-loses-ack')).done();
    expect(await endOf(await first(carrier))).toMatchObject({ cause: 'completed' });
  }, 30_000);

  test('that requires 100rel gets reliable provisional responses', async () => {
    const carrier = await carrierWith();
    carrier.onIncoming = ({ call: { leg } }) => {
      leg.ring();
      leg.answer();
    };
    await (await call(carrier, 'caller-requires-100rel')).done();
    expect(await endOf(await first(carrier))).toMatchObject({ cause: 'completed' });
  }, 30_000);

  test('presses a key by INFO', async () => {
    const carrier = await carrierWith();
    carrier.onIncoming = ({ call: { leg } }) => leg.answer();
    await (await call(carrier, 'caller-sends-info')).done();
    const { signals } = await first(carrier);
    await signals.until('leg.ended');
    expect(signals.all).toContainEqual({ type: 'leg.digit', digit: '5', durationMs: 160 });
  }, 30_000);

  test('from a foreign address, for an unassigned number, or over capacity is refused without a word to us', async () => {
    const foreign = await carrierWith([trunkTo('sip:127.0.0.1:9', { inboundCidrs: ['192.0.2.0/24'] })]);
    await (await call(foreign, 'caller-is-refused')).done();
    const carrier = await carrierWith([trunkTo('sip:127.0.0.1:9', { maxChannels: 0 })]);
    await (await call(carrier, 'caller-is-refused', { number: '+15559999' })).done();
    await (await call(carrier, 'caller-is-refused')).done();
    expect([...foreign.incoming, ...carrier.incoming]).toEqual([]);
  }, 30_000);
});

describe.skipIf(!sippInstalled)('a call to SIPp', () => {
  for (const transport of ['udp', 'tcp'] as const) {
    test(`rings, has early media, is answered and hung up, over ${transport}`, async () => {
      const carrier = await carrierWith();
      const port = await freePort();
      carrier.trunks = [trunkTo(`sip:127.0.0.1:${port};transport=${transport}`)];
      const peer = await run({ scenario: 'callee-answers', port, transport });
      const { leg, signals } = await carrier.dial();
      await signals.until('leg.answered');
      leg.hangup();
      expect([await peer.done, peer.errors()]).toEqual([true, expect.anything()]);
      expect(await endOf({ signals })).toMatchObject({ cause: 'completed', by: 'caller' });
      expect(signals.types()).toEqual(['leg.ringing', 'leg.early_media', 'leg.answered', 'leg.ended']);
    }, 30_000);
  }

  test('that hangs up is completed by the callee', async () => {
    const carrier = await carrierWith();
    const port = await freePort();
    carrier.trunks = [trunkTo(`sip:127.0.0.1:${port}`)];
    const peer = await run({ scenario: 'callee-hangs-up', port, pauseMs: 50 });
    const { signals } = await carrier.dial();
    expect(await endOf({ signals })).toMatchObject({ cause: 'completed', by: 'callee' });
    expect([await peer.done, peer.errors()]).toEqual([true, expect.anything()]);
  }, 30_000);

  test('that is refused ends with the cause of the status', async () => {
    const causes = {
      '486': 'busy',
      '404': 'invalid_number',
      '480': 'not_answered',
      '503': 'carrier_congested',
      '603': 'rejected',
    };
    for (const [status, cause] of Object.entries(causes)) {
      const carrier = await carrierWith();
      const port = await freePort();
      carrier.trunks = [trunkTo(`sip:127.0.0.1:${port}`)];
      const peer = await run({ scenario: `callee-refuses-${status}`, port });
      const { signals } = await carrier.dial();
      expect([status, await endOf({ signals })]).toEqual([status, expect.objectContaining({ cause })]);
      expect([await peer.done, peer.errors()]).toEqual([true, expect.anything()]);
    }
  }, 60_000);

  test('cancelled while it rings sends CANCEL and acknowledges the 487', async () => {
    const carrier = await carrierWith();
    const port = await freePort();
    carrier.trunks = [trunkTo(`sip:127.0.0.1:${port}`)];
    const peer = await run({ scenario: 'callee-is-cancelled', port });
    const { leg, signals } = await carrier.dial();
    await signals.until('leg.ringing');
    leg.cancel();
    expect(await endOf({ signals })).toMatchObject({ cause: 'cancelled', by: 'caller' });
    expect([await peer.done, peer.errors()]).toEqual([true, expect.anything()]);
  }, 30_000);

  for (const status of [401, 407]) {
    test(`that is challenged with ${status} is sent again with credentials`, async () => {
      const carrier = await carrierWith();
      const port = await freePort();
      carrier.trunks = [trunkTo(`sip:127.0.0.1:${port}`, { username: 'gateway', password: 'secret' })];
      const peer = await run({ scenario: `callee-challenges-${status}`, port });
      const { leg, signals } = await carrier.dial();
      await signals.until('leg.answered');
      leg.hangup();
      expect([await peer.done, peer.errors()]).toEqual([true, expect.anything()]);
      await endOf({ signals });
    }, 30_000);
  }
});
