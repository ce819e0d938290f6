/**
 * The TLS certificate of our listeners. It is read anew at SIGHUP and when one of its files changes; connections that
 * are up go on with the one they began with. A certificate that cannot be read leaves the one before in use.
 */
import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { messageOf } from '../../error-facts.ts';
import { SIP_TLS_WATCH_MS } from '../../limits.ts';
import type { Log } from '../../log.ts';

export interface TlsFiles {
  readonly certFile?: string;
  readonly keyFile?: string;
  /** Authorities beside the system's own. */
  readonly caFile?: string;
}

export interface TlsMaterial {
  readonly cert?: Buffer;
  readonly key?: Buffer;
  readonly ca?: Buffer;
}

/** Reads the files. Throws when one cannot be read, or when certificate and key are none or do not belong together. */
export function readTls({ certFile, keyFile, caFile }: TlsFiles): TlsMaterial {
  const material = {
    ...(certFile === undefined ? {} : { cert: readFileSync(certFile) }),
    ...(keyFile === undefined ? {} : { key: readFileSync(keyFile) }),
    ...(caFile === undefined ? {} : { ca: readFileSync(caFile) }),
  };
  createSecureContext(material);
  return material;
}

/** Watches the files. `onChange` is given what was read, at a change of a file and at each `reload`. */
export function watchTls(
  files: TlsFiles,
  log: Log,
  onChange: (material: TlsMaterial) => void,
): { readonly reload: () => void; readonly close: () => void } {
  const paths = [files.certFile, files.keyFile, files.caFile].flatMap((path) => path ?? []);
  const reload = () => {
    try {
      onChange(readTls(files));
      log.info({}, 'the SIP certificate was read anew');
    } catch (error) {
      log.warn({ reason: messageOf(error) }, 'the SIP certificate cannot be read: the one before stays in use');
    }
  };
  // Polled, because a certificate is often replaced by moving a link, which no notification tells.
  for (const path of paths) watchFile(path, { interval: SIP_TLS_WATCH_MS, persistent: false }, reload);
  const close = () => {
    for (const path of paths) unwatchFile(path, reload);
  };
  return { reload, close };
}
