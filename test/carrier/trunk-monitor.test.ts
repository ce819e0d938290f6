/** The registration and the probes of a trunk, on a clock of the test's own, over real sockets. */
import { afterEach, describe, expect, test } from 'bun:test';
import type { CarrierOptions } from '../../src/carrier/carrier.ts';
import type { Trunk } from '../../src/carrier/trunk/trunk.ts';
import { beatLoadOf } from '../../src/cluster/membership/beat-load.ts';
import type { TrunkSettings } from '../../src/database/trunk/trunk-settings.ts';
import { SIP_PROBE_INTERVAL_SEC, SIP_UNREGISTER_MAX_MS } from '../../src/limits.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { TestCarrier, trunkTo } from './harness.ts';
import { field, RawPeer } from './raw-peer.ts';

let carrier: TestCarrier | undefined;
let peer: RawPeer | undefined;
afterEach(async () => {
  await carrier?.close();
  peer?.close();
});

/** Resolves when `ready` holds, which packets on their way make true. */
async function until(ready: () => boolean, what: string): Promise<void> {
  for (let looks = 0; !ready(); looks++) {
    if (looks > 1_000) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A carrier with a trunk that registers, and its registrar. */
async function registering(): Promise<{ readonly running: TestCarrier; readonly far: RawPeer }> {
  const running = await TestCarrier.open([]);
  carrier = running;
  const far = await RawPeer.udp(running.port('udp'));
  peer = far;
  running.trunks.push(trunkTo(`sip:${far.host}:${far.port}`, { username: 'u', password: 'p', register: true }));
  running.carrier.trunksChanged();
  return { running, far };
}

test('A registrar that answers again after a silence is registered with at once, long before the registration runs out', async () => {
  const clock = new VirtualClock();
  carrier = await TestCarrier.open([], { clock });
  const far = await RawPeer.udp(carrier.port('udp'));
  peer = far;
  const settings = { username: 'u', password: 'p', register: true };
  carrier.trunks.push(trunkTo(`sip:${far.host}:${far.port}`, settings));
  carrier.carrier.trunksChanged();
  const { carrier: running } = carrier;
  const status = () => running.trunkStatus('carrier');

  const first = await far.until(/^REGISTER /);
  far.respond(first, '200 OK', { fields: 'Expires: 300\r\n' });
  await until(() => status().registered, 'registered');
  expect(running.load().trunksDown).toBe(0);
  // One that answers all the time is not asked to register anew.
  running.probeTrunk('carrier');
  far.respond(await far.until(/^OPTIONS /), '200 OK');
  await until(() => status().lastProbe?.ok === true, 'a probe with an answer');
  await clock.advance(30_000);
  await far.until(/^OPTIONS /);
  await clock.advance(33_000);
  await until(() => status().lastProbe?.ok === false, 'a probe without an answer');
  expect(status().registered).toBe(true);
  expect(status().lastProbe).toMatchObject({ ok: false, rttMs: 0, sipStatus: 0 });
  expect(running.load().trunksDown).toBe(1);

  // The probe of a minute after the start is under way by now.
  await until(() => far.heard.some((message) => message.startsWith('OPTIONS ')), 'another probe');
  const probe = far.heard.findLast((message) => message.startsWith('OPTIONS '));
  far.respond(probe ?? '', '405 Method Not Allowed');
  const again = await far.until(/^REGISTER /);
  expect(field(again, 'CSeq')).toBe('2 REGISTER');
  expect(status().lastProbe).toMatchObject({ ok: true, sipStatus: 405 });
  expect(running.load().trunksDown).toBe(0);
  far.respond(again, '200 OK', { fields: 'Expires: 300\r\n' });
});

test('A trunk that answers none of the calls that go over it all the time is down, and is there once it answers one', async () => {
  const clock = new VirtualClock();
  const running = await TestCarrier.open([], { clock });
  carrier = running;
  const far = await RawPeer.udp(running.port('udp'));
  peer = far;
  running.trunks.push(trunkTo(`sip:${far.host}:${far.port}`));
  running.carrier.trunksChanged();
  for (let calls = 0; calls < 8; calls++) {
    const { leg } = await running.dial();
    await far.until(/^INVITE /);
    await clock.advance(10_000);
    leg.hangup();
    await clock.advance(5_000);
  }
  expect(running.carrier.load().trunksDown).toBe(1);
  expect(running.carrier.trunkStatus('carrier').lastProbe).toMatchObject({ ok: false });
  const { leg, signals } = await running.dial();
  far.respond(await far.until(/^INVITE /), '180 Ringing');
  await signals.until('leg.ringing');
  // The probes that went out until 30 s after the last failure are over by then.
  await clock.advance(90_000);
  expect(running.carrier.load().trunksDown).toBe(0);
  leg.hangup();
});

test('A stop takes the binding of a trunk back, also at a registrar that asks for credentials first', async () => {
  const running = await TestCarrier.open([]);
  carrier = running;
  const far = await RawPeer.udp(running.port('udp'));
  peer = far;
  const challenge = { fields: 'WWW-Authenticate: Digest realm="r", nonce="n", qop="auth"\r\n' };
  running.trunks.push(trunkTo(`sip:${far.host}:${far.port}`, { username: 'u', password: 'p', register: true }));
  running.carrier.trunksChanged();
  far.respond(await far.until(/^REGISTER /), '401 Unauthorized', challenge);
  far.respond(await far.until(/^REGISTER [\s\S]*^Authorization: /m), '200 OK', { fields: 'Expires: 300\r\n' });
  await until(() => running.carrier.trunkStatus('carrier').registered, 'registered');
  const closed = running.close();
  expect(running.carrier.ready()).toBe(false);
  far.respond(await far.until(/^REGISTER [\s\S]*^Expires: 0/m), '401 Unauthorized', challenge);
  const last = await far.until(/^REGISTER [\s\S]*^Authorization: /m);
  expect(field(last, 'Expires')).toBe('0');
  far.respond(last, '200 OK');
  await closed;
});

test('A stop does not wait long for a registrar that is silent', async () => {
  const { running, far } = await registering();
  far.respond(await far.until(/^REGISTER /), '200 OK', { fields: 'Expires: 300\r\n' });
  await until(() => running.carrier.trunkStatus('carrier').registered, 'registered');
  const began = performance.now();
  await running.close();
  expect(performance.now() - began).toBeLessThan(SIP_UNREGISTER_MAX_MS + 2_000);
  await far.until(/^REGISTER [\s\S]*^Expires: 0/m);
});

test('A trunk that is edited keeps its binding: the registrar is never asked to remove what is registered again', async () => {
  const running = await TestCarrier.open([]);
  carrier = running;
  const far = await RawPeer.udp(running.port('udp'));
  peer = far;
  const challenge = { fields: 'WWW-Authenticate: Digest realm="r", nonce="n", qop="auth"\r\n' };
  const set = (more: object) => {
    const settings = { username: 'u', password: 'p', register: true, ...more };
    running.trunks.splice(0, Infinity, trunkTo(`sip:${far.host}:${far.port}`, settings));
    running.carrier.trunksChanged();
  };
  const register = async () => {
    const asked = await far.until(/^REGISTER /);
    far.respond(asked, '401 Unauthorized', challenge);
    const answered = await far.until(/^REGISTER [\s\S]*^Authorization: /m);
    far.respond(answered, '200 OK', { fields: 'Expires: 300\r\n' });
    await until(() => running.carrier.trunkStatus('carrier').registered, 'registered');
    return { expires: field(asked, 'Expires'), contact: field(answered, 'Contact') };
  };
  set({});
  const first = await register();
  expect(first.expires).toBe('300');
  set({ password: 'another' });
  expect(await register()).toEqual(first);
  set({ password: 'another', maxChannels: 7 });
  expect(await register()).toEqual(first);
  // One that has another name for the registrar takes back what it had.
  running.trunks.splice(0, Infinity);
  running.carrier.trunksChanged();
  expect(field(await far.until(/^REGISTER /), 'Expires')).toBe('0');
});

/** Trunks on a virtual clock that make one binding at a registrar, each under its name. */
async function bindingAlike() {
  const clock = new VirtualClock();
  const running = await TestCarrier.open([], { clock });
  carrier = running;
  const far = await RawPeer.udp(running.port('udp'));
  peer = far;
  const set = (...names: readonly string[]) => {
    const settings = { username: 'u', password: 'p', register: true };
    const trunks = names.map((name) => trunkTo(`sip:${far.host}:${far.port}`, { ...settings, name }));
    running.trunks.splice(0, Infinity, ...trunks);
    running.carrier.trunksChanged();
  };
  const registered = async (name: string) => {
    far.respond(await far.until(/^REGISTER /), '200 OK', { fields: 'Expires: 300\r\n' });
    await until(() => running.carrier.trunkStatus(name).registered, 'registered');
  };
  /** The removals that the registrar hears until the trunk has sent what it sends by then. */
  const removals = async (name: string) => {
    await clock.advance(2_000);
    running.carrier.probeTrunk(name);
    await far.until(/^OPTIONS /);
    return far.heard.filter((message) => /^Expires: 0\r/m.test(message)).length;
  };
  return { far, set, registered, removals };
}

test('A trunk that is deleted and set up again keeps its new binding: the removal is not sent again after it', async () => {
  const { far, set, registered, removals } = await bindingAlike();
  set('carrier');
  await registered('carrier');
  set();
  // The packet is lost on its way.
  await far.until(/^REGISTER [\s\S]*^Expires: 0/m);
  set('carrier');
  await registered('carrier');
  expect(await removals('carrier')).toBe(0);
});

test('A trunk that is set up under another name keeps its binding as the one of before is deleted', async () => {
  const { set, registered, removals } = await bindingAlike();
  set('before');
  await registered('before');
  set('before', 'after');
  await registered('after');
  set('after');
  expect(await removals('after')).toBe(0);
});

test('A trunk that was refused and is set again as it was is registered at once, and no other one is', async () => {
  const { running, far } = await registering();
  const first = await far.until(/^REGISTER /);
  // Nothing is sent twice to a registrar that has not answered yet.
  running.carrier.trunksChanged('carrier');
  far.respond(first, '403 Forbidden');
  await until(() => running.carrier.trunkStatus('carrier').registerStatus === 403, 'the refusal');
  running.carrier.trunksChanged('another');
  running.carrier.trunksChanged('carrier');
  const second = await far.until(/^REGISTER /);
  expect([first, second].map((request) => field(request, 'CSeq'))).toEqual(['1 REGISTER', '2 REGISTER']);
  far.respond(second, '200 OK', { fields: 'Expires: 300\r\n' });
  await until(() => running.carrier.trunkStatus('carrier').registered, 'registered');
  running.carrier.trunksChanged('carrier');
  await running.close();
  expect(field(await far.until(/^REGISTER /), 'CSeq')).toBe('3 REGISTER');
});

describe('A call over a trunk that is registered', () => {
  const others: { close(): unknown }[] = [];
  afterEach(async () => {
    for (const other of others.splice(0)) await other.close();
  });
  const SERVED = { username: 'u', password: 'p', register: true };
  const routesOf = (invite: string) => [...invite.matchAll(/^Route: (.*)\r$/gm)].map(([, value]) => value);

  /** A trunk, another peer of the carrier that the registrar names, and a dial whose INVITE is looked for at a peer. */
  async function open(more: Partial<CarrierOptions> = {}) {
    const running = await TestCarrier.open([], more);
    carrier = running;
    const far = await RawPeer.udp(running.port('udp'));
    peer = far;
    const edge = await RawPeer.udp(running.port('udp'), '127.0.0.2');
    others.push(edge);
    const set = (settings: TrunkSettings = {}) => {
      running.trunks.splice(0, Infinity, trunkTo(`sip:${far.host}:${far.port}`, { ...SERVED, settings }));
      running.carrier.trunksChanged();
    };
    const register = async (serviceRoute: string) => {
      far.respond(await far.until(/^REGISTER [\s\S]*^Expires: 300/m), '200 OK', {
        fields: `Expires: 300\r\nService-Route: ${serviceRoute}\r\n`,
      });
      await until(() => running.carrier.trunkStatus('carrier').registered, 'registered');
    };
    const dialTo = async (at: RawPeer) => {
      const { signals } = await running.dial({ to: '+972501112222', from: '+97237654321' });
      const invite = await at.until(/^INVITE /);
      at.respond(invite, '486 Busy Here');
      await at.until(/^ACK /);
      await signals.until('leg.ended');
      return invite;
    };
    return { far, edge, set, register, dialTo };
  }

  test('goes the way that the registrar has named (Service-Route), unless an outbound proxy is set', async () => {
    const { far, edge, set, register, dialTo } = await open();
    const route = [`<sip:${edge.host}:${edge.port};lr>`, '<sip:orig@core.invalid;lr>'];
    set();
    await register(route.join(', '));
    expect(routesOf(await dialTo(edge))).toEqual(route);
    set({ outbound_proxy: `sip:${far.host}:${far.port}` });
    await register(route.join(', '));
    expect(routesOf(await dialTo(far))).toEqual([`<sip:${far.host}:${far.port};lr>`]);
  });

  test('goes to the trunk itself, with the Route, where the way begins within the carrier', async () => {
    const { far, set, register, dialTo } = await open();
    set();
    await register('<sip:orig@core.invalid;lr>');
    expect(routesOf(await dialTo(far))).toEqual(['<sip:orig@core.invalid;lr>']);
  });

  test('by another node of the cluster goes the same way', async () => {
    let route = '';
    const { edge, set, dialTo } = await open({
      registers: () => false,
      registeredElsewhere: () => ({ until: Date.now() + 60_000, serviceRoute: [route] }),
    });
    route = `<sip:${edge.host}:${edge.port};lr>`;
    set();
    expect(routesOf(await dialTo(edge))).toEqual([route]);
    const told = JSON.stringify({ registered: { carrier: 1 }, serviceRoutes: { carrier: [route], other: 'x' } });
    expect(beatLoadOf({ load: told })).toMatchObject({
      registered: { carrier: 1 },
      serviceRoutes: { carrier: [route], other: [] },
    });
    expect(beatLoadOf({ load: '{}' }).serviceRoutes).toEqual({});
  });
});

test('Trunks that are all changed at once are looked at so often each, however many there are', async () => {
  const COUNT = 100;
  const running = await TestCarrier.open([]);
  carrier = running;
  const far = await RawPeer.udp(running.port('udp'));
  peer = far;
  let reads = 0;
  const counted = (maxChannels: number): Trunk[] =>
    Array.from({ length: COUNT }, (_, at) => {
      const more = { name: `t${at}`, password: 'p', register: true, maxChannels };
      const get = () => {
        reads++;
        return `u${at}`;
      };
      return Object.defineProperty(trunkTo(`sip:${far.host}:${far.port}`, more), 'username', { get, enumerable: true });
    });
  running.trunks = counted(1);
  running.carrier.trunksChanged();
  reads = 0;
  running.trunks = counted(2);
  running.carrier.trunksChanged();
  expect(reads).toBeLessThan(40 * COUNT);
});

test('Trunks that are set up together, as by a start, are probed one after the other', async () => {
  const COUNT = 12;
  const clock = new VirtualClock();
  carrier = await TestCarrier.open([], { clock });
  const far = await RawPeer.udp(carrier.port('udp'));
  peer = far;
  carrier.trunks = Array.from({ length: COUNT }, (_, at) => trunkTo(`sip:${far.host}:${far.port}`, { name: `t${at}` }));
  carrier.carrier.trunksChanged();
  const probed = () =>
    new Set(far.heard.filter((each) => each.startsWith('OPTIONS ')).map((each) => field(each, 'Call-ID'))).size;
  for (const part of [1, 2, 3]) {
    await clock.advance(Math.ceil((SIP_PROBE_INTERVAL_SEC * 1000) / 3));
    await until(() => probed() >= (part * COUNT) / 3, `${part} thirds of the probes`);
    expect(probed()).toBeLessThanOrEqual((part * COUNT) / 3 + 1);
  }
});
