/** Turns of INVITEs that another node gives away, and what may happen before its answer. */
import { afterEach, describe, expect, test } from 'bun:test';
import { SIP_TRUNK_SILENT_MS } from '../../src/limits.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';
import { Signals, TestCarrier, trunkTo } from './harness.ts';
import { RawPeer, sdp } from './raw-peer.ts';

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

/** The questions for a turn of the second trunk, each answered when the test wants it. */
class Turns {
  readonly #asked = [Promise.withResolvers<(waitMs: number | undefined) => void>()];

  turn(): Promise<number | undefined> {
    const { promise, resolve } = Promise.withResolvers<number | undefined>();
    this.#asked.at(-1)?.resolve(resolve);
    this.#asked.push(Promise.withResolvers());
    return promise;
  }

  get count(): number {
    return this.#asked.length - 1;
  }

  /** Resolves with the answer to a question, the first of which is 0, once it was asked. */
  async question(at: number): Promise<(waitMs: number | undefined) => void> {
    return (await this.#asked[at]?.promise) ?? (() => {});
  }
}

/** A call that is placed over the first of two trunks. Turns of the second come from another node. */
async function placed() {
  const clock = new VirtualClock();
  const turns = new Turns();
  const carrier = await TestCarrier.open([], { clock, sharedTurns: turns });
  const [one, two] = [await RawPeer.udp(carrier.port('udp'), '127.0.0.1'), await RawPeer.udp(carrier.port('udp'), '127.0.0.2')];
  open.push(one, two, carrier.carrier);
  const far = (peer: RawPeer) => ({ inboundCidrs: [`${peer.host}/32`] });
  carrier.trunks.push(
    trunkTo(`sip:${one.host}:${one.port}`, {
      name: 'first',
      username: 'u',
      password: 'p',
      settings: { priority: 0 },
      ...far(one),
    }),
    trunkTo(`sip:${two.host}:${two.port}`, { name: 'second', settings: { priority: 1, max_cps: 5 }, ...far(two) }),
  );
  carrier.carrier.trunksChanged();
  const signals = new Signals();
  const dialled = await carrier.carrier.dial({ appUuid: 'app', to: '+15550100', from: '+15550002', listener: signals.listener });
  if ('unavailable' in dialled) throw new Error(dialled.unavailable);
  dialled.leg.start();
  const invite = await one.until(/^INVITE /);
  const inUse = () => carrier.carrier.trunkStatus('second').channelsInUse;
  return { clock, turns, carrier, one, two, signals, leg: dialled.leg, invite, inUse };
}

const invitesAt = (peer: RawPeer) => peer.heard.filter((message) => message.startsWith('INVITE ')).length;

/** Resolves when all that the peer has sent is taken: what comes over UDP is taken in its order. */
async function taken(peer: RawPeer): Promise<void> {
  peer.send(peer.request('OPTIONS', { id: 'ping' }));
  await peer.until(/^SIP\/2.0 .*\r\nCall-ID: ping/s);
}

/** Lets the trunk ask for credentials, and gives the INVITE with them. */
async function challenged(one: RawPeer, invite: string): Promise<string> {
  one.respond(invite, '407 Proxy Authentication Required', { fields: 'Proxy-Authenticate: Digest realm="r", nonce="n"\r\n' });
  return await one.until(/^INVITE [\s\S]*^Proxy-Authorization: /m);
}

describe('a call whose trunk asks for credentials', () => {
  test('stays with it where it is slow, as long as no answer takes 4 s', async () => {
    const { clock, turns, one, signals, leg, invite } = await placed();
    await clock.advance(SIP_TRUNK_SILENT_MS - 1_000);
    const again = await challenged(one, invite);
    await clock.advance(SIP_TRUNK_SILENT_MS - 1_000);
    one.respond(again, '180 Ringing');
    await signals.until('leg.ringing');
    await clock.advance(SIP_TRUNK_SILENT_MS);
    expect(turns.count).toBe(0);
    leg.hangup();
  });

  test('goes over the next one where it then says nothing for 4 s', async () => {
    const { clock, turns, one, two, signals, leg, invite } = await placed();
    await clock.advance(SIP_TRUNK_SILENT_MS - 1_000);
    await challenged(one, invite);
    await clock.advance(SIP_TRUNK_SILENT_MS);
    (await turns.question(0))(0);
    two.respond(await two.until(/^INVITE /), '200 OK', { body: sdp() });
    await signals.until('leg.answered');
    expect(turns.count).toBe(1);
    leg.hangup();
  });
});

describe('a call that waits for a turn of the next trunk', () => {
  test('is hung up, and the next trunk carries nothing', async () => {
    const { turns, one, two, signals, leg, invite, inUse } = await placed();
    one.respond(invite, '503 Service Unavailable');
    const give = await turns.question(0);
    leg.hangup();
    expect(await signals.until('leg.ended')).toMatchObject({ end: { cause: 'cancelled' } });
    give(0);
    await settle();
    expect([invitesAt(two), inUse()]).toEqual([0, 0]);
  });

  test('is a failure of its silent trunk where it is hung up meanwhile', async () => {
    const { clock, turns, carrier, two, signals, leg, inUse } = await placed();
    await clock.advance(SIP_TRUNK_SILENT_MS);
    const give = await turns.question(0);
    leg.hangup();
    await signals.until('leg.ended');
    give(0);
    await settle();
    expect([invitesAt(two), inUse()]).toEqual([0, 0]);
    expect(carrier.carrier.trunkStatus('first')).toMatchObject({ calls24h: 1, failures24h: 1 });
  });

  test('stays with a silent trunk that answers meanwhile, and goes over the next one when that fails after all', async () => {
    const { clock, turns, carrier, one, two, signals, leg, invite, inUse } = await placed();
    await clock.advance(SIP_TRUNK_SILENT_MS);
    const give = await turns.question(0);
    one.respond(invite, '100 Trying');
    await taken(one);
    give(0);
    await settle();
    const calls = () => carrier.carrier.trunkStatus('second').calls24h;
    expect([invitesAt(two), inUse(), calls()]).toEqual([0, 0, 0]);
    one.respond(invite, '503 Service Unavailable');
    (await turns.question(1))(0);
    two.respond(await two.until(/^INVITE /), '200 OK', { body: sdp() });
    await signals.until('leg.answered');
    expect([inUse(), calls()]).toEqual([1, 1]);
    leg.hangup();
  });

  test('goes over it once where the silent trunk refuses meanwhile', async () => {
    const { clock, turns, one, two, signals, leg, invite, inUse } = await placed();
    await clock.advance(SIP_TRUNK_SILENT_MS);
    const give = await turns.question(0);
    one.respond(invite, '503 Service Unavailable');
    await one.until(/^ACK /);
    give(0);
    two.respond(await two.until(/^INVITE /), '200 OK', { body: sdp() });
    await signals.until('leg.answered');
    expect([turns.count, inUse(), signals.types()]).toEqual([1, 1, ['leg.answered']]);
    leg.hangup();
    await signals.until('leg.ended');
    expect(inUse()).toBe(0);
  });
});
