/** A platform with an application that answers every call, and calls between two of them. */
import { expect } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeCertificate } from '../support/certificate.ts';
import type { Credentials, Platform } from '../support/platform.ts';
import type { Receiver } from '../support/receiver.ts';

export interface Side {
  readonly platform: Platform;
  readonly app: Credentials;
  readonly receiver: Receiver;
  readonly number: string;
}

/** The settings of platforms that listen on UDP, TCP and TLS, by a certificate that is made in that folder. */
export function listening(folder: string): Readonly<Record<string, string>> {
  const files = { certFile: join(folder, 'platform.crt'), keyFile: join(folder, 'platform.key') };
  makeCertificate(files, { name: 'localhost', days: 2, altNames: ['DNS:localhost', 'IP:127.0.0.1'] });
  const listen = ['udp', 'tcp', 'tls'].map((each) => `${each}:127.0.0.1:0`).join();
  return { SIP_LISTEN: listen, SIP_TLS_CERT: files.certFile, SIP_TLS_KEY: files.keyFile };
}

/** Each is the other's carrier: over TCP in clear, or encrypted over TLS, by the certificate of `listening`. */
export async function connect(one: Side, other: Side, transport: 'tcp' | 'tls', folder: string): Promise<void> {
  const secret = { srtp: 'required', tls: { ca: readFileSync(join(folder, 'platform.crt'), 'utf8') } };
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    const uri = `sip:${transport === 'tls' ? to.platform.sipTls : to.platform.sipTcp};transport=${transport}`;
    const trunk = { uri, inbound_cidrs: ['127.0.0.0/8'], ...(transport === 'tls' ? secret : {}) };
    expect((await from.platform.operator('PUT', '/trunks/other', trunk)).status).toBe(204);
  }
}

/** A call of one side to the other, answered: the Session of either. */
export async function call(from: Side, to: Side): Promise<readonly [string, string]> {
  const before = to.receiver.count('session.answered');
  const order = { from: from.number, to: to.number, ring_timeout_sec: 20 };
  const { session_uuid: own } = (await from.platform.api(from.app, 'POST', '/v1/sessions:dial', order)).body;
  await from.receiver.event('session.answered', String(own));
  await to.receiver.until(() => to.receiver.count('session.answered') > before, 'the answer');
  return [String(own), String(to.receiver.events.findLast(({ event }) => event === 'session.answered')?.body.session_uuid)];
}

/** A key that each side sends in its Session is heard in the other's. */
export async function hearEachOther(one: Side, inOne: string, other: Side, inOther: string, digit: string): Promise<void> {
  for (const [speaker, said, listener, heard] of [
    [one, inOne, other, inOther],
    [other, inOther, one, inOne],
  ] as const) {
    const sent = await speaker.platform.api(speaker.app, 'POST', `/v1/sessions/${said}/dtmf/send`, { digits: digit });
    expect(sent.status).toBe(202);
    const isHeard = () =>
      listener.receiver.of(heard).some(({ event, body }) => event === 'dtmf.received' && body.digit === digit);
    await listener.receiver.until(isHeard, `key ${digit}`);
  }
}
