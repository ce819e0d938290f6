/** Bodies in chunks (RFC 9112 §7.1), which their sender cuts as it likes, at the port of the platform. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { BODY_PIECE_LEAST_BYTES, BODY_PIECES_MAX } from '../../src/limits.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { RawHttp } from './raw-http.ts';

let platform: Platform;
let app: Credentials;
beforeAll(async () => {
  platform = await Platform.start();
  app = await platform.application('', '+15550083');
}, 60_000);
afterAll(async () => {
  await platform?.stop();
});

/** Sends a body in chunks of so many octets, and returns the answer's status and message. */
async function sent(method: string, path: string, text: string, chunk: number, credential = ''): Promise<[number, unknown]> {
  const http = new RawHttp(Number(new URL(platform.url).port));
  http.send(method, path, {
    'content-type': 'application/json',
    'transfer-encoding': 'chunked',
    ...(credential === '' ? {} : { authorization: `Bearer ${credential}` }),
  });
  const chunks: string[] = [];
  for (let at = 0; at < text.length; at += chunk) {
    const part = text.slice(at, at + chunk);
    chunks.push(`${part.length.toString(16)}\r\n${part}\r\n`);
  }
  http.socket.write(`${chunks.join('')}0\r\n\r\n`);
  const answer = await http.response();
  http.socket.destroy();
  const body: { readonly message?: unknown } = JSON.parse(Buffer.from(answer?.body ?? []).toString() || '{}');
  return [answer?.status ?? 0, body.message];
}

describe('A body in chunks', () => {
  const REFUSED: [number, string] = [400, 'body: must not come in so many small chunks'];
  const blanks = (count: number) => `{${' '.repeat(count)}}`;
  const key = () => `${app.appUuid}:${app.apiKey}`;

  test('of an octet each is refused once there are too many, whoever sends it', async () => {
    expect(await sent('PATCH', '/api/v1/app', blanks(BODY_PIECES_MAX * 8), 1, key())).toEqual(REFUSED);
    expect(await sent('POST', '/operator/v1/apps', blanks(BODY_PIECES_MAX * 8), 1)).toEqual(REFUSED);
    expect(await sent('POST', '/console/session', blanks(BODY_PIECES_MAX * 8), 1)).toEqual(REFUSED);
  });

  test('is taken where they are few, or have some octets each', async () => {
    expect(await sent('PATCH', '/api/v1/app', blanks(BODY_PIECES_MAX - 3), 1, key())).toEqual([204, undefined]);
    expect(await sent('PATCH', '/api/v1/app', blanks(500_000), BODY_PIECE_LEAST_BYTES, key())).toEqual([204, undefined]);
  });
});
