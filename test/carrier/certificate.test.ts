/** The certificate of the TLS listeners is exchanged while a call is up. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { silentLog } from '../../src/log.ts';
import { startError } from '../../src/start-error.ts';
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

test('A carrier whose certificate is not trusted is told in the log, with the reason, and as a registrar that said nothing', async () => {
  const listen = [{ transport: 'tls', host: '127.0.0.1', port: 0 } as const];
  use('first');
  const bob = await TestCarrier.open(undefined, { listen, tls: { certFile: file('cert.pem'), keyFile: file('key.pem') } });
  const said = Promise.withResolvers<unknown>();
  const port = bob.port('tls');
  const registering = { username: 'u', password: 'p', register: true };
  const alice = await TestCarrier.open([trunkTo(`sip:localhost:${port};transport=tls`, registering)], {
    listen: [],
    log: { ...silentLog, warn: (fields, message) => said.resolve({ ...fields, message }) },
  });
  expect(await said.promise).toEqual({
    transport: 'tls',
    host: '127.0.0.1',
    port,
    reason: expect.stringMatching(/SELF_SIGNED|UNABLE_TO_VERIFY/),
    message: 'a SIP connection could not be opened',
  });
  while (alice.carrier.trunkStatus('carrier').registerStatus === undefined) await new Promise(setImmediate);
  expect(alice.carrier.trunkStatus('carrier')).toMatchObject({ registered: false, registerStatus: 0 });
  expect(alice.carrier.load().trunksDown).toBe(1);
  expect(bob.carrier.load().trunksDown).toBe(0);
  await alice.close();
  await bob.close();
});

test('A file of the certificate that is not there is named, with no word of ports', async () => {
  const listen = [{ transport: 'tls', host: '127.0.0.1', port: 0 } as const];
  const tls = { certFile: file('nowhere.pem'), keyFile: file('key.pem') };
  const opened = TestCarrier.open(undefined, { listen, tls });
  await expect(opened).rejects.toThrow(`cannot be read (ENOENT): there is no ${file('nowhere.pem')}`);
  const denied = Object.assign(new Error('no'), { code: 'EACCES', syscall: 'open', path: '/etc/sip.key' });
  expect(startError('SIP_TLS_KEY', 'it cannot be read', denied).message).toBe(
    'SIP_TLS_KEY: it cannot be read (EACCES): let the user of the platform read /etc/sip.key, and enter the folders above it',
  );
});
