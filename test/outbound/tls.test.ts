/** Certificates of the servers that the platform asks for an application. */
import { expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeCertificate } from '../support/certificate.ts';

const folder = mkdtempSync(join(tmpdir(), 'tls-'));
const certificateOf = (name: string, altNames: readonly string[]) => {
  const files = { certFile: join(folder, `${name}.crt`), keyFile: join(folder, `${name}.key`) };
  makeCertificate(files, { name, days: 2, altNames });
  return { serverName: name, cert: readFileSync(files.certFile, 'utf8'), key: readFileSync(files.keyFile, 'utf8') };
};

test('A certificate is that of the name in the URL, and not of the address or of a name asked there before', async () => {
  const tls = [certificateOf('one.test', ['DNS:one.test', 'IP:127.0.0.1']), certificateOf('two.test', ['DNS:two.test'])];
  const fetch = ({ headers }: Request) => new Response(headers.get('host')?.split(':')[0]);
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', tls, fetch });
  try {
    const names = ['one.test', 'two.test', 'one.test', 'three.test', '127.0.0.1'];
    const args = [process.execPath, join(import.meta.dir, 'trusting.ts'), String(server.port), ...names];
    const child = Bun.spawn(args, { env: { ...process.env, NODE_EXTRA_CA_CERTS: join(folder, 'one.test.crt') }, stdout: 'pipe' });
    const went: unknown = JSON.parse(await new Response(child.stdout).text());
    // The one who signed for two.test is trusted by nobody. Names that the server does not know are shown one.test.
    const expected = ['one.test', 'tls', 'one.test', 'tls', '127.0.0.1'];
    expect(went).toEqual(expected.flatMap((each) => [each, each]));
  } finally {
    await server.stop(true);
    rmSync(folder, { recursive: true });
  }
});
