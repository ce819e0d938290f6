/** The certificates and keys of trunks, as an operator sets them up. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { openPlatform, type Platform } from '../http/platform.ts';
import { testCertificate } from '../support/certificate.ts';

const PATH = '/operator/v1/trunks/secure';
const one = testCertificate('one');
const other = testCertificate('other');
const block = (name: string) => `-----BEGIN ${name}-----\nAAAA\n-----END ${name}-----\n`;

let platform: Platform;
beforeAll(async () => {
  platform = await openPlatform();
});
afterAll(() => platform.close());
const put = async (tls: Readonly<Record<string, string>> | undefined) => {
  const body = { uri: 'sip:carrier.example;transport=tls', inbound_cidrs: [], ...(tls === undefined ? {} : { tls }) };
  const { status, body: answer } = await platform.operator('PUT', PATH, body);
  return status === 204 ? 204 : [status, answer.message];
};

test.each([
  ['an authority that is no certificate', { ca: block('CERTIFICATE') }, /^tls\.ca: must be certificates/],
  ['an authority that is a key', { ca: one.key }, /^tls\.ca: must be certificates/],
  ['a second authority that cannot be read', { ca: one.cert + block('CERTIFICATE') }, /^tls\.ca: must be certificates/],
  ['a certificate that cannot be read', { cert: block('CERTIFICATE'), key: one.key }, /^tls\.cert: must be a certificate/],
  ['a key that cannot be read', { cert: one.cert, key: block('PRIVATE KEY') }, /^tls\.key: must be a private key/],
  ['certificate and key the wrong way round', { cert: one.key, key: one.cert }, /^tls\.cert: must be a certificate/],
  ['the key of another certificate', { cert: one.cert, key: other.key }, /^tls\.key: must be the key of tls\.cert/],
  ['a certificate without a key', { cert: one.cert }, /^tls\.cert: must come with tls\.key/],
  ['a certificate whose key is removed', { cert: one.cert, key: '' }, /^tls\.cert: must come with tls\.key/],
  ['a key without a certificate', { key: one.key }, /^tls\.key: must come with tls\.cert/],
])('A trunk is refused %s', async (_, tls, message) => {
  expect(await put(tls)).toEqual([400, expect.stringMatching(message)]);
});

test('A trunk keeps its key with its certificate, and takes another certificate only with its own key', async () => {
  expect(await put({ ca: one.cert + other.cert, cert: one.cert + other.cert, key: one.key })).toBe(204);
  expect(await put({ ca: one.cert, cert: one.cert })).toBe(204);
  expect(await put({ cert: other.cert })).toEqual([400, expect.stringMatching(/^tls\.cert: must come with its tls\.key/)]);
  expect(await put({ cert: other.cert, key: other.key })).toBe(204);
  expect(await put(undefined)).toBe(204);
  expect(await put({ cert: other.cert })).toBe(204);
  expect(await put({ cert: '', key: '' })).toBe(204);
  expect(await put({ cert: other.cert })).toEqual([400, 'tls.cert: must come with tls.key']);
});
