/**
 * Which trunk a call takes, and how the trunk's settings show on the wire. The carriers are written by hand, over real
 * sockets.
 */

import { afterEach, describe, expect, test } from 'bun:test';
import { Pace } from '../../src/bounds/pace.ts';
import type { DialOptions } from '../../src/call/ports/leg.ts';
import { FailedTrunks, inOrder } from '../../src/carrier/trunk/route.ts';
import type { Trunk } from '../../src/carrier/trunk/trunk.ts';
import { type Clock, systemClock } from '../../src/clock.ts';
import type { TrunkSettings } from '../../src/database/trunk/trunk-settings.ts';
import { mayReach } from '../../src/destinations.ts';
import { hexHash } from '../../src/hash.ts';
import { SIP_TRUNK_SILENT_MS } from '../../src/limits.ts';
import { lookUpForeign } from '../../src/outbound/lookup.ts';
import { type HeldNames, heldNames } from '../support/name-server-peer.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { Signals, TestCarrier, trunkTo } from './harness.ts';
import { field, RawPeer, sdp } from './raw-peer.ts';

const carriers: TestCarrier[] = [];
const peers: RawPeer[] = [];
let names: HeldNames | undefined;
afterEach(async () => {
  names?.close();
  names = undefined;
  for (const peer of peers.splice(0)) peer.close();
  for (const carrier of carriers.splice(0)) await carrier.close();
});

/** A platform with one trunk for each of these settings, and the carriers at their far ends. */
const trunks = (...settings: TrunkSettings[]) => trunksOn(systemClock(), ...settings);
async function trunksOn(clock: Clock, ...settings: TrunkSettings[]) {
  const carrier = await TestCarrier.open([], { clock });
  carriers.push(carrier);
  const far: RawPeer[] = [];
  for (const [i, each] of settings.entries()) {
    const peer = await RawPeer.udp(carrier.port('udp'), `127.0.0.${i + 1}`);
    peers.push(peer);
    far.push(peer);
    const { host, port } = peer;
    carrier.trunks.push(trunkTo(`sip:${host}:${port}`, { name: `t${i}`, inboundCidrs: [`${host}/32`], settings: each }));
  }
  carrier.carrier.trunksChanged();
  const [first] = far;
  if (first === undefined) throw new Error('no trunk');
  return { carrier, far, first };
}
const dial = (carrier: TestCarrier, more: Partial<DialOptions> = {}) =>
  carrier.dial({ to: '+972501112222', from: '+97237654321', ...more });
const endOf = async (signals: Signals) => {
  const signal = await signals.until('leg.ended');
  return signal.type === 'leg.ended' ? signal.end : undefined;
};

test('A far end that sends another codec of its answer is followed, and one that sends none of them is not.', async () => {
  const { carrier, first } = await trunks({});
  const { signals, leg } = await dial(carrier);
  first.respond(await first.until(/^INVITE /), '200 OK', { body: sdp('m=audio 4000 RTP/AVP 0 8 101') });
  await signals.until('leg.answered');
  for (const payloadType of [8, 18, 0]) carrier.media.notify({ type: 'payload.changed', payloadType });
  expect(carrier.media.negotiated.map(({ codec, payloadType }) => [codec, payloadType])).toEqual([
    ['PCMU', 0],
    ['PCMA', 8],
    ['PCMU', 0],
  ]);
  expect(signals.types()).toEqual(['leg.answered']);
  leg.hangup();
  first.respond(await first.until(/^BYE /), '200 OK');
});

describe('a 302', () => {
  test('is followed once, to its user over the same trunk, where the trunk says so', async () => {
    const { carrier, first } = await trunks({ follow_redirects: true });
    const { signals, leg } = await dial(carrier);
    first.respond(await first.until(/^INVITE /), '302 Moved Temporarily', {
      fields: 'Contact: <sip:+972509998888@evil.example>\r\n',
    });
    const again = await first.until(/^INVITE sip:\+972509998888@/);
    expect(again).toStartWith(`INVITE sip:+972509998888@${first.host}:${first.port} SIP/2.0`);
    first.respond(again, '302 Moved Temporarily', { fields: 'Contact: <sip:+972500000000@x.example>\r\n' });
    expect(await endOf(signals)).toMatchObject({ cause: 'not_answered' });
    leg.hangup();
  });

  test('is not followed to a number that the application may not reach, in the trunk’s form', async () => {
    const { carrier, first } = await trunks({ follow_redirects: true, country_code: '972' });
    const order = { mayReach: mayReach({ allowed: ['+97250'], blocked: [] }) };
    const redirected = async (contact: string) => {
      const { signals, leg } = await dial(carrier, order);
      first.respond(await first.until(/^INVITE sip:\+972501112222@/), '302 Moved Temporarily', {
        fields: `Contact: <sip:${contact}@x.example>\r\n`,
      });
      return { signals, leg };
    };
    expect(await endOf((await redirected('+19005550100')).signals)).toMatchObject({ cause: 'not_answered' });
    expect(await endOf((await redirected('0521112222')).signals)).toMatchObject({ cause: 'not_answered' });
    const { leg } = await redirected('0509998888');
    await first.until(/^INVITE sip:0509998888@/);
    leg.hangup();
  });

  test('is followed to a user of any letters, escaped as it came', async () => {
    const { carrier, first } = await trunks({ follow_redirects: true });
    const { leg } = await dial(carrier);
    first.respond(await first.until(/^INVITE /), '302 Moved Temporarily', { fields: 'Contact: <sip:%F0%9F%93%9E@x>\r\n' });
    await first.until(/^INVITE sip:%F0%9F%93%9E@/);
    leg.hangup();
  });

  test('is followed to the Contact with the highest q of several', async () => {
    const { carrier, first } = await trunks({ follow_redirects: true });
    const { leg } = await dial(carrier);
    const contacts = '<sip:+972500000001@x>;q=0.1, "Desk, 2nd floor" <sip:+972500000002@x>;q=0.9, <sip:+972500000003@x>;q=nine';
    first.respond(await first.until(/^INVITE /), '302 Moved Temporarily', { fields: `Contact: ${contacts}\r\n` });
    await first.until(/^INVITE sip:\+972500000002@/);
    leg.hangup();
  });

  test('waits for a turn of the trunk, and ends the call where that would take more than 2 s', async () => {
    const clock = new VirtualClock();
    const { carrier, first } = await trunksOn(clock, { follow_redirects: true, max_cps: 1 });
    const calls = [await dial(carrier), await dial(carrier), await dial(carrier)];
    const redirect = (invite: string) =>
      first.respond(invite, '302 Moved Temporarily', { fields: 'Contact: <sip:+972509998888@x.example>\r\n' });
    // The turns of the next two seconds are those of the other two calls.
    redirect(await first.until(/^INVITE sip:\+972501112222@/));
    expect(await endOf(calls[0]?.signals ?? new Signals())).toMatchObject({ cause: 'not_answered' });
    await first.until(/^ACK /);
    await clock.advance(1_000);
    redirect(await first.until(/^INVITE sip:\+972501112222@/));
    await first.until(/^ACK /);
    await clock.advance(1_000);
    await first.until(/^INVITE sip:\+972501112222@/);
    expect(first.heard.filter((message) => message.startsWith('INVITE sip:+972509998888@'))).toEqual([]);
    await clock.advance(1_000);
    await first.until(/^INVITE sip:\+972509998888@/);
    for (const { leg } of calls) leg.hangup();
  });

  test('leaves nothing of the attempt before: its early audio is not taken for that of the next', async () => {
    names = await heldNames();
    const { carrier, first } = await trunks({ follow_redirects: true });
    const { signals, leg } = await dial(carrier);
    const invite = await first.until(/^INVITE /);
    // The name takes a while to be looked up, and the 302 is there before.
    first.respond(invite, '183 Session Progress', { body: sdp().replace('c=IN IP4 127.0.0.1', 'c=IN IP4 media.test') });
    first.respond(invite, '302 Moved Temporarily', { fields: 'Contact: <sip:+972509998888@x.example>\r\n' });
    const again = await first.until(/^INVITE sip:\+972509998888@/);
    names.tell();
    // Its answer comes after that of the first name.
    await lookUpForeign('another.test', '', 4);
    first.respond(again, '180 Ringing');
    await signals.until('leg.ringing');
    expect(signals.types()).toEqual(['leg.ringing']);
    expect(carrier.media.negotiated).toEqual([]);
    leg.hangup();
  });

  test('ends the call where the trunk does not say so', async () => {
    const { carrier, first } = await trunks({});
    const { signals } = await dial(carrier);
    first.respond(await first.until(/^INVITE /), '302 Moved Temporarily', {
      fields: 'Contact: <sip:+972509998888@x.example>\r\n',
    });
    expect(await endOf(signals)).toMatchObject({ cause: 'not_answered' });
  });
});

describe('a call whose trunk fails', () => {
  test('goes over the next one after 503, 408 or a refused connection, and the failed one comes last for a while', async () => {
    const { carrier, far } = await trunks({ priority: 0 }, { priority: 1 }, { priority: 2 });
    carrier.trunks.push(trunkTo('sip:127.0.0.1:1;transport=tcp', { name: 'shut', settings: { priority: 0, weight: 65_535 } }));
    const { leg, signals } = await dial(carrier);
    const [one, two, three] = far;
    if (one === undefined || two === undefined || three === undefined) throw new Error('no carriers');
    one.respond(await one.until(/^INVITE /), '503 Service Unavailable');
    two.respond(await two.until(/^INVITE /), '408 Request Timeout');
    three.respond(await three.until(/^INVITE /), '200 OK', { body: sdp() });
    await signals.until('leg.answered');
    leg.hangup();
    expect(carrier.carrier.trunkStatus('t0')).toMatchObject({ channelsInUse: 0, calls24h: 1, failures24h: 1 });
    const second = await dial(carrier);
    three.respond(await three.until(/^INVITE /), '200 OK', { body: sdp() });
    await second.signals.until('leg.answered');
    second.leg.hangup();
    expect(one.heard.filter((message) => message.startsWith('INVITE'))).toEqual([]);
  });

  test('says nothing of the trunk at another address: the next call goes over it as soon as it is set up anew', async () => {
    const { carrier, far } = await trunks({ priority: 0 }, { priority: 1 });
    const [one, two] = far;
    const [first, second] = carrier.trunks;
    if (one === undefined || two === undefined || first === undefined || second === undefined) throw new Error('no trunks');
    const [failing, late] = [await dial(carrier, { to: '+972501110001' }), await dial(carrier, { to: '+972501110002' })];
    one.respond(await one.until(/^INVITE sip:\+972501110001/), '503 Service Unavailable');
    two.respond(await two.until(/^INVITE /), '200 OK', { body: sdp() });
    await failing.signals.until('leg.answered');
    const three = await RawPeer.udp(carrier.port('udp'), '127.0.0.3');
    peers.push(three);
    carrier.trunks.splice(0, 1, trunkTo(`sip:${three.host}:${three.port}`, { name: 't0', settings: { priority: 0 } }));
    carrier.carrier.trunksChanged();
    // The old address fails once more, late.
    one.respond(await one.until(/^INVITE sip:\+972501110002/), '503 Service Unavailable');
    two.respond(await two.until(/^INVITE /), '200 OK', { body: sdp() });
    await late.signals.until('leg.answered');
    const { leg } = await dial(carrier);
    const invite = await Promise.race([two.until(/^INVITE /), three.until(/^INVITE /)]);
    expect(invite).toContain(`sip:+972501112222@${three.host}:${three.port} SIP`);
    for (const each of [failing.leg, late.leg, leg]) each.hangup();
  });

  test('goes over no trunk that was deleted meanwhile, and over the next one as it is set up by then', async () => {
    const { carrier, far } = await trunks({ priority: 0 }, { priority: 1 }, { priority: 2 });
    const [one, two, three] = far;
    if (one === undefined || two === undefined || three === undefined) throw new Error('no carriers');
    const { leg, signals } = await dial(carrier);
    const invite = await one.until(/^INVITE /);
    const [first, , last] = carrier.trunks;
    if (first === undefined || last === undefined) throw new Error('no trunks');
    const moved = trunkTo(last.uri, { ...last, settings: { ...last.settings, from_user: 'office' } });
    carrier.trunks.splice(0, Infinity, first, moved);
    carrier.carrier.trunksChanged();
    one.respond(invite, '503 Service Unavailable');
    const next = await Promise.race([two.until(/^INVITE /), three.until(/^INVITE /)]);
    expect(field(next, 'From')).toContain('<sip:office@');
    three.respond(next, '200 OK', { body: sdp() });
    await signals.until('leg.answered');
    expect(two.heard.filter((message) => message.startsWith('INVITE'))).toEqual([]);
    leg.hangup();
  });

  test('goes over the next one after 4 s without any response; a late 200 of the first gets ACK and BYE', async () => {
    const { carrier, far } = await trunks({ priority: 0 }, { priority: 1 });
    const [one, two] = far;
    if (one === undefined || two === undefined) throw new Error('no carriers');
    const { leg, signals } = await dial(carrier);
    const invite = await one.until(/^INVITE /);
    two.respond(await two.until(/^INVITE /), '200 OK', { body: sdp() });
    await signals.until('leg.answered');
    one.respond(invite, '200 OK', { body: sdp(), tag: 'late' });
    await one.until(/^ACK /);
    one.respond(await one.until(/^BYE /), '200 OK');
    expect(signals.types()).toEqual(['leg.answered']);
    leg.hangup();
  }, 20_000);

  test('is one failure of the trunk where it is silent for 4 s and then refuses, and none where it then answers', async () => {
    const clock = new VirtualClock();
    const { carrier, first } = await trunksOn(clock, {});
    const [refused, answered] = [await dial(carrier, { to: '+972501110001' }), await dial(carrier, { to: '+972501110002' })];
    const invites = [await first.until(/^INVITE sip:\+972501110001/), await first.until(/^INVITE sip:\+972501110002/)] as const;
    await clock.advance(SIP_TRUNK_SILENT_MS);
    first.respond(invites[0], '503 Service Unavailable');
    first.respond(invites[1], '200 OK', { body: sdp() });
    await Promise.all([endOf(refused.signals), answered.signals.until('leg.answered')]);
    expect(carrier.carrier.trunkStatus('t0')).toMatchObject({ calls24h: 2, failures24h: 1 });
    answered.leg.hangup();
  }, 20_000);

  test('is one failure of the trunk where it has said nothing when the ring window ends, and none after a 100 or too soon', async () => {
    const clock = new VirtualClock();
    const { carrier, first } = await trunksOn(clock, {});
    const failures = () => carrier.carrier.trunkStatus('t0')?.failures24h;
    const [silent, trying] = [await dial(carrier, { to: '+972501110001' }), await dial(carrier, { to: '+972501110002' })];
    const invite = await first.until(/^INVITE sip:\+972501110002/);
    await clock.advance(SIP_TRUNK_SILENT_MS);
    first.respond(invite, '100 Trying');
    // When it rings, the 100 before that was heard.
    first.respond(invite, '180 Ringing');
    await trying.signals.until('leg.ringing');
    const { leg: early } = await dial(carrier, { to: '+972501110003' });
    await first.until(/^INVITE sip:\+972501110003/);
    for (const leg of [trying.leg, early]) leg.hangup();
    expect(failures()).toBe(0);
    silent.leg.hangup();
    silent.leg.hangup();
    await clock.advance(40_000);
    expect(failures()).toBe(1);
  }, 20_000);

  test('stays with it once it is forwarded (181) or queued (182), so that nobody is rung twice', async () => {
    for (const status of ['181 Call Is Being Forwarded', '182 Queued']) {
      const { carrier, far } = await trunks({ priority: 0 }, { priority: 1 });
      const [one, two] = far;
      const { signals } = await dial(carrier);
      const invite = (await one?.until(/^INVITE /)) ?? '';
      one?.respond(invite, status);
      one?.respond(invite, '408 Request Timeout');
      expect(await endOf(signals)).toMatchObject({ cause: 'timeout' });
      expect(signals.types()).toEqual(['leg.ended']);
      expect(two?.heard).toEqual([]);
    }
  });

  test('stays with it once it has rung, and where the dial named it; the end tells the cause of the last trunk tried', async () => {
    const { carrier, far } = await trunks({ priority: 0 }, { priority: 1 });
    const [one, two] = far;
    if (one === undefined || two === undefined) throw new Error('no carriers');
    const rung = await dial(carrier);
    const invite = await one.until(/^INVITE /);
    one.respond(invite, '180 Ringing');
    one.respond(invite, '503 Service Unavailable');
    expect(await endOf(rung.signals)).toMatchObject({ cause: 'carrier_congested' });
    const named = await dial(carrier, { trunk: 't1' });
    two.respond(await two.until(/^INVITE /), '503 Service Unavailable');
    expect(await endOf(named.signals)).toMatchObject({ cause: 'carrier_congested' });
    const both = await dial(carrier);
    one.respond(await one.until(/^INVITE /), '503 Service Unavailable');
    two.respond(await two.until(/^INVITE /), '486 Busy Here');
    expect(await endOf(both.signals)).toMatchObject({ cause: 'busy', by: 'callee' });
  });
});

describe('trunks are tried', () => {
  const named = (name: string, settings: TrunkSettings) => trunkTo('sip:x', { name, settings });

  test('by priority, then by weight, doubtful ones last', () => {
    const all = [
      named('heavy', { priority: 1, weight: 3 }),
      named('light', { priority: 1 }),
      named('first', {}),
      named('down', {}),
    ];
    const firsts = Array.from({ length: 4_000 }, () => inOrder(all, ({ name }) => name === 'down', Math.random));
    expect(new Set(firsts.map((order) => `${order[0]?.name} ${order.at(-1)?.name}`))).toEqual(new Set(['first down']));
    const heavy = firsts.filter((order) => order[1]?.name === 'heavy').length / firsts.length;
    expect(heavy).toBeGreaterThan(0.7);
    expect(heavy).toBeLessThan(0.8);
  });

  test('last where they are not registered although they should be', async () => {
    const { carrier, far } = await trunks({ priority: 0 }, { priority: 1 });
    const [refusing, other] = far;
    if (refusing === undefined || other === undefined) throw new Error('no carriers');
    carrier.trunks = carrier.trunks.map((trunk) =>
      trunk.name === 't0' ? { ...trunk, username: 'u', password: 'p', register: true } : trunk,
    );
    carrier.carrier.trunksChanged();
    refusing.respond(await refusing.until(/^REGISTER /), '403 Forbidden');
    const { signals } = await dial(carrier);
    other.respond(await other.until(/^INVITE /), '486 Busy Here');
    expect(await endOf(signals)).toMatchObject({ cause: 'busy' });
    expect(refusing.heard.filter((message) => message.startsWith('INVITE'))).toEqual([]);
  });

  test('after a failure last for 30 s', () => {
    const failed = new FailedTrunks();
    const [down, up] = ['down', 'up'].map((name) => trunkTo('sip:192.0.2.1', { name }));
    if (down === undefined || up === undefined) throw new Error('no trunks');
    failed.failed(down, 1_000);
    expect([failed.isFailed(down, 30_999), failed.isFailed(down, 31_000), failed.isFailed(up, 1_000)]).toEqual([
      true,
      false,
      false,
    ]);
  });

  test('at their pace: evenly spaced, and none that would wait more than 2 s', () => {
    const pace = new Pace(2_000);
    const waits = Array.from({ length: 25 }, () => pace.take('t', 'app', 10, 1_000));
    expect(waits.slice(0, 21).map((wait) => Math.round(wait ?? -1))).toEqual(Array.from({ length: 21 }, (_, i) => i * 100));
    expect(waits.slice(21)).toEqual([undefined, undefined, undefined, undefined]);
    expect(pace.take('t', 'app', 10, 1_000 + 2_200)).toBe(0);
  });

  test('at their pace: one of several applications has its share of the turns ahead, and one alone has all', () => {
    const pace = new Pace(2_000);
    const taken = (who: string, now: number) => {
      const waits = Array.from({ length: 30 }, () => pace.take('t', who, 10, now));
      return waits.filter((wait) => wait !== undefined).length;
    };
    expect([taken('greedy', 0), taken('quiet', 0)]).toEqual([21, 0]);
    // Each of two has eleven at most of the 21 turns that lie ahead.
    expect([taken('greedy', 1_000), taken('quiet', 1_000)]).toEqual([1, 9]);
    expect([taken('greedy', 1_500), taken('quiet', 1_500)]).toEqual([5, 0]);
    // It dials no more, and the other has all turns again.
    expect(taken('greedy', 16_600)).toBe(21);
  });

  test('at their pace, after the turns that were given away elsewhere, and anew where the trunk was forgotten', () => {
    const pace = new Pace(2_000);
    expect(pace.ahead('t', 0)).toBeUndefined();
    pace.follow('t', 1_500);
    pace.follow('t', 700);
    expect([pace.ahead('t', 1_000), pace.ahead('t', 1_800)]).toEqual([500, -300]);
    expect([pace.take('t', 'app', 10, 1_000), pace.take('t', 'app', 10, 1_000)]).toEqual([600, 700]);
    pace.keep(new Set(['t']));
    expect(pace.ahead('t', 1_000)).toBe(700);
    pace.keep(new Set(['other']));
    expect([pace.ahead('t', 1_000), pace.take('t', 'app', 10, 1_000)]).toEqual([undefined, 0]);
  });

  test('by a quiet application although another dials without a pause and fills their max_cps', async () => {
    const clock = new VirtualClock();
    const { carrier } = await trunksOn(clock, { max_cps: 2 });
    const order = { to: '+15550100', from: '+15550002', listener: () => {} };
    const dials = async (appUuid: string) => 'leg' in (await carrier.carrier.dial({ ...order, appUuid }));
    for (let taken = 0; await dials('greedy'); taken++) expect(taken).toBeLessThan(5);
    expect(await dials('quiet')).toBe(false);
    await clock.advance(1_500);
    for (let taken = 0; await dials('greedy'); taken++) expect(taken).toBeLessThan(2);
    expect(await dials('quiet')).toBe(true);
  });

  test('by the applications that they are for', async () => {
    const { carrier } = await trunks({ apps: ['app_1'] });
    const order = { to: '+15550100', from: '+15550002', listener: () => {} };
    expect(await carrier.carrier.dial({ ...order, appUuid: 'app_2' })).toEqual({ unavailable: 'no_trunk' });
    expect(await carrier.carrier.dial({ ...order, appUuid: 'app_2', trunk: 't0' })).toEqual({ unavailable: 'unknown_trunk' });
    const mine = await carrier.carrier.dial({ ...order, appUuid: 'app_1', trunk: 't0' });
    expect(mine).toHaveProperty('leg');
    if ('leg' in mine) mine.leg.hangup();
  });

  test('by the nodes that they are for, and by one process whatever they say', async () => {
    const { carrier } = await trunks({ nodes: ['edge'] });
    const order = { appUuid: 'app', to: '+15550100', from: '+15550002', listener: () => {} };
    for (const trunk of [undefined, 't0']) {
      const alone = await carrier.carrier.dial({ ...order, ...(trunk === undefined ? {} : { trunk }) });
      expect(alone).toHaveProperty('leg');
      if ('leg' in alone) alone.leg.hangup();
    }
    for (const [labels, isHere] of [
      [['edge'], true],
      [[], false],
    ] as const) {
      const node = await TestCarrier.open(carrier.trunks, { labels });
      carriers.push(node);
      const dialled = await node.carrier.dial(order);
      if ('leg' in dialled) dialled.leg.hangup();
      expect([labels, 'leg' in dialled]).toEqual([labels, isHere]);
    }
  });

  test('with INVITEs paced by max_cps', async () => {
    const { carrier, first } = await trunks({ max_cps: 2 });
    const calls = await Promise.all(Array.from({ length: 4 }, () => dial(carrier)));
    const began = performance.now();
    for (const _call of calls) first.respond(await first.until(/^INVITE /), '486 Busy Here');
    expect(performance.now() - began).toBeGreaterThan(1_300);
    const refused = await Promise.all(
      Array.from({ length: 8 }, () =>
        carrier.carrier.dial({ appUuid: 'app', to: '+15550100', from: '+15550002', listener: () => {} }),
      ),
    );
    expect(refused.at(-1)).toEqual({ unavailable: 'no_capacity' });
    // A dial that gets no turn is no call of the trunk.
    const placed = calls.length + refused.filter((each) => 'leg' in each).length;
    expect(carrier.carrier.trunkStatus('t0')).toMatchObject({ calls24h: placed });
    for (const each of refused) if ('leg' in each) each.leg.hangup();
  });
});

describe('on the wire a call that we place', () => {
  const inviteOf = async (settings: TrunkSettings, more: Parameters<typeof trunkTo>[1] = {}) => {
    const { carrier, first } = await trunks(settings);
    const [trunk] = carrier.trunks;
    if (trunk !== undefined) carrier.trunks = [{ ...trunk, ...more }];
    const { leg } = await dial(carrier, { displayName: 'Dana' });
    const invite = await first.until(/^INVITE /);
    return { carrier, first, leg, invite };
  };

  test('has its numbers in the form of the trunk, with a prefix for the called one only', async () => {
    const { invite } = await inviteOf({ country_code: '972', outbound_format: 'national', outbound_prefix: '9' });
    expect(invite).toStartWith('INVITE sip:90501112222@');
    expect(field(invite, 'To')).toStartWith('<sip:90501112222@');
    expect(field(invite, 'From')).toStartWith('"Dana" <sip:037654321@');
  });

  test('has the From user and domain of the trunk, and the caller in an asserted identity', async () => {
    const settings = { from_user: 'main', from_domain: 'tenant.example', country_code: '972', outbound_format: 'e164' } as const;
    const { invite } = await inviteOf({ ...settings, identity: 'pai' });
    expect(field(invite, 'From')).toStartWith('"Dana" <sip:main@tenant.example>;tag=');
    expect(field(invite, 'P-Asserted-Identity')).toBe('"Dana" <sip:97237654321@tenant.example>');
    const other = await inviteOf({ ...settings, identity: 'rpid' });
    expect(field(other.invite, 'Remote-Party-ID')).toBe(
      '"Dana" <sip:97237654321@tenant.example>;party=calling;screen=yes;privacy=off',
    );
  });

  test('says in each URI of a number that it is one, where the trunk wants that, and prefers an identity', async () => {
    const settings = { user_phone: true, from_domain: 'tenant.example', identity: 'ppi' } as const;
    const { invite } = await inviteOf(settings);
    expect(invite).toMatch(/^INVITE sip:\+972501112222@[0-9.:]+;user=phone SIP/);
    expect(field(invite, 'To')).toMatch(/^<sip:\+972501112222@[0-9.:]+;user=phone>$/);
    expect(field(invite, 'From')).toStartWith('"Dana" <sip:+97237654321@tenant.example;user=phone>;tag=');
    expect(invite).toContain('\r\nP-Preferred-Identity: ');
    expect(field(invite, 'P-Preferred-Identity')).toBe('"Dana" <sip:+97237654321@tenant.example;user=phone>');
    const other = await inviteOf({ ...settings, from_user: 'main' });
    expect(field(other.invite, 'From')).toStartWith('"Dana" <sip:main@tenant.example>;tag=');
    expect((await inviteOf({})).invite).not.toContain('user=phone');
  });

  test('answers a challenge under the trunk’s own digest name', async () => {
    const { first, invite } = await inviteOf({ auth_username: 'digest-name' }, { username: 'account', password: 'secret' });
    first.respond(invite, '401 Unauthorized', {
      fields: 'WWW-Authenticate: Digest realm="r", nonce="n", algorithm=MD5, qop="auth"\r\n',
    });
    expect(field(await first.until(/^INVITE [\s\S]*Authorization/), 'Authorization')).toStartWith(
      'Digest username="digest-name"',
    );
  });

  test('goes to the outbound proxy, which it names in a Route, with the domain of the trunk in its URI', async () => {
    const { carrier, first } = await trunks({});
    const settings = { outbound_proxy: `sip:${first.host}:${first.port}` };
    carrier.trunks = [trunkTo('sip:carrier.example', { settings })];
    await dial(carrier);
    const invite = await first.until(/^INVITE /);
    expect(invite).toStartWith('INVITE sip:+972501112222@carrier.example SIP/2.0');
    expect(field(invite, 'Route')).toBe(`<sip:${first.host}:${first.port};lr>`);
  });

  test('has the trunk’s own address and user in Contact, Via and SDP', async () => {
    const { invite } = await inviteOf({ advertise: '198.51.100.7', contact_user: 'line1' });
    expect(field(invite, 'Contact')).toStartWith('<sip:line1@198.51.100.7:');
    expect(field(invite, 'Via')).toContain(' 198.51.100.7:');
    expect(invite).toContain('c=IN IP4 198.51.100.7');
  });

  test('has a host of its own in Contact and Via, and an address in SDP, where the trunk names both', async () => {
    const { carrier, invite } = await inviteOf({ contact_host: 'sbc.example', advertise: '198.51.100.7' });
    expect(field(invite, 'Contact')).toStartWith('<sip:sidetone@sbc.example:');
    expect(field(invite, 'Via')).toContain(' sbc.example:');
    expect(invite).toContain('c=IN IP4 198.51.100.7');
    carrier.carrier.probeTrunk('t0');
    const options = await peers[0]?.until(/^OPTIONS /);
    expect(field(options ?? '', 'From')).toStartWith('<sip:sidetone@sbc.example>');
    expect(field(options ?? '', 'Contact')).toStartWith('<sip:sidetone@sbc.example:');
  });

  test('has the users of From and Contact as the trunk writes them, with their escapes', async () => {
    const { invite } = await inviteOf({ from_user: 'main%40tenant', from_domain: 'a.example', contact_user: 'line%201' });
    expect(field(invite, 'From')).toContain('<sip:main%40tenant@a.example>');
    expect(field(invite, 'Contact')).toStartWith('<sip:line%201@');
  });

  test('proposes no session timer where the trunk has none, and takes none up', async () => {
    const { first, invite, leg } = await inviteOf({ session_timer: 'off' });
    expect([field(invite, 'Session-Expires'), field(invite, 'Min-SE'), field(invite, 'Supported')]).toEqual(['', '', '100rel']);
    const on = await inviteOf({});
    expect([field(on.invite, 'Session-Expires'), field(on.invite, 'Supported')]).toEqual(['1800', '100rel, timer']);
    first.respond(invite, '200 OK', { body: sdp() });
    await first.until(/^ACK /);
    leg.hangup();
    expect(field(await first.until(/^BYE /), 'Session-Expires')).toBe('');
  });
});

describe('a BYE of ours that is challenged', () => {
  /** The password that a request of `username` was authorized with, of these. */
  const passwordOf = (request: string, username: string, ...passwords: readonly string[]) => {
    const answer = field(request, 'Authorization');
    const part = (name: string) => new RegExp(`[ ,]${name}="?([^",]*)`).exec(answer)?.[1] ?? '';
    const h = (text: string) => hexHash('MD5', text);
    const [method = '', uri = ''] = request.split(' ');
    expect(part('username')).toBe(username);
    const rest = `${part('nonce')}:${part('nc')}:${part('cnonce')}:auth:${h(`${method}:${uri}`)}`;
    return passwords.find((password) => h(`${h(`${username}:r:${password}`)}:${rest}`) === part('response'));
  };
  const CHALLENGE = { fields: 'WWW-Authenticate: Digest realm="r", nonce="n", algorithm=MD5, qop="auth"\r\n' };
  const ACCOUNT = { username: 'account', password: 'old' };

  /** A call that is up, whose trunk is edited then; what its BYE is authorized with. */
  async function afterEdit(way: 'in' | 'out', edit: Partial<Trunk> | undefined) {
    const { carrier, first } = await trunks({});
    const [trunk] = carrier.trunks;
    if (trunk === undefined) throw new Error('no trunk');
    carrier.trunks = [{ ...trunk, ...ACCOUNT }];
    carrier.carrier.trunksChanged();
    let hangup = () => {};
    if (way === 'out') {
      const { signals, leg } = await dial(carrier);
      first.respond(await first.until(/^INVITE /), '200 OK', { body: sdp() });
      await signals.until('leg.answered');
      hangup = () => leg.hangup();
    } else {
      carrier.onIncoming = ({ call }) => call.leg.answer();
      first.send(first.request('INVITE', { body: sdp() }));
      first.send(first.request('ACK', { to: field(await first.until(/^SIP\/2.0 200/), 'To') }));
      const [incoming] = carrier.incoming;
      await incoming?.signals.until('leg.answered');
      hangup = () => incoming?.call.leg.hangup();
    }
    carrier.trunks = edit === undefined ? [] : [{ ...trunk, ...ACCOUNT, ...edit }];
    carrier.carrier.trunksChanged();
    hangup();
    first.respond(await first.until(/^BYE /), '401 Unauthorized', CHALLENGE);
    const bye = await first.until(/^BYE [\s\S]*Authorization/);
    first.respond(bye, '200 OK');
    return passwordOf(bye, 'account', 'old', 'new');
  }

  test('is authorized with the password that its trunk has by now, whichever side called', async () => {
    for (const way of ['in', 'out'] as const) expect([way, await afterEdit(way, { password: 'new' })]).toEqual([way, 'new']);
  });

  test('is authorized as the call began where its trunk is another account or carrier by now, or gone', async () => {
    for (const edit of [{ username: 'other', password: 'new' }, { uri: 'sip:192.0.2.1', password: 'new' }, undefined])
      expect(await afterEdit('out', edit)).toBe('old');
  });
});

describe('a call that comes in over a trunk', () => {
  const incoming = async (settings: TrunkSettings, number: string, from: string, fields = '') => {
    const { carrier, first } = await trunks(settings);
    carrier.numberOwner = async (e164) => (e164 === '+97237654321' ? 'app' : undefined);
    carrier.onIncoming = ({ call: { leg } }) => leg.reject('busy');
    first.send(first.request('INVITE', { number, from, fields, body: sdp() }));
    const answer = await first.until(/^SIP\/2.0 [2-6]/);
    const call = carrier.incoming[0]?.call;
    return [answer.slice(8, 11), call?.did, call?.callerId];
  };
  const FROM = '<sip:0501234567@x>;tag=1';

  test('has its numbers read by the country of the trunk', async () => {
    expect(await incoming({ country_code: '972' }, '037654321', FROM)).toEqual(['486', '+97237654321', '+972501234567']);
    expect(await incoming({}, '037654321', FROM)).toEqual(['404', undefined, undefined]);
    expect(await incoming({ inbound_format: 'e164' }, '97237654321', FROM)).toEqual(['486', '+97237654321', '']);
    const abroad = ['<tel:0201234567;phone-context=+44>;tag=1', '<sip:0201234567;phone-context=+44@x>;tag=1'];
    for (const from of abroad) expect((await incoming({ country_code: '972' }, '037654321', from))[2]).toBe('');
  });

  test('has the caller of an asserted identity where the trunk is trusted with it', async () => {
    const asserted = 'P-Asserted-Identity: "X" <sip:+972509876543@x>, <tel:+972509876543>\r\n';
    const settings = { country_code: '972' };
    expect(await incoming({ ...settings, trust_identity: true }, '037654321', FROM, asserted)).toEqual([
      '486',
      '+97237654321',
      '+972509876543',
    ]);
    expect((await incoming(settings, '037654321', FROM, asserted))[2]).toBe('+972501234567');
    // The SIP URI beside a tel URI may name a person (RFC 3325 §9.1); where nothing is a number, From is left.
    for (const [uris, caller] of [
      ['<sip:dana@x>, <tel:+972509876543>', '+972509876543'],
      ['<sip:dana@x>', '+972501234567'],
    ]) {
      const named = `P-Asserted-Identity: ${uris}\r\n`;
      expect((await incoming({ ...settings, trust_identity: true }, '037654321', FROM, named))[2]).toBe(caller ?? '');
    }
    const remote = 'Remote-Party-ID: <sip:0509876543@x>;party=calling;privacy=off\r\n';
    const other = 'Remote-Party-ID: <sip:0500000000@x>\r\n';
    expect((await incoming({ ...settings, trust_identity: true }, '037654321', FROM, other + asserted))[2]).toBe('+972509876543');
    expect((await incoming({ ...settings, trust_identity: true }, '037654321', FROM, remote))[2]).toBe('+972509876543');
  });

  test('that asks for privacy has no caller ID, trusted or not', async () => {
    const asserted = 'P-Asserted-Identity: <sip:+972509876543@x>\r\n';
    const callers = async (privacy: string) => {
      const found = [];
      for (const trust_identity of [true, false]) {
        const settings = { country_code: '972', trust_identity };
        found.push((await incoming(settings, '037654321', FROM, `${asserted}Privacy: ${privacy}\r\n`))[2]);
      }
      return found;
    };
    for (const privacy of ['header; id', 'user;critical']) expect(await callers(privacy)).toEqual(['', '']);
    for (const privacy of ['none', 'session']) expect(await callers(privacy)).toEqual(['+972509876543', '+972501234567']);
    const remote = 'Remote-Party-ID: <sip:0509876543@x>;privacy=full\r\n';
    for (const trust_identity of [true, false])
      expect((await incoming({ country_code: '972', trust_identity }, '037654321', FROM, remote))[2]).toBe('');
    expect((await incoming({ country_code: '972' }, '037654321', '"Anonymous" <sip:anonymous@anonymous.invalid>;tag=1'))[2]).toBe(
      '',
    );
  });
});
