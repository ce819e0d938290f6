/**
 * A trunk whose domain has SRV records fails over between their targets (RFC 3263 §4.3). The name server is a socket of
 * ours.
 */
import { afterEach, expect, test } from 'bun:test';
import { createSocket, type Socket } from 'node:dgram';
import { getServers, setServers } from 'node:dns/promises';
import { SIP_PROBE_INTERVAL_SEC, SIP_REGISTER_SILENT_MS, SIP_RESOLVED_TTL_MS } from '../../src/limits.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { TestCarrier, trunkTo } from './harness.ts';
import { RawPeer, sdp } from './raw-peer.ts';

const usual = getServers();
let names: Socket | undefined;
let carrier: TestCarrier;
const peers: RawPeer[] = [];
afterEach(async () => {
  setServers(usual);
  names?.close();
  for (const peer of peers.splice(0)) peer.close();
  await carrier.close();
});

/** One SRV record as it goes into an answer (RFC 2782): its name is that of the question. */
function record(priority: number, port: number): Buffer {
  const target = Buffer.concat([Buffer.from([9]), Buffer.from('localhost'), Buffer.from([0])]);
  const data = Buffer.alloc(6);
  for (const [i, value] of [priority, 1, port].entries()) data.writeUInt16BE(value, i * 2);
  const head = Buffer.alloc(12);
  for (const [at, value] of [
    [0, 0xc00c],
    [2, 33],
    [4, 1],
    [8, 60],
    [10, data.length + target.length],
  ] as const)
    head.writeUInt16BE(value, at);
  return Buffer.concat([head, data, target]);
}

/** A name server that knows these ports, in order of priority, for every SRV question. */
async function serve(ports: readonly number[]): Promise<void> {
  const socket = createSocket('udp4');
  names = socket;
  socket.on('message', (query, from) => {
    let end = 12;
    while ((query[end] ?? 0) > 0) end += (query[end] ?? 0) + 1;
    const head = Buffer.from(query.subarray(0, 12));
    for (const [at, value] of [
      [2, 0x8180],
      [6, ports.length],
      [8, 0],
      [10, 0],
    ] as const)
      head.writeUInt16BE(value, at);
    const answers = ports.map((port, i) => record(i + 1, port));
    socket.send(Buffer.concat([head, query.subarray(12, end + 5), ...answers]), from.port, from.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  setServers([`127.0.0.1:${socket.address().port}`]);
}

test('A call goes to the target of the lowest priority, and to the next one when that refuses with 503 or does not answer', async () => {
  carrier = await TestCarrier.open([trunkTo('sip:carrier.test')]);
  for (let made = 0; made < 3; made++) peers.push(await RawPeer.udp(carrier.port('udp')));
  const [first, second, third] = peers;
  if (first === undefined || second === undefined || third === undefined) throw new Error('no peers');
  await serve([first.port, second.port, third.port]);
  const { leg, signals } = await carrier.dial();
  first.respond(await first.until(/^INVITE sip:\+15550100@carrier.test /), '503 Service Unavailable');
  await second.until(/^INVITE /);
  third.respond(await third.until(/^INVITE /), '200 OK', { body: sdp() });
  await signals.until('leg.answered');
  leg.hangup();
  third.respond(await third.until(/^BYE /), '200 OK');
  expect(carrier.carrier.trunkStatus('carrier')).toMatchObject({ failures24h: 0 });
}, 20_000);

test('A trunk is registered at the second target when the first is silent, and where the records point by the next time', async () => {
  const clock = new VirtualClock();
  carrier = await TestCarrier.open([], { clock });
  for (let made = 0; made < 3; made++) peers.push(await RawPeer.udp(carrier.port('udp')));
  const [first, second, third] = peers;
  if (first === undefined || second === undefined || third === undefined) throw new Error('no peers');
  await serve([first.port, second.port]);
  carrier.trunks.push(trunkTo('sip:carrier.test', { username: 'u', password: 'p', register: true }));
  carrier.carrier.trunksChanged();
  await first.until(/^REGISTER sip:carrier.test /);
  await clock.advance(SIP_REGISTER_SILENT_MS);
  second.respond(await second.until(/^REGISTER sip:carrier.test /), '200 OK', { fields: 'Expires: 300\r\n' });
  for (let looks = 0; !carrier.carrier.trunkStatus('carrier').registered; looks++) {
    if (looks > 1_000) throw new Error('never registered');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  names?.close();
  await serve([third.port]);
  await clock.advance(271_000);
  await third.until(/^REGISTER sip:carrier.test /);
}, 20_000);

test('A busy callee ends the call: no other target is asked', async () => {
  carrier = await TestCarrier.open([trunkTo('sip:carrier.test')]);
  for (let made = 0; made < 2; made++) peers.push(await RawPeer.udp(carrier.port('udp')));
  const [first, second] = peers;
  if (first === undefined || second === undefined) throw new Error('no peers');
  await serve([first.port, second.port]);
  const { signals } = await carrier.dial();
  first.respond(await first.until(/^INVITE /), '486 Busy Here');
  expect(await signals.until('leg.ended')).toMatchObject({ end: { cause: 'busy' } });
  expect(second.heard).toEqual([]);
}, 20_000);

test('A trunk whose second target answers an OPTIONS is there, and no call goes elsewhere for the first.', async () => {
  const clock = new VirtualClock();
  carrier = await TestCarrier.open([], { clock });
  for (let made = 0; made < 2; made++) peers.push(await RawPeer.udp(carrier.port('udp')));
  const [first, second] = peers;
  if (first === undefined || second === undefined) throw new Error('no peers');
  await serve([first.port, second.port]);
  carrier.trunks.push(trunkTo('sip:carrier.test'));
  carrier.carrier.trunksChanged();
  const status = () => carrier.carrier.trunkStatus('carrier').lastProbe;
  await clock.advance(SIP_PROBE_INTERVAL_SEC * 1000);
  await first.until(/^OPTIONS sip:carrier.test /);
  // Timer F of RFC 3261 §17.1.2.2.
  await clock.advance(33_000);
  expect(status()).toBeUndefined();
  second.respond(await second.until(/^OPTIONS sip:carrier.test /), '200 OK');
  while (status() === undefined) await new Promise(setImmediate);
  expect(status()).toMatchObject({ ok: true, sipStatus: 200 });
}, 20_000);

test('The address of a trunk stays known while its name cannot be looked up: the OPTIONS of the carrier are answered', async () => {
  const clock = new VirtualClock();
  carrier = await TestCarrier.open([], { clock });
  const far = await RawPeer.udp(carrier.port('udp'));
  peers.push(far);
  await serve([far.port]);
  carrier.trunks.push(trunkTo('sip:carrier.test', { inboundCidrs: ['127.0.0.200/32'] }));
  carrier.carrier.trunksChanged();
  const isThere = async (answers: boolean) => {
    while (carrier.carrier.trunkStatus('carrier').lastProbe?.ok !== answers) await new Promise(setImmediate);
  };
  const asked = async (id: string) => {
    far.send(far.request('OPTIONS', { id }));
    return (await far.until(/^SIP\/2.0 /)).slice(0, 'SIP/2.0 200'.length);
  };
  carrier.carrier.probeTrunk('carrier');
  far.respond(await far.until(/^OPTIONS /), '200 OK');
  await isThere(true);
  expect(await asked('before')).toBe('SIP/2.0 200');
  names?.close();
  await serve([]);
  await clock.advance(SIP_RESOLVED_TTL_MS);
  carrier.carrier.probeTrunk('carrier');
  await isThere(false);
  expect(await asked('since')).toBe('SIP/2.0 200');
}, 20_000);

test('The address of a trunk that is deleted while its name is looked up is that of a stranger, and the call goes on', async () => {
  carrier = await TestCarrier.open();
  const far = await RawPeer.udp(carrier.port('udp'));
  peers.push(far);
  await serve([far.port]);
  carrier.trunks = [trunkTo('sip:carrier.test', { inboundCidrs: [] })];
  carrier.carrier.trunksChanged();
  const { signals } = await carrier.dial();
  carrier.trunks = [];
  carrier.carrier.trunksChanged();
  far.respond(await far.until(/^INVITE /), '486 Busy Here');
  expect(await signals.until('leg.ended')).toMatchObject({ end: { cause: 'busy' } });
  far.send(far.request('OPTIONS', { id: 'since' }));
  expect(await far.until(/^SIP\/2.0 /)).toStartWith('SIP/2.0 403');
}, 20_000);

test.each([
  ['the SRV target of a Contact that is a domain of its own', 'media.carrier.test', true],
  ['the server that has the call where its Contact is the domain of the trunk', 'Carrier.test', false],
])(
  'What follows a 200 goes to %s',
  async (_, host, moves) => {
    carrier = await TestCarrier.open([trunkTo('sip:carrier.test')]);
    for (let made = 0; made < 2; made++) peers.push(await RawPeer.udp(carrier.port('udp')));
    const [first, second] = peers;
    if (first === undefined || second === undefined) throw new Error('no peers');
    await serve([first.port]);
    const { leg, signals } = await carrier.dial();
    const invite = await first.until(/^INVITE /);
    names?.close();
    await serve([second.port]);
    first.respond(invite, '200 OK', { body: sdp(), fields: `Contact: <sip:callee@${host}>\r\n` });
    const next = moves ? second : first;
    expect(await next.until(/^ACK /)).toStartWith(`ACK sip:callee@${host} `);
    await signals.until('leg.answered');
    leg.hangup();
    next.respond(await next.until(/^BYE /), '200 OK');
    await signals.until('leg.ended');
  },
  20_000,
);
