/** Two carriers and raw sockets on loopback: transports, failures, limits. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LegEnd } from '../../src/call/ports/leg.ts';
import { extraFields } from '../../src/carrier/leg/outbound-leg.ts';
import { makeCertificate } from '../support/certificate.ts';
import { type Signals, TestCarrier, trunkTo } from './harness.ts';

const open: TestCarrier[] = [];
const sockets: Socket[] = [];
const carrierWith = async (...from: Parameters<typeof TestCarrier.open>) => {
  const carrier = await TestCarrier.open(...from);
  open.push(carrier);
  return carrier;
};
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const carrier of open.splice(0)) {
    await carrier.idle();
    await carrier.close();
    expect(carrier.media.open.size).toBe(0);
  }
});

let directory = '';
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'sip-tls-'));
  const files = { certFile: join(directory, 'cert.pem'), keyFile: join(directory, 'key.pem') };
  makeCertificate(files, { name: 'localhost', days: 2, altNames: ['DNS:localhost', 'IP:127.0.0.1'] });
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const endOf = async (signals: Signals): Promise<LegEnd | undefined> => {
  const signal = await signals.until('leg.ended');
  return signal.type === 'leg.ended' ? signal.end : undefined;
};

/** Alice dials Bob, who answers; then Alice hangs up. */
async function call(alice: TestCarrier, bob: TestCarrier): Promise<void> {
  bob.onIncoming = ({ call: { leg } }) => {
    leg.ring();
    leg.answer();
  };
  const before = bob.incoming.length;
  const { leg, signals } = await alice.dial();
  await signals.until('leg.answered');
  leg.hangup();
  expect(await endOf(signals)).toMatchObject({ cause: 'completed', by: 'caller' });
  const incoming = bob.incoming[before];
  if (incoming === undefined) throw new Error('no call came');
  expect(await endOf(incoming.signals)).toMatchObject({ cause: 'completed', by: 'caller' });
}

describe('calls between two carriers', () => {
  const numberOwner = async () => 'app';
  const listenTls = [{ transport: 'tls', host: '127.0.0.1', port: 0 } as const];

  test('go over UDP and TCP, and names are resolved', async () => {
    for (const transport of ['udp', 'tcp'] as const) {
      const bob = await carrierWith();
      bob.numberOwner = numberOwner;
      for (const host of ['127.0.0.1', 'localhost']) {
        const alice = await carrierWith([trunkTo(`sip:${host}:${bob.port(transport)};transport=${transport}`)]);
        await call(alice, bob);
      }
    }
  }, 20_000);

  test('go over TLS while a stranger holds all the handshakes that one address may begin', async () => {
    const [certFile, keyFile] = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
    const bob = await carrierWith([trunkTo('sip:127.0.0.1:9', { inboundCidrs: ['127.0.0.1/32'] })], {
      listen: listenTls,
      tls: { certFile, keyFile, caFile: certFile },
    });
    bob.numberOwner = numberOwner;
    // Connected, and silent: the handshake never begins.
    const silent = Array.from({ length: 40 }, () => {
      const socket = createConnection({ port: bob.port('tls'), host: '127.0.0.1', localAddress: '127.0.0.66' });
      socket.on('error', () => {});
      sockets.push(socket);
      return { socket, closed: new Promise<void>((resolve) => socket.once('close', () => resolve())) };
    });
    await Promise.all(silent.slice(16).map(({ closed }) => closed));
    expect(silent.filter(({ socket }) => !socket.destroyed)).toHaveLength(16);
    const alice = await carrierWith([trunkTo(`sip:localhost:${bob.port('tls')};transport=tls`)], {
      listen: listenTls,
      tls: { certFile, keyFile, caFile: certFile },
    });
    await call(alice, bob);
    // A place is free again once its handshake is given up.
    silent[0]?.socket.destroy();
    let isTaken = false;
    for (let tries = 0; tries < 100 && !isTaken; tries++) {
      const another = createConnection({ port: bob.port('tls'), host: '127.0.0.1', localAddress: '127.0.0.66' });
      sockets.push(another);
      another.on('error', () => {});
      // One that is refused is closed at once.
      const closed = new Promise<boolean>((resolve) => another.once('close', () => resolve(false)));
      isTaken = await Promise.race([closed, new Promise<boolean>((resolve) => setTimeout(resolve, 100, true))]);
    }
    expect(isTaken).toBe(true);
  }, 20_000);

  test('go over TLS with a certificate that is checked by name', async () => {
    const tls = {
      certFile: join(directory, 'cert.pem'),
      keyFile: join(directory, 'key.pem'),
      caFile: join(directory, 'cert.pem'),
    };
    const bob = await carrierWith(undefined, { listen: listenTls, tls });
    bob.numberOwner = numberOwner;
    const alice = await carrierWith([trunkTo(`sip:localhost:${bob.port('tls')};transport=tls`)], { listen: listenTls, tls });
    await call(alice, bob);
  }, 20_000);

  test('go over TLS with the authority and the client certificate of the trunk', async () => {
    const { certFile, keyFile } = { certFile: join(directory, 'cert.pem'), keyFile: join(directory, 'key.pem') };
    const bob = await carrierWith(undefined, { listen: listenTls, tls: { certFile, keyFile } });
    bob.numberOwner = numberOwner;
    const [cert, key] = [readFileSync(certFile, 'utf8'), readFileSync(keyFile, 'utf8')];
    const more = { settings: { tls: { ca: cert, cert } }, tlsKey: key };
    await call(await carrierWith([trunkTo(`sip:localhost:${bob.port('tls')};transport=tls`, more)]), bob);
    const broken = { settings: { tls: { ca: cert, cert: '-----BEGIN nonsense' } }, tlsKey: key };
    const alice = await carrierWith([trunkTo(`sip:localhost:${bob.port('tls')};transport=tls`, broken)]);
    expect(await endOf((await alice.dial()).signals)).toMatchObject({ cause: 'carrier_unreachable', by: 'network' });
    // A trunk that is edited has connections of its own from then on, also while one from before is up.
    alice.trunks = [trunkTo(`sip:localhost:${bob.port('tls')};transport=tls`, more)];
    await call(alice, bob);
    alice.trunks = [trunkTo(`sip:localhost:${bob.port('tls')};transport=tls`, broken)];
    expect(await endOf((await alice.dial()).signals)).toMatchObject({ cause: 'carrier_unreachable', by: 'network' });
  }, 20_000);

  test('over TLS to a certificate nobody vouches for end as carrier_unreachable by the network', async () => {
    const { certFile, keyFile } = { certFile: join(directory, 'cert.pem'), keyFile: join(directory, 'key.pem') };
    const bob = await carrierWith(undefined, { listen: listenTls, tls: { certFile, keyFile } });
    const alice = await carrierWith([trunkTo(`sip:localhost:${bob.port('tls')};transport=tls`)]);
    expect(await endOf((await alice.dial()).signals)).toMatchObject({ cause: 'carrier_unreachable', by: 'network' });
    expect(bob.incoming).toEqual([]);
  }, 20_000);

  test('many at once all end on both sides, and every port comes back', async () => {
    const bob = await carrierWith();
    bob.numberOwner = numberOwner;
    const alice = await carrierWith([trunkTo(`sip:127.0.0.1:${bob.port('udp')}`)]);
    bob.onIncoming = ({ call: { leg } }) => leg.answer();
    const calls = await Promise.all(Array.from({ length: 100 }, () => alice.dial()));
    await Promise.all(
      calls.map(async ({ leg, signals }) => {
        await signals.until('leg.answered');
        leg.hangup();
        await signals.until('leg.ended');
      }),
    );
    await Promise.all(bob.incoming.map(({ signals }) => signals.until('leg.ended')));
    expect(bob.incoming).toHaveLength(100);
    expect([alice.media.opened, bob.media.opened]).toEqual([100, 100]);
    for (const { signals } of calls) expect(signals.types().filter((type) => type === 'leg.ended')).toHaveLength(1);
    // On a busy machine BYEs and their answers are lost, and sent again for up to 32 s (RFC 3261 §17.1.2.2).
    for (const carrier of [alice, bob]) await carrier.idle(20_000);
  }, 60_000);
});

describe('a call that cannot be carried', () => {
  test('to a port where nobody listens, or a name without an address, is carrier_unreachable by the network', async () => {
    for (const uri of ['sip:127.0.0.1:1;transport=tcp', 'sip:nobody.invalid', 'sip:127.0.0.1:1;transport=tls']) {
      const alice = await carrierWith([trunkTo(uri)]);
      expect(await endOf((await alice.dial()).signals)).toMatchObject({ cause: 'carrier_unreachable', by: 'network' });
    }
  }, 20_000);

  test('finds no trunk, no channel or no port before it begins', async () => {
    const order = { appUuid: 'app', to: '+15550100', from: '+15550002', listener: () => {} };
    const none = await carrierWith([]);
    expect(await none.carrier.dial(order)).toEqual({ unavailable: 'no_trunk' });
    const one = await carrierWith([trunkTo('sip:127.0.0.1:1', { maxChannels: 1 })]);
    expect(await one.carrier.dial({ ...order, trunk: 'other' })).toEqual({ unavailable: 'unknown_trunk' });
    const first = await one.carrier.dial(order);
    expect(await one.carrier.dial(order)).toEqual({ unavailable: 'no_capacity' });
    if ('leg' in first) first.leg.hangup();
    const second = await one.carrier.dial(order);
    expect(second).toHaveProperty('leg');
    if ('leg' in second) second.leg.cancel();
    one.media.portsFree = 0;
    expect(await one.carrier.dial(order)).toEqual({ unavailable: 'no_ports' });
    one.media.portsFree = 1;
    one.carrier.drain();
    expect(await one.carrier.dial(order)).toEqual({ unavailable: 'draining' });
  });

  test('never sends what an application puts after a line end', () => {
    const fields = extraFields({
      'X-Order': '7',
      'X-Evil': 'a\r\nContact: <sip:evil>',
      Via: 'SIP/2.0/UDP x',
      'X Bad': 'y',
      'x-lower': 'ok',
      'X-Long': 'y'.repeat(5_000),
    });
    expect(fields).toEqual([
      ['X-Order', '7'],
      ['x-lower', 'ok'],
    ]);
  });
});

/** A raw TCP peer. */
async function connect(
  carrier: TestCarrier,
): Promise<{ socket: Socket; until: (pattern: RegExp) => Promise<string>; closed: Promise<void> }> {
  const socket = createConnection({ host: '127.0.0.1', port: carrier.port('tcp') });
  sockets.push(socket);
  let heard = '';
  let look: () => void = () => {};
  socket.on('data', (chunk) => {
    heard += chunk.toString();
    look();
  });
  socket.on('error', () => {});
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  await new Promise<void>((resolve) => socket.once('connect', () => resolve()));
  const until = (pattern: RegExp) =>
    new Promise<string>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`heard ${heard}`)), 5_000);
      look = () => {
        if (!pattern.test(heard)) return;
        clearTimeout(timer);
        const said = heard;
        heard = '';
        resolve(said);
      };
      look();
    });
  return { socket, until, closed };
}
const SDP = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 6000 RTP/AVP 0\r\n';
const invite = (id: string, more: { number?: string; body?: string } = {}) => {
  const body = more.body ?? SDP;
  return (
    `INVITE sip:${more.number ?? '+15550002'}@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/TCP 127.0.0.1:9;branch=z9hG4bK${id}\r\nFrom: <sip:+15550199@x>;tag=${id}\r\n` +
    `To: <sip:y@x>\r\nCall-ID: ${id}\r\nCSeq: 1 INVITE\r\nContact: <sip:x@127.0.0.1:9;transport=tcp>\r\nContent-Type: application/sdp\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  );
};

describe('a TCP peer', () => {
  test('that writes byte by byte is understood', async () => {
    const carrier = await carrierWith();
    carrier.onIncoming = ({ call: { leg } }) => leg.reject('busy');
    const peer = await connect(carrier);
    peer.socket.setNoDelay(true);
    for (const byte of invite('slow')) peer.socket.write(byte);
    await peer.until(/SIP\/2.0 486/);
  });

  test('is answered its keepalive, and cut off when it speaks something else', async () => {
    const carrier = await carrierWith();
    const peer = await connect(carrier);
    peer.socket.write('\r\n\r\n');
    expect(await peer.until(/\r\n/)).toBe('\r\n');
    peer.socket.write(`INVITE x\r\n${'y'.repeat(50_000)}`);
    await peer.closed;
    const other = await connect(carrier);
    other.socket.write(invite('after', { number: '+15551111' }));
    await other.until(/SIP\/2.0 404/);
  });

  const refusals: [
    title: string,
    change: (carrier: TestCarrier) => void,
    message: Parameters<typeof invite>[1],
    expected: RegExp,
  ][] = [
    ['an unassigned number is 404', () => {}, { number: '+15551111' }, /SIP\/2.0 404/],
    ['no number at all is 404', () => {}, { number: 'nobody' }, /SIP\/2.0 404/],
    ['no codec in common is 488', () => {}, { body: SDP.replace('AVP 0', 'AVP 18') }, /SIP\/2.0 488/],
    ['a broken description is 400', () => {}, { body: 'v=0' }, /SIP\/2.0 400/],
    [
      'a lookup that fails is 503',
      (carrier) => (carrier.numberOwner = () => Promise.reject(new Error('away'))),
      {},
      /SIP\/2.0 503[\s\S]*Retry-After/,
    ],
    // Some carriers stay away for as long as Retry-After says, from a trunk that is only full.
    ['no free media ports is 503', (carrier) => (carrier.media.portsFree = 0), {}, /SIP\/2.0 503(?![\s\S]*Retry-After)/],
    ['a carrier that drains is 503', (carrier) => carrier.carrier.drain(), {}, /SIP\/2.0 503[\s\S]*Retry-After/],
  ];
  for (const [title, change, message, expected] of refusals) {
    test(title, async () => {
      const carrier = await carrierWith();
      change(carrier);
      const peer = await connect(carrier);
      peer.socket.write(invite('r', message));
      await peer.until(expected);
      expect(carrier.incoming).toEqual([]);
    });
  }
});
