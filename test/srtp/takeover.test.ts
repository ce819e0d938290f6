/** `kill -9` with CALL_TAKEOVER: calls with another platform over TCP, and encrypted ones over TLS, go on. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeCertificate } from '../support/certificate.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';

/** A platform, and what its application hears. */
interface Side {
  readonly platform: Platform;
  readonly app: Credentials;
  readonly receiver: Receiver;
  readonly number: string;
}

const folder = mkdtempSync(join(tmpdir(), 'sidetone-takeover-'));
const certFile = join(folder, 'platform.crt');
const keyFile = join(folder, 'platform.key');
const open: Side[] = [];

async function side(number: string, settings: Readonly<Record<string, string>>): Promise<Side> {
  const listen = ['udp', 'tcp', 'tls'].map((each) => `${each}:127.0.0.1:0`).join();
  const tls = { SIP_LISTEN: listen, SIP_TLS_CERT: certFile, SIP_TLS_KEY: keyFile };
  const receiver = new Receiver();
  const platform = await Platform.start({ ...tls, ...settings });
  const made = { platform, receiver, number, app: await platform.application(receiver.url, number) };
  open.push(made);
  platform.answerEveryCall(made.app, receiver);
  return made;
}

let near: Side;
let far: Side;

beforeAll(async () => {
  makeCertificate({ certFile, keyFile }, { name: 'localhost', days: 2, altNames: ['DNS:localhost', 'IP:127.0.0.1'] });
  [near, far] = await Promise.all([side('+15550002', { CALL_TAKEOVER: 'on', ORPHAN_TIMEOUT_SEC: '8' }), side('+15550003', {})]);
}, 60_000);
afterAll(async () => {
  for (const { platform, receiver } of open) {
    await platform.stop();
    await receiver.stop();
  }
  rmSync(folder, { recursive: true });
});

/** A call of one side to the other, answered: the Session of either. */
async function call(from: Side, to: Side): Promise<readonly [string, string]> {
  const before = to.receiver.count('session.answered');
  const order = { from: from.number, to: to.number, ring_timeout_sec: 20 };
  const { session_uuid: own } = (await from.platform.api(from.app, 'POST', '/v1/sessions:dial', order)).body;
  await from.receiver.event('session.answered', String(own));
  await to.receiver.until(() => to.receiver.count('session.answered') > before, 'the answer');
  return [String(own), String(to.receiver.events.findLast(({ event }) => event === 'session.answered')?.body.session_uuid)];
}

/** A key that one side sends is heard by the other. */
async function hears(listener: Side, heardBy: string, speaker: Side, saidBy: string, digit: string): Promise<void> {
  const sent = await speaker.platform.api(speaker.app, 'POST', `/v1/sessions/${saidBy}/dtmf/send`, { digits: digit });
  expect(sent.status).toBe(202);
  const isHeard = () =>
    listener.receiver.of(heardBy).some(({ event, body }) => event === 'dtmf.received' && body.digit === digit);
  await listener.receiver.until(isHeard, `key ${digit}`);
}

test.each([
  { transport: 'tcp', terms: {} },
  { transport: 'tls', terms: { srtp: 'required', tls: true } },
])(
  'Calls over $transport go on, in either direction, and are heard both ways',
  async ({ transport, terms: { tls, ...terms } }) => {
    const settings = {
      inbound_cidrs: ['127.0.0.0/8'],
      ...terms,
      ...(tls ? { tls: { ca: readFileSync(certFile, 'utf8') } } : {}),
    };
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      const at = transport === 'tls' ? other.platform.sipTls : other.platform.sipTcp;
      const trunk = { uri: `sip:${at};transport=${transport}`, ...settings };
      expect((await one.platform.operator('PUT', '/trunks/other', trunk)).status).toBe(204);
    }
    const calls = [await call(near, far), [...(await call(far, near))].reverse()];
    for (const [own = '', theirs = ''] of calls) {
      await hears(far, theirs, near, own, '1');
      await hears(near, own, far, theirs, '2');
    }
    await near.platform.kill();
    await near.platform.start();
    for (const [own = '', theirs = ''] of calls) {
      await hears(far, theirs, near, own, '3');
      await hears(near, own, far, theirs, '4');
      expect((await near.platform.api(near.app, 'DELETE', `/v1/sessions/${own}`)).status).toBe(202);
      expect((await far.receiver.event('session.ended', theirs)).body).toMatchObject({ answered: true });
      expect((await near.receiver.event('session.ended', own)).body).toMatchObject({ answered: true });
    }
  },
  90_000,
);
