/**
 * Holds the certificates and the key of a trunk against each other before they are stored. What TLS cannot use would
 * fail only with the first call, and as a carrier that cannot be reached.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { type Problem, problems } from '../../problem.ts';

interface TrunkTls {
  /** PEM text; `""` is none. */
  readonly ca?: string;
  readonly cert?: string;
  /** The private key. Without one the stored key stays; `""` removes it. */
  readonly key?: string;
}

/** Returns why a trunk cannot have these, or undefined. `stored` is the key that it has so far. */
export function tlsRefusal({ ca = '', cert = '', key }: TrunkTls, stored: string | undefined): Problem | undefined {
  if (ca !== '' && certificates(ca) === undefined) return problems.invalid('tls.ca: must be certificates in PEM');
  const chain = cert === '' ? undefined : certificates(cert);
  if (cert !== '' && chain === undefined) return problems.invalid('tls.cert: must be a certificate in PEM, its chain after it');
  const given = key === undefined || key === '' ? undefined : privateKey(key);
  if (key !== undefined && key !== '' && given === undefined)
    return problems.invalid('tls.key: must be a private key in PEM without a passphrase');
  const [leaf] = chain ?? [];
  if (leaf === undefined) return given === undefined ? undefined : problems.invalid('tls.key: must come with tls.cert');
  const kept = key === undefined && stored !== undefined ? privateKey(stored) : given;
  if (kept === undefined) return problems.invalid('tls.cert: must come with tls.key');
  if (leaf.checkPrivateKey(kept)) return undefined;
  return problems.invalid(
    given === undefined
      ? 'tls.cert: must come with its tls.key, because the one that is stored belongs to another certificate'
      : 'tls.key: must be the key of tls.cert',
  );
}

/** All certificates in a PEM text, in their order; undefined where there are none, or one cannot be read. */
function certificates(pem: string): readonly X509Certificate[] | undefined {
  const blocks = pem.match(/-----BEGIN ([A-Z0-9 ]+)-----[\s\S]*?-----END \1-----/g) ?? [];
  try {
    const read = blocks.map((block) => new X509Certificate(block));
    return read.length === 0 ? undefined : read;
  } catch {
    return undefined;
  }
}

function privateKey(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}
