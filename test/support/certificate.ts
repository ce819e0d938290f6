/** Certificates that sign themselves, by the `openssl` of the machine. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Makes a certificate and its key (P-256). `altNames` are those of `subjectAltName`, as `DNS:localhost`. */
export function makeCertificate(
  { certFile, keyFile }: CertificateFiles,
  { name, days, altNames = [] }: { readonly name: string; readonly days: number; readonly altNames?: readonly string[] },
): void {
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', keyFile];
  const subject = ['-subj', `/CN=${name}`, '-days', `${days}`];
  const names = altNames.length === 0 ? [] : ['-addext', `subjectAltName=${altNames.join(',')}`];
  execFileSync('openssl', ['req', '-x509', ...key, ...subject, ...names, '-out', certFile], { stdio: 'ignore' });
}

/** A certificate and its key as PEM text. */
export function testCertificate(name: string): { readonly cert: string; readonly key: string } {
  const folder = mkdtempSync(join(tmpdir(), 'certificate-'));
  const files = { certFile: join(folder, 'crt'), keyFile: join(folder, 'key') };
  try {
    makeCertificate(files, { name, days: 2 });
    return { cert: readFileSync(files.certFile, 'utf8'), key: readFileSync(files.keyFile, 'utf8') };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
