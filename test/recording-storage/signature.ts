/** AWS Signature 4 as a store checks it, from its specification: s3rver takes every one. */
import { createHash, createHmac } from 'node:crypto';

export interface SignedRequest {
  readonly method: string;
  /** Path and query as they came. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** The signature that the request must have, by what its `Authorization` says was signed. */
export function signatureOf({ method, url, headers }: SignedRequest, secretAccessKey: string): string {
  const authorization = String(headers.authorization ?? '');
  const [, scope = ''] = /Credential=[^/]+\/([^,\s]+)/.exec(authorization) ?? [];
  const [, signedHeaders = ''] = /SignedHeaders=([^,\s]+)/.exec(authorization) ?? [];
  const [path = '', query = ''] = url.split('?', 2);
  const canonical = [
    method,
    path
      .split('/')
      .map((segment) => encoded(decodeURIComponent(segment)))
      .join('/'),
    query
      .split('&')
      .filter((pair) => pair !== '')
      .map(canonicalPair)
      .sort()
      .join('&'),
    ...signedHeaders.split(';').map(
      (name) =>
        `${name}:${String(headers[name] ?? '')
          .trim()
          .replace(/\s+/g, ' ')}`,
    ),
    '',
    signedHeaders,
    String(headers['x-amz-content-sha256'] ?? ''),
  ].join('\n');
  const toSign = ['AWS4-HMAC-SHA256', String(headers['x-amz-date'] ?? ''), scope, sha256(canonical)].join('\n');
  const key = scope.split('/').reduce<Buffer | string>((secret, word) => hmac(secret, word), `AWS4${secretAccessKey}`);
  return hmac(key, toSign).toString('hex');
}

export const givenSignature = ({ headers }: SignedRequest): string | undefined =>
  /Signature=([0-9a-f]{64})/.exec(String(headers.authorization ?? ''))?.[1];

const canonicalPair = (pair: string): string => {
  const [name = '', value = ''] = pair.split('=', 2);
  return `${encoded(decodeURIComponent(name))}=${encoded(decodeURIComponent(value))}`;
};
const encoded = (text: string): string =>
  Array.from(Buffer.from(text), (byte) =>
    /[A-Za-z0-9._~-]/.test(String.fromCharCode(byte))
      ? String.fromCharCode(byte)
      : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
  ).join('');
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const hmac = (key: Buffer | string, text: string): Buffer => createHmac('sha256', key).update(text).digest();
