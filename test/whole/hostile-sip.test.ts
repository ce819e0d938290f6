/** Bad SIP while a call is up: no crash, and the call's audio goes on without a gap. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { createSocket } from 'node:dgram';
import { connect } from 'node:net';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { RtpPeer } from '../support/rtp-peer.ts';
import { sipp, sippInstalled } from '../support/sipp.ts';

const INVITE = [
  'INVITE sip:+15550002@127.0.0.1 SIP/2.0',
  'Via: SIP/2.0/UDP 127.0.0.1:9;branch=z9hG4bK-hostile',
  'From: <sip:+15550009@127.0.0.1>;tag=1',
  'To: <sip:+15550002@127.0.0.1>',
  'Call-ID: hostile@127.0.0.1',
  'CSeq: 1 INVITE',
  'Contact: <sip:peer@127.0.0.1:9>',
  'Max-Forwards: 70',
  'Content-Length: 0',
  '',
  '',
].join('\r\n');

/** A generator with a seed, so that a failure can be had again. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function badMessages(): Buffer[] {
  const next = random(4475);
  const bytes = (length: number) => Buffer.from(Array.from({ length }, () => Math.floor(next() * 256)));
  const cut = Array.from({ length: 60 }, () => Buffer.from(INVITE.slice(0, Math.floor(next() * INVITE.length))));
  const flipped = Array.from({ length: 300 }, () => {
    const message = Buffer.from(INVITE);
    for (let flips = 0; flips < 5; flips++) message[Math.floor(next() * message.length)] = Math.floor(next() * 256);
    return message;
  });
  const written = [
    INVITE.replace('CSeq: 1', 'CSeq: 99999999999999999999'),
    INVITE.replace('Content-Length: 0', 'Content-Length: -999'),
    INVITE.replace('Content-Length: 0', 'Content-Length: 9999999'),
    INVITE.replace('Max-Forwards: 70', 'Max-Forwards: 0'),
    INVITE.replace('SIP/2.0\r\n', 'SIP/7.0\r\n'),
    INVITE.replace('INVITE', 'NEWMETHOD'),
    INVITE.replace('sip:+15550002@127.0.0.1', 'sip:+15550002@127.0.0.1 '),
    INVITE.replace('Contact:', `X-Long: ${'a'.repeat(20_000)}\r\nContact:`),
    INVITE.replace('Via:', `${'Via: SIP/2.0/UDP 10.0.0.1;branch=z9hG4bKx\r\n'.repeat(400)}Via:`),
    INVITE.replace(
      'Content-Length: 0\r\n\r\n',
      `Content-Type: application/sdp\r\nContent-Length: 1000\r\n\r\nv=0\r\nm=${'9'.repeat(990)}`,
    ),
  ].map((text) => Buffer.from(text));
  return [
    ...cut,
    ...flipped,
    ...written,
    ...[0, 1, 4, 100, 1500, 9000].map(bytes),
    ...Array.from({ length: 200 }, () => bytes(200)),
  ];
}

describe.skipIf(!sippInstalled)('bad SIP', () => {
  let platform: Platform;
  let app: Credentials;
  const receiver = new Receiver();

  beforeAll(async () => {
    platform = await Platform.start();
    app = await platform.application(receiver.url, '+15550002');
    await platform.trunk('127.0.0.1:9');
  }, 60_000);

  afterAll(async () => {
    await platform?.stop();
    await receiver.stop();
  });

  test('over UDP and torn TCP leaves a call that is up untouched', async () => {
    const ear = await RtpPeer.open();
    const caller = await sipp({ scenario: 'caller-waits', to: platform.sipUdp, keys: { rtp_port: String(ear.port) } });
    const sessionUuid = String((await receiver.event('session.created')).body.session_uuid);
    await platform.api(app, 'POST', `/v1/sessions/${sessionUuid}/answer`);
    await ear.until(() => ear.packets.length > 5, 'audio');
    const before = ear.packets.length;

    const messages = badMessages();
    const [host, udpPort] = platform.sipUdp.split(':');
    const udp = createSocket('udp4');
    for (const message of messages) udp.send(message, Number(udpPort), host);
    const tcpPort = Number(platform.sipTcp.split(':')[1]);
    await Promise.all(messages.slice(0, 100).map((message) => tornTcp(tcpPort, message)));
    await ear.until(() => ear.packets.length > before + 50, 'audio after the storm');
    udp.close();

    const during = ear.packets.slice(before);
    for (const [at, packet] of during.slice(1).entries()) {
      expect((packet.sequence - (during[at]?.sequence ?? 0)) & 0xffff).toBe(1);
    }
    expect((await fetch(`${platform.url}/readyz`)).status).toBe(200);
    await platform.api(app, 'DELETE', `/v1/sessions/${sessionUuid}`);
    expect([await caller.done, caller.errors()]).toEqual([true, expect.anything()]);
    ear.close();
  }, 60_000);
});

/** Sends a message in two pieces and hangs up. */
function tornTcp(port: number, message: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      const half = Math.floor(message.length / 2);
      socket.write(message.subarray(0, half), () => socket.end(message.subarray(half)));
    });
    socket.on('error', () => resolve());
    socket.on('close', () => resolve());
    socket.resume();
  });
}
