/**
 * What is JSON and what is not (RFC 8259), as the body of a request, each with its verdict. The inputs are our own, one
 * for each kind.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { AppSecrets } from '../../src/database/app/apps.ts';
import { openPlatform, type Platform } from './platform.ts';

let platform: Platform;
let app: AppSecrets;
beforeAll(async () => {
  platform = await openPlatform();
  app = await platform.testStore.store.apps.create({ name: 'json' });
});
afterAll(() => platform.close());

const send = (body: string | Uint8Array<ArrayBuffer>) =>
  platform.raw('/v1/messages', {
    method: 'POST',
    headers: { authorization: `Bearer ${app.appUuid}:${app.apiKey}`, 'content-type': 'application/json' },
    body,
  });

const bytes = (...parts: (string | number[])[]): Uint8Array<ArrayBuffer> =>
  new Uint8Array(
    Buffer.concat(parts.map((part) => Buffer.from(typeof part === 'string' ? Buffer.from(part) : Buffer.from(part)))),
  );

const NOT_JSON: readonly (string | Uint8Array<ArrayBuffer>)[] = [
  // Structure.
  '',
  ' ',
  '{',
  '}',
  '[',
  ']',
  '[}',
  '{]',
  '{}}',
  '[]]',
  '{},',
  '{}{}',
  '[1 2]',
  '[1,]',
  '[,1]',
  '[,]',
  '[1,,2]',
  '{,}',
  '{"a":1,}',
  '{"a"}',
  '{"a":}',
  '{:1}',
  '{"a" 1}',
  '{"a"::1}',
  '{"a":1 "b":2}',
  "{'a':1}",
  '{a:1}',
  '{1:1}',
  '{null:1}',
  '{"a":1}#',
  '{"a":1}//x',
  '/**/{}',
  '{}x',
  '<x>',
  '*',
  '\f{}',
  '\v{}',
  '{\u00a0}',
  '\u2060{}',
  // Numbers.
  '[01]',
  '[-01]',
  '[1.]',
  '[.1]',
  '[-]',
  '[+1]',
  '[--1]',
  '[1e]',
  '[1e+]',
  '[1.e1]',
  '[0x1]',
  '[1_0]',
  '[NaN]',
  '[Infinity]',
  '[-Infinity]',
  '[1 000]',
  '[０]',
  '[1e1.5]',
  '[2.e3]',
  '[0e]',
  '[- 1]',
  // Words.
  '[True]',
  '[nul]',
  '[tru]',
  '[fals]',
  '[undefined]',
  'nothing',
  // Strings.
  '["',
  '["a]',
  '["\\x41"]',
  '["\\u12"]',
  '["\\uZZZZ"]',
  '["\\"]',
  "['a']",
  '["\n"]',
  '["\t"]',
  '["\u0000"]',
  '["\\a"]',
  '["\\\u00e9"]',
  '["a" b]',
  '"a',
  '["\\u{41}"]',
  // Bytes that are no UTF-8.
  bytes('["', [0xff], '"]'),
  bytes('["', [0xc0, 0xaf], '"]'),
  bytes('["', [0xed, 0xa0, 0x80], '"]'),
  bytes('["', [0xe2, 0x82], '"]'),
  bytes([0x80]),
  bytes([0xfe, 0xff, 0, 0x5b, 0, 0x5d]),
  bytes('{"a":"', [0xf4, 0x90, 0x80, 0x80], '"}'),
];

const JSON_OF_ANOTHER_KIND: readonly string[] = [
  'null',
  'true',
  'false',
  '0',
  '-0',
  '1e400',
  '-1.5E-3',
  '""',
  '"\\u0041"',
  '[]',
  '[[]]',
  '[{}]',
  '[1,2]',
  ' [ ] ',
  '\r\n\t[null]',
  '"\u2028"',
  '[1e9999]',
  '["\\ud83d\\ude00"]',
  '["\\/"]',
  '["\\u0000"]',
  `[${'1,'.repeat(999)}1]`,
  `${'['.repeat(500)}${']'.repeat(500)}`,
  '[123456789012345678901234567890]',
];

describe('a body', () => {
  test('that is no JSON is refused as such', async () => {
    for (const body of NOT_JSON) {
      const reply = await send(body);
      expect([body, reply.status, reply.body?.message]).toEqual([body, 400, 'body: must be valid JSON']);
    }
  });

  test('that is JSON but no object is refused as such', async () => {
    for (const body of JSON_OF_ANOTHER_KIND) {
      const reply = await send(body);
      expect([body, reply.status, reply.body?.message]).toEqual([body, 400, 'body: must be a JSON object']);
    }
  });

  test('with names twice, strange names or a great depth is judged by its shape, and never ends in an error of ours', async () => {
    const odd: readonly (readonly [string, string])[] = [
      ['{"a":1,"a":2}', 'a: is not a known field here'],
      ['{"":1}', 'body: is not a known field here'],
      ['{"__proto__":{"from":"+15550100"}}', '__proto__: is not a known field here'],
      ['{"constructor":1}', 'constructor: is not a known field here'],
      ['{"toString":null}', 'toString: is not a known field here'],
      ['{"\\u0000":1}', '?: is not a known field here'],
      [`{"${'n'.repeat(500)}":1}`, `${'n'.repeat(64)}: is not a known field here`],
      [`{"a":${'['.repeat(2_000)}${']'.repeat(2_000)}}`, 'a: is not a known field here'],
    ];
    for (const [body, message] of odd) {
      const reply = await send(body);
      expect([body, reply.status]).toEqual([body, 400]);
      const first = reply.body.message as string;
      expect([message, 'from: is required', 'text: is required', 'to: is required']).toContain(first);
    }
  });
});
