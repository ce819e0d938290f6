/** TLS handshakes of strangers, each of which costs as much as many messages. */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { rmSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { systemClock } from '../../src/clock.ts';
import { SIP_CONNECT_TIMEOUT_MS, SIP_TLS_HANDSHAKES_PER_STRANGER } from '../../src/limits.ts';
import { makeCertificate } from '../support/certificate.ts';
import { dataDirectory } from '../support/data-directory.ts';
import { TestCarrier, trunkTo } from './harness.ts';

let directory: string;
let tls: { readonly certFile: string; readonly keyFile: string };
beforeEach(() => {
  directory = dataDirectory('sip-handshakes-');
  tls = { certFile: join(directory, 'cert.pem'), keyFile: join(directory, 'key.pem') };
  makeCertificate(tls, { name: 'localhost', days: 2, altNames: ['DNS:localhost'] });
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));
const listen = [{ transport: 'tls', host: '127.0.0.1', port: 0 }] as const;

/** Whether a handshake from that address comes to its end. Resolves when its connection is closed. */
const shakesHands = (port: number, localAddress: string): Promise<boolean> =>
  new Promise((resolve) => {
    let isDone = false;
    const target = { host: '127.0.0.1', port, localAddress, rejectUnauthorized: false };
    const socket = connect(target, () => {
      isDone = true;
      socket.end();
    });
    socket.on('error', () => {});
    socket.on('data', () => {});
    socket.on('close', () => resolve(isDone));
  });

test('A stranger has so many handshakes a second and no more, other strangers theirs, and a trunk as many as it likes', async () => {
  let now = 1_000_000;
  const carrier = await TestCarrier.open([trunkTo('sip:127.0.0.1:9', { inboundCidrs: ['127.0.0.1/32'] })], {
    listen,
    tls,
    clock: { ...systemClock(), now: () => now },
  });
  const port = carrier.port('tls');
  const done = async (times: number, from: string) => {
    let count = 0;
    for (let n = 0; n < times; n += 1) if (await shakesHands(port, from)) count += 1;
    return count;
  };
  const most = SIP_TLS_HANDSHAKES_PER_STRANGER;
  expect(await done(most + 5, '127.0.0.66')).toBe(most);
  expect(await done(3, '127.0.0.67')).toBe(3);
  expect(await done(most + 5, '127.0.0.1')).toBe(most + 5);
  now += 500;
  expect(await done(most, '127.0.0.66')).toBe(most / 2);
  await carrier.close();
}, 30_000);

test('A stop does not wait for strangers who have begun a handshake and say nothing', async () => {
  const carrier = await TestCarrier.open([], { listen, tls });
  const port = carrier.port('tls');
  const silent = createConnection({ host: '127.0.0.1', port });
  silent.on('error', () => {});
  const closed = new Promise((resolve) => silent.once('close', resolve));
  // Connections are taken in their order.
  expect(await shakesHands(port, '127.0.0.66')).toBe(true);
  const began = performance.now();
  await carrier.close();
  await closed;
  expect(performance.now() - began).toBeLessThan(SIP_CONNECT_TIMEOUT_MS / 2);
});
