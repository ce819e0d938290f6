/**
 * Devices behind a proxy that writes Path (RFC 3327), as Kamailio, OpenSIPS and an edge proxy of RFC 5626 do. The proxy
 * is written by hand: what it is sent is looked at octet by octet.
 */
import { afterEach, describe, expect, test } from 'bun:test';
import { createSocket } from 'node:dgram';
import { createServer, type Socket } from 'node:net';
import { contactPeerOf } from '../../src/carrier/device/device-trunk.ts';
import {
  DEVICE_CHALLENGES_MAX,
  DEVICE_CONTACTS_MAX,
  DEVICE_PING_MS,
  DEVICE_SILENT_MS,
  SIP_FLOW_REPLY_MS,
} from '../../src/limits.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { SeveralUsers } from './device-directory.ts';
import { answerTo, asUser } from './device-peer.ts';
import { type Signals, TestCarrier, trunkTo } from './harness.ts';
import { field, RawPeer, sdp } from './raw-peer.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const EDGE = '127.0.0.7';
const OTHER_EDGE = '127.0.0.8';
/** The Contact of every phone: an address that only the proxy reaches. */
const CONTACT = '<sip:phone@192.168.1.10:5060>';
const TARGET = 'sip:phone@192.168.1.10:5060';

async function open(more: Parameters<typeof TestCarrier.open>[1] = {}, users = new SeveralUsers('alice', 'bob')) {
  const elsewhere = trunkTo('sip:127.0.0.1:9', { inboundCidrs: ['127.0.0.200/32'] });
  const carrier = await TestCarrier.open([elsewhere], { devices: users, ...more });
  closers.push(() => carrier.close());
  const proxy = async (host = EDGE, transport: 'udp' | 'tcp' = 'udp') => {
    const peer = await RawPeer[transport](carrier.port(transport), host);
    closers.push(() => peer.close());
    return peer;
  };
  return { carrier, users, proxy };
}

let registrations = 0;

/** Registers a phone through a proxy. Returns the answer. */
async function register(proxy: RawPeer, username: string, fields: string, contact = CONTACT): Promise<string> {
  const { response } = await asUser(proxy, 'REGISTER', username, { contact, fields, id: `path${++registrations}` });
  expect(response).toMatch(/^SIP\/2.0 200/);
  return response;
}

const routesIn = (message: string) => [...message.matchAll(/^Route: ([^\r]*)/gim)].map(([, value]) => value ?? '').join(', ');

async function endOf(signals: Signals) {
  const signal = await signals.until('leg.ended');
  return signal.type === 'leg.ended' ? signal.end : undefined;
}

describe('a device behind a proxy', () => {
  test('may require Path, and is told what was kept of it, whether it says that it knows of Path or not', async () => {
    const { proxy } = await open();
    const edge = await proxy();
    const path = 'Path: <sip:token@127.0.0.7;lr;ob>,<sip:[2001:db8::1]:5070;lr>\r\nPath: <sip:inner.example;lr>;x=1\r\n';
    for (const more of ['Require: path\r\nSupported: path\r\n', 'Proxy-Require: Path\r\n', '']) {
      const response = await register(edge, 'alice', path + more);
      expect(response).toContain(path);
      expect(field(response, 'Supported')).toBe('path');
    }
    const refused = await asUser(edge, 'REGISTER', 'alice', { contact: CONTACT, fields: 'Require: path, gruu\r\n' });
    expect(refused.response).toMatch(/^SIP\/2.0 420/);
    expect(field(refused.response, 'Unsupported')).toBe('gruu');
  });

  test('is refused where its Path cannot be read, and the operator is told', async () => {
    const { carrier, proxy } = await open();
    const { response } = await asUser(await proxy(), 'REGISTER', 'alice', { contact: CONTACT, fields: 'Path: nonsense\r\n' });
    expect(response).toMatch(/^SIP\/2.0 400/);
    expect(carrier.carrier.refusals()[0]).toMatchObject({ status: 400, remedy: expect.stringContaining('Path') });
  });

  test.each([
    ['of Kamailio', '<sip:127.0.0.7:5060;lr;received=sip:203.0.113.4:40001%3Btransport%3Dudp>'],
    ['of RFC 5626', '<sip:VskztcQ/S8p4WPbOnHbuyh5iJvJIW3ib@edge.example;lr;ob>'],
    ['of OpenSIPS, two values in a field', '<sip:127.0.0.7;transport=udp;lr>,<sip:10.1.1.1;lr;received=sip:203.0.113.4>'],
    ['with a parameter behind it, and an IPv6 reference', '<sip:[2001:db8::7]:5060;lr>;hint=1'],
  ])('is called, and the call given up, by the Route %s', async (_, path) => {
    const { carrier, proxy } = await open();
    const edge = await proxy();
    await register(edge, 'alice', `Path: ${path}\r\n`);
    const { leg, signals } = await carrier.dial({ to: 'sip:alice' });
    const invite = await edge.until(/^INVITE/);
    expect(invite).toStartWith(`INVITE ${TARGET} SIP/2.0\r\n`);
    expect(routesIn(invite).replaceAll(', ', ',')).toBe(path);
    edge.respond(invite, '180 Ringing');
    await signals.until('leg.ringing');
    leg.cancel();
    const cancel = await edge.until(/^CANCEL/);
    expect([cancel.split(' ')[1], routesIn(cancel)]).toEqual([TARGET, routesIn(invite)]);
    edge.respond(cancel, '200 OK');
    edge.respond(invite, '487 Request Terminated');
    expect(routesIn(await edge.until(/^ACK/))).toBe(routesIn(invite));
  });

  test('is spoken to in its call by the Record-Route of the answer, and no more by its Path', async () => {
    const { carrier, proxy } = await open();
    const [edge, core] = [await proxy(), await proxy(EDGE)];
    await register(edge, 'alice', `Path: <sip:token@${edge.place};lr;received=sip:203.0.113.4:5060>\r\n`);
    const { leg, signals } = await carrier.dial({ to: 'sip:alice' });
    const inner = '<sip:in@10.1.1.1;lr;r2=on>';
    const outer = `<sip:out@${core.place};lr;r2=on>`;
    const fields = `Contact: ${CONTACT}\r\nRecord-Route: ${inner},${outer}\r\n`;
    edge.respond(await edge.until(/^INVITE/), '200 OK', { body: sdp(), fields });
    await signals.until('leg.answered');
    // The proxy did not relay its audio: it may come from the address that the proxy saw.
    expect(carrier.media.negotiated.at(-1)?.learnFrom).toEqual([EDGE, '203.0.113.4']);
    for (const method of ['ACK', 'BYE']) {
      if (method === 'BYE') leg.hangup();
      const request = await core.until(new RegExp(`^${method}`));
      expect(request).toStartWith(`${method} ${TARGET} SIP/2.0\r\n`);
      expect(routesIn(request)).toBe(`${outer}, ${inner}`);
      if (method === 'BYE') core.respond(request, '200 OK');
    }
    await carrier.idle();
  });

  test('is pinged by its Path, and is off where the proxy says so', async () => {
    const clock = new VirtualClock();
    const { carrier, proxy } = await open({ clock });
    const edge = await proxy();
    const path = '<sip:token@edge.example;lr;ob>';
    await register(edge, 'alice', `Path: ${path}\r\n`);
    for (const status of ['200 OK', '430 Flow Failed']) {
      await clock.advance(DEVICE_PING_MS);
      const ping = await edge.until(/^OPTIONS/);
      expect([ping.split(' ')[1], routesIn(ping)]).toEqual([TARGET, path]);
      edge.respond(ping, status);
      // What was sent before the REGISTER of another user has been taken when that is answered.
      await register(edge, 'bob', `Path: ${path}\r\n`);
    }
    expect(await endOf((await carrier.dial({ to: 'sip:alice' })).signals)).toMatchObject({ cause: 'not_answered' });
  });

  test('calls through the proxy, and is answered and spoken to by the Record-Route of its INVITE', async () => {
    const { carrier, proxy } = await open();
    const edge = await proxy();
    carrier.onIncoming = ({ call }) => call.leg.answer();
    const routes = [`<sip:out@${edge.place};lr>`, '<sip:in@10.1.1.1;lr>'];
    const fields = `Via: SIP/2.0/UDP 192.168.1.10:5060;branch=z9hG4bKphone;received=203.0.113.4\r\nRecord-Route: ${routes.join()}\r\n`;
    const { response, parts } = await asUser(edge, 'INVITE', 'alice', { contact: CONTACT, fields, body: sdp() });
    expect(response).toMatch(/^SIP\/2.0 200/);
    expect([...response.matchAll(/^Via: /gim)]).toHaveLength(2);
    expect(field(response, 'Record-Route')).toBe(routes.join());
    edge.send(edge.request('ACK', { ...parts, cseq: 2, to: field(response, 'To') }));
    await carrier.incoming[0]?.signals.until('leg.answered');
    expect(carrier.media.negotiated.at(-1)?.learnFrom).toEqual([EDGE, '203.0.113.4']);
    carrier.incoming[0]?.call.leg.hangup();
    const bye = await edge.until(/^BYE/);
    expect([bye.split(' ')[1], routesIn(bye)]).toEqual([TARGET, routes.join(', ')]);
    edge.respond(bye, '200 OK');
    await carrier.idle();
  });
});

test('The session of a device behind a proxy is refreshed through that', async () => {
  const clock = new VirtualClock();
  const { carrier, proxy } = await open({ clock });
  const edge = await proxy();
  carrier.onIncoming = ({ call }) => call.leg.answer();
  const route = `<sip:out@${edge.place};lr>`;
  const fields = `Record-Route: ${route}\r\nSupported: timer\r\nSession-Expires: 90;refresher=uas\r\n`;
  const { response, parts } = await asUser(edge, 'INVITE', 'alice', { contact: CONTACT, fields, body: sdp() });
  edge.send(edge.request('ACK', { ...parts, cseq: 2, to: field(response, 'To') }));
  await carrier.incoming[0]?.signals.until('leg.answered');
  // What comes behind the ACK has been taken when this is answered.
  await register(edge, 'bob', '');
  await clock.advance(45_000);
  const refresh = await edge.until(/^(?:INVITE|UPDATE)/);
  expect([refresh.split(' ')[1], routesIn(refresh), field(refresh, 'Session-Expires')]).toEqual([
    TARGET,
    route,
    '90;refresher=uac',
  ]);
  edge.respond(refresh, '200 OK', { body: sdp(), fields: `Contact: ${CONTACT}\r\nSession-Expires: 90;refresher=uac\r\n` });
  carrier.incoming[0]?.call.leg.hangup();
});

describe('a call to two phones behind a proxy', () => {
  test('ends as busy where one is, and of the other the proxy alone has said something', async () => {
    const clock = new VirtualClock();
    const { carrier, proxy } = await open({ clock });
    const edge = await proxy();
    for (const token of ['one', 'two']) await register(edge, 'alice', `Path: <sip:${token}@${edge.place};lr>\r\n`);
    const { signals } = await carrier.dial({ to: 'sip:alice' });
    const [first, second] = [await edge.until(/^INVITE/), await edge.until(/^INVITE/)];
    edge.respond(second, '100 Trying');
    edge.respond(first, '486 Busy Here');
    await edge.until(/^ACK/);
    await clock.advance(DEVICE_SILENT_MS);
    expect(await endOf(signals)).toMatchObject({ cause: 'busy' });
    edge.respond(await edge.until(/^CANCEL/), '200 OK');
  });

  test.each([430, 477])('is not answered where the connections of both are gone, as the proxy says by %i', async (status) => {
    const { carrier, proxy } = await open();
    const edge = await proxy();
    await register(edge, 'alice', `Path: <sip:token@${edge.place};lr;ob>\r\n`);
    const { signals } = await carrier.dial({ to: 'sip:alice' });
    edge.respond(await edge.until(/^INVITE/), `${status} Flow Failed`);
    expect(await endOf(signals)).toMatchObject({ cause: 'not_answered', by: 'callee' });
  });
});

describe('a Path or Record-Route that lies', () => {
  test('makes nobody be sent anything but the device itself', async () => {
    const { carrier, proxy } = await open();
    const liar = await proxy();
    const victim = createSocket('udp4');
    let hits = 0;
    victim.on('message', () => void hits++);
    await new Promise<void>((resolve) => victim.bind(0, '127.0.0.66', resolve));
    closers.push(() => victim.close());
    for (const place of [`127.0.0.66:${victim.address().port}`, `127.0.0.1:${carrier.port('udp')}`, 'localhost:9']) {
      await register(liar, 'alice', `Path: <sip:${place};lr>\r\n`);
      const { signals } = await carrier.dial({ to: 'sip:alice' });
      const invite = await liar.until(/^INVITE/);
      expect(routesIn(invite)).toBe(`<sip:${place};lr>`);
      liar.respond(invite, '486 Busy Here');
      expect(await endOf(signals)).toMatchObject({ cause: 'busy' });
      await liar.until(/^ACK/);
      const { leg } = await carrier.dial({ to: 'sip:alice' });
      const fields = `Contact: <sip:alice@${place}>\r\nRecord-Route: <sip:${place};lr>\r\n`;
      liar.respond(await liar.until(/^INVITE/), '200 OK', { body: sdp(), fields });
      expect(routesIn(await liar.until(/^ACK/))).toBe(`<sip:${place};lr>`);
      leg.hangup();
      liar.respond(await liar.until(/^BYE/), '200 OK');
      await asUser(liar, 'REGISTER', 'alice', { contact: '*', fields: 'Expires: 0\r\n' });
    }
    expect(hits).toBe(0);
    expect(carrier.incoming).toEqual([]);
  });
});

describe('phones behind one proxy', () => {
  test('that have one private Contact are both bound, and rung each by its own Path', async () => {
    const { carrier, proxy } = await open();
    const edge = await proxy();
    const paths = ['one', 'two'].map((token) => `<sip:${token}@${edge.place};lr>`);
    for (const path of paths) await register(edge, 'alice', `Path: ${path}\r\n`);
    const { leg } = await carrier.dial({ to: 'sip:alice' });
    const invites = [await edge.until(/^INVITE/), await edge.until(/^INVITE/)];
    expect(invites.map(routesIn).toSorted()).toEqual(paths);
    for (const invite of invites) expect(invite).toStartWith(`INVITE ${TARGET} SIP/2.0`);
    leg.hangup();
  });

  test('are not shut out by one that has a wrong password, before any of them is registered and after', async () => {
    const { carrier, users, proxy } = await open({ ban: { after: 5, sec: 600 } });
    const edge = await proxy();
    const address = '<sip:bob@x>';
    edge.send(edge.request('REGISTER', { id: 'first', from: `${address};tag=g`, to: address }));
    const challenge = await edge.until(/^SIP\/2.0 401/);
    const guess = (number: number) => {
      const fields = answerTo(challenge, 'REGISTER', 'sip:+15550002@127.0.0.1', 'bob', `guess ${number}`);
      edge.send(edge.request('REGISTER', { id: `guess${number}`, from: `${address};tag=g`, to: address, fields }));
    };
    for (let number = 0; number < 4; number++) {
      guess(number);
      await edge.until(/^SIP\/2.0 401/);
    }
    // Its answers are apart from those to the guesses.
    const right = await proxy();
    await register(right, 'alice', `Path: <sip:${edge.place};lr>\r\n`);
    for (let number = 10; number < 40; number++) guess(number);
    await register(right, 'alice', `Path: <sip:${edge.place};lr>\r\n`);
    expect(users.bound.get('alice')).toHaveLength(1);
    expect(carrier.carrier.bans().total).toBe(0);
  });

  test('can register however many wrong passwords come through a proxy that the operator has named', async () => {
    const { carrier, proxy } = await open({ ban: { after: 5, sec: 600 }, deviceProxies: [`${EDGE}/32`] });
    const edge = await proxy();
    const names = { from: '<sip:scanner@x>;tag=g', to: '<sip:scanner@x>' };
    edge.send(edge.request('REGISTER', { id: 'first', ...names }));
    const challenge = await edge.until(/^SIP\/2.0 401/);
    for (let number = 0; number < 40; number++) {
      const fields = answerTo(challenge, 'REGISTER', 'sip:+15550002@127.0.0.1', 'scanner', `guess ${number}`);
      edge.send(edge.request('REGISTER', { id: `scan${number}`, ...names, fields }));
    }
    const right = await proxy();
    await register(right, 'alice', `Path: <sip:${edge.place};lr>\r\n`);
    expect(carrier.carrier.bans().total).toBe(0);
    expect(carrier.carrier.refusals()[0]).toMatchObject({ reason: expect.stringContaining('Too many wrong passwords') });
    // What asks whether the platform is there, as a dispatcher does, is answered.
    edge.send(edge.request('OPTIONS', { id: 'there' }));
    await edge.until(/^SIP\/2.0 200[\s\S]*OPTIONS/);
  });

  test('are told apart in the list of refusals, where each has a wrong password', async () => {
    const { carrier, proxy } = await open();
    const edge = await proxy();
    for (const [username, password] of [
      ['alice', 'guess'],
      ['bob', 'guess'],
      ['alice', 'guess again'],
    ] as const)
      await asUser(edge, 'REGISTER', username, { contact: CONTACT, password });
    await asUser(edge, 'REGISTER', 'nobody', { contact: CONTACT });
    await asUser(edge, 'REGISTER', 'nobody else', { contact: CONTACT, from: '<sip:else@x>;tag=e', to: '<sip:else@x>' });
    expect(carrier.carrier.refusals().map(({ to, count }) => [to, count])).toEqual([
      ['sip:else@x', 2],
      ['sip:alice@x', 2],
      ['sip:bob@x', 1],
    ]);
  });

  test('are asked again where the proxy answers a challenge from its other address, which is no guess', async () => {
    const { carrier, proxy } = await open();
    const [one, two] = [await proxy(), await proxy(OTHER_EDGE)];
    const names = { id: 'two', from: '<sip:alice@x>;tag=t', to: '<sip:alice@x>', contact: CONTACT };
    one.send(one.request('REGISTER', names));
    const first = answerTo(await one.until(/^SIP\/2.0 401/), 'REGISTER', 'sip:+15550002@127.0.0.1', 'alice');
    two.send(two.request('REGISTER', { ...names, cseq: 2, fields: first }));
    const again = await two.until(/^SIP\/2.0 401/);
    expect(again).toContain('stale=true');
    const second = answerTo(again, 'REGISTER', 'sip:+15550002@127.0.0.1', 'alice');
    two.send(two.request('REGISTER', { ...names, cseq: 3, fields: second }));
    await two.until(/^SIP\/2.0 200/);
    expect(carrier.carrier.refusals()).toEqual([]);
  });

  test('keep their calls where they are when one of them registers through another proxy', async () => {
    const { carrier, proxy } = await open();
    const [one, two] = [await proxy(), await proxy(OTHER_EDGE)];
    const named = `${CONTACT};+sip.instance="<urn:uuid:1>"`;
    await register(one, 'alice', `Path: <sip:${one.place};lr>\r\n`, named);
    await register(one, 'bob', `Path: <sip:${one.place};lr>\r\n`);
    const { leg, signals } = await carrier.dial({ to: 'sip:bob' });
    const invite = await one.until(/^INVITE/);
    one.respond(invite, '180 Ringing');
    await signals.until('leg.ringing');
    await register(two, 'alice', `Path: <sip:${two.place};lr>\r\n`, named);
    // It is without a proxy before it now.
    await register(two, 'alice', '', named);
    leg.cancel();
    one.respond(await one.until(/^CANCEL/), '200 OK');
    one.respond(invite, '487 Request Terminated');
    await carrier.idle();
  });
});

test('A proxy over TLS is connected to by the name in its Path, where that names TLS', () => {
  const bound = (path: string) => ({
    ...{ uri: TARGET, callId: 'c', cseq: 1, expiresAt: 0, transport: 'tls' as const, host: EDGE, port: 40_000, path },
    ...{ userAgent: '', instance: '', regId: 0 },
  });
  expect(contactPeerOf(bound('<sip:t@edge.example;transport=tls;lr>'))).toMatchObject({
    ...{ transport: 'tls', host: EDGE, port: 5061, name: 'edge.example', profile: { staysOnFlow: false } },
  });
  expect(contactPeerOf(bound('<sip:t@edge.example:5060;lr>'))).toBeUndefined();
  expect(contactPeerOf(bound(''))).toBeUndefined();
});

describe('a proxy over TCP', () => {
  /** A proxy that takes connections, and what it hears over those. */
  async function listening() {
    const heard: string[] = [];
    const sockets: Socket[] = [];
    const waiting: (() => void)[] = [];
    const server = createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => {});
      socket.on('data', (data) => {
        heard.push(data.toString());
        for (const tell of waiting.splice(0)) tell();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, EDGE, resolve));
    closers.push(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    const address = server.address();
    const until = async (pattern: RegExp) => {
      for (let found = heard.find((each) => pattern.test(each)); ; found = heard.find((each) => pattern.test(each))) {
        if (found !== undefined) return found;
        const { promise, resolve, reject } = Promise.withResolvers<void>();
        const timer = setTimeout(() => reject(new Error(`no ${pattern}`)), 8_000);
        waiting.push(resolve);
        await promise.finally(() => clearTimeout(timer));
      }
    };
    return { port: typeof address === 'object' ? (address?.port ?? 0) : 0, until };
  }

  test.each([
    ['its address', EDGE],
    ['a name', 'edge.invalid'],
    ['the address of a victim', '127.0.0.66'],
  ])('whose connection is gone is reached at its own address by the port of its Path, which names %s', async (_, host) => {
    const { carrier, users, proxy } = await open();
    const { port, until } = await listening();
    const edge = await proxy(EDGE, 'tcp');
    const path = `<sip:token@${host}:${port};transport=tcp;lr>`;
    await register(edge, 'alice', `Path: ${path}\r\n`);
    const call = await carrier.dial({ to: 'sip:alice' });
    const record = `Record-Route: <sip:${EDGE}:${port};transport=tcp;lr>\r\n`;
    edge.respond(await edge.until(/^INVITE/), '200 OK', { body: sdp(), fields: `Contact: ${CONTACT}\r\n${record}` });
    await edge.until(/^ACK/);
    await call.signals.until('leg.answered');
    edge.close();
    // The platform has seen the end of the connection when it has taken a later message.
    await register(await proxy(OTHER_EDGE), 'bob', '');
    expect(users.bound.get('alice')).toHaveLength(1);
    call.leg.hangup();
    expect(await until(/^BYE/)).toStartWith(`BYE ${TARGET} `);
    await carrier.dial({ to: 'sip:alice' });
    expect(routesIn(await until(/^INVITE/))).toBe(path);
  });

  test('has every phone challenged where more come back at once than are challenged in a second over UDP', async () => {
    const names = Array.from({ length: DEVICE_CHALLENGES_MAX + 100 }, (_, number) => `phone${number}`);
    const { proxy } = await open({ clock: new VirtualClock(), deviceProxies: [`${EDGE}/32`] }, new SeveralUsers(...names));
    const edge = await proxy(EDGE, 'tcp');
    for (const name of names)
      edge.send(edge.request('REGISTER', { id: name, from: `<sip:${name}@x>;tag=p`, to: `<sip:${name}@x>` }));
    edge.send(edge.request('OPTIONS', { id: 'after all of them' }));
    await edge.until(/^SIP[\s\S]*OPTIONS/);
    expect(edge.heard.filter((heard) => heard.startsWith('SIP/2.0 401'))).toHaveLength(names.length);
  });

  test('whose connection is gone loses none of ten phones to another one', async () => {
    const { users, proxy } = await open();
    const edge = await proxy(EDGE, 'tcp');
    const path = (token: number) => `Path: <sip:${token}@${EDGE}:5070;transport=tcp;lr>\r\n`;
    for (let token = 0; token < DEVICE_CONTACTS_MAX; token++)
      await register(edge, 'alice', path(token), `<sip:phone${token}@192.168.1.10>`);
    edge.close();
    const other = await proxy(OTHER_EDGE);
    await register(other, 'bob', '');
    const { response } = await asUser(other, 'REGISTER', 'alice', { contact: '<sip:one@192.168.1.11>', id: 'eleventh' });
    expect(response).toMatch(/^SIP\/2.0 403/);
    expect(users.bound.get('alice')).toHaveLength(DEVICE_CONTACTS_MAX);
  });

  test('keeps its connection while a phone behind it says nothing to a BYE, and not while itself says nothing to an INVITE', async () => {
    const clock = new VirtualClock();
    const { carrier, proxy } = await open({ clock });
    const edge = await proxy(EDGE, 'tcp');
    const path = `Path: <sip:${edge.place};transport=tcp;lr>\r\n`;
    await register(edge, 'alice', path);
    const { leg, signals } = await carrier.dial({ to: 'sip:alice' });
    edge.respond(await edge.until(/^INVITE/), '200 OK', { body: sdp(), fields: `Contact: ${CONTACT}\r\n` });
    await edge.until(/^ACK/);
    await signals.until('leg.answered');
    leg.hangup();
    await edge.until(/^BYE/);
    await clock.advance(SIP_FLOW_REPLY_MS + 1);
    await register(edge, 'bob', path);
    const next = await carrier.dial({ to: 'sip:alice' });
    await edge.until(/^INVITE/);
    await clock.advance(SIP_FLOW_REPLY_MS + 1);
    expect(await endOf(next.signals)).toMatchObject({ cause: 'not_answered' });
  });
});
