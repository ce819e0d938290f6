/** The certificate of the TLS listeners is exchanged while a call is up. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { makeCertificate } from '../support/certificate.ts';
import { TestCarrier, trunkTo } from './harness.ts';

let directory = '';
const file = (name: string) => join(directory, name);

/** A certificate for localhost under a name of its own. */
function make(name: string): void {
  const files = { certFile: file(`${name}.crt`), keyFile: file(`${name}.key`) };
  makeCertificate(files, { name, days: 2, altNames: ['DNS:localhost'] });
}
function use(name: string): void {
  copyFileSync(file(`${name}.crt`), file('cert.pem'));
  copyFileSync(file(`${name}.key`), file('key.pem'));
}
/** The name in the certificate that a new connection is shown. */
const shown = (port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, servername: 'localhost', rejectUnauthorized: false }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.destroy();
    });
    socket.on('error', reject);
  });

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'sip-certificate-'));
  make('first');
  make('second');
  use('first');
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

test('A new certificate is shown from its reload on, calls that are up go on, and a broken one changes nothing', async () => {
  const listen = [{ transport: 'tls', host: '127.0.0.1', port: 0 } as const];
  const tls = { certFile: file('cert.pem'), keyFile: file('key.pem') };
  const bob = await TestCarrier.open(undefined, { listen, tls });
  bob.numberOwner = async () => 'app';
  bob.onIncoming = ({ call: { leg } }) => leg.answer();
  const port = bob.port('tls');
  const alice = await TestCarrier.open([trunkTo(`sip:localhost:${port};transport=tls`)], {
    listen: [],
    tls: { caFile: file('first.crt') },
  });
  const { leg, signals } = await alice.dial();
  await signals.until('leg.answered');
  expect(await shown(port)).toBe('first');

  use('second');
  bob.carrier.reloadCertificate();
  expect(await shown(port)).toBe('second');
  writeFileSync(file('cert.pem'), 'no certificate');
  bob.carrier.reloadCertificate();
  expect(await shown(port)).toBe('second');

  leg.hangup();
  await bob.incoming[0]?.signals.until('leg.ended');
  expect(signals.types().at(-1)).toBe('leg.ended');
  await alice.idle();
  await alice.close();
  await bob.close();
}, 20_000);
