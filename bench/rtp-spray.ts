/**
 * RTP bleed, tried blindly: a stranger sends two packets in a row to every port of the range, again and again, while
 * calls are set up and before their callers have sent anything. Half of the callers sit behind NAT, so that their SDP
 * names an address that never sends.
 *
 *   npm run bench -- rtp-spray [CALLS] [ROUNDS]
 *
 * Tells how many legs sent audio to the stranger (0 is the only good number), how many took audio of his, and how many
 * callers hear their call.
 */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { RtpLeg } from '../src/media/engine.ts';
import { farEnd } from './far-end.ts';
import { engineFor } from './support/engine.ts';

const CALLS = Number(process.argv[2] ?? 20);
const ROUNDS = Number(process.argv[3] ?? 20);
const FIRST_PORT = 20_000;
const LAST_PORT = 20_999;
const CALLER_HOST = '127.0.0.1';
const STRANGER_HOST = '127.0.0.66';
const NAT_HOST = '192.0.2.1';

interface Heard {
  readonly socket: Socket;
  packets: number;
}

async function open(host: string): Promise<Heard> {
  const heard: Heard = { socket: createSocket('udp4'), packets: 0 };
  heard.socket.on('message', () => {
    heard.packets++;
  });
  heard.socket.bind(0, host);
  await once(heard.socket, 'listening');
  return heard;
}

function packet(sequence: number, ssrc: number): Buffer {
  const bytes = Buffer.alloc(172, 0x55);
  bytes.writeUInt16BE(0x8000, 0);
  bytes.writeUInt16BE(sequence & 0xffff, 2);
  bytes.writeUInt32BE((sequence * 160) >>> 0, 4);
  bytes.writeUInt32BE(ssrc, 8);
  return bytes;
}

const engine = await engineFor((LAST_PORT - FIRST_PORT + 1) / 2, FIRST_PORT);
const stranger = await open(STRANGER_HOST);
let sprayed = 0;
const spray = () => {
  for (let port = FIRST_PORT; port <= LAST_PORT; port += 2) {
    for (const sequence of [sprayed, sprayed + 1]) stranger.socket.send(packet(sequence, 666), port, CALLER_HOST);
  }
  sprayed += 2;
};

const calls: { readonly caller: Heard; readonly leg: RtpLeg }[] = [];
for (let i = 0; i < CALLS; i++) {
  const caller = await open(CALLER_HOST);
  const leg = await engine.openRtpLeg(() => {});
  if (leg === undefined) throw new Error('no free ports');
  const agreed = { ...farEnd(caller.socket.address().port), learnFrom: [CALLER_HOST] };
  leg.negotiate(i % 2 === 0 ? agreed : { ...agreed, remoteHost: NAT_HOST });
  calls.push({ caller, leg });
}
/** The next frame of a call whose caller sits at the address in its SDP: it hears one every 20 ms. */
const frame = () => once(calls[0]?.caller.socket ?? stranger.socket, 'message');

for (let round = 0; round < ROUNDS; round++) {
  spray();
  await frame();
}
const fooled = (await Promise.all(calls.map(({ leg }) => leg.counters()))).filter(
  ({ packetsReceived }) => packetsReceived > 0,
).length;
const stolen = stranger.packets;
for (const { caller } of calls) caller.packets = 0;
for (let round = 0; round < ROUNDS; round++) {
  spray();
  for (const { caller, leg } of calls) caller.socket.send(packet(round, 1), leg.port, CALLER_HOST);
  await frame();
}
const hearing = calls.filter(({ caller }) => caller.packets >= ROUNDS / 2).length;
console.log(
  `${sprayed * ((LAST_PORT + 1 - FIRST_PORT) / 2)} packets at ${(LAST_PORT + 1 - FIRST_PORT) / 2} port pairs: ${stolen + stranger.packets} packets of audio went to the stranger, ` +
    `${fooled} of ${CALLS} legs took audio of his, ${hearing} of ${CALLS} callers hear their call`,
);
for (const { caller } of calls) caller.socket.close();
stranger.socket.close();
await engine.close();
process.exit(stolen + stranger.packets + fooled === 0 && hearing === CALLS ? 0 : 1);
