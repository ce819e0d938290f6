/** The Replaces in the URI of a Refer-To (RFC 3891 §6.1, RFC 3261 §19.1.1). */
import { expect, test } from 'bun:test';
import { replacesOf } from '../../src/sip/message/replaces.ts';

const NAMED = { callId: '12345@client', toTag: '755', fromTag: '314', earlyOnly: false };

test.each([
  ['sip:bob@host?Replaces=12345%40client%3Bto-tag%3D755%3Bfrom-tag%3D314', NAMED],
  // The order of the tags, the case of names and escapes, spaces.
  ['sip:bob@host?REPLACES=12345%40client%3bFrom-Tag%3d314%3bTO-TAG%3d755', NAMED],
  ['sip:bob@host?replaces=12345%40client%20%3B%20to-tag%20%3D%20755%3B%20from-tag=314', NAMED],
  // Other headers around it; characters that ought to be escaped; a question mark in the user.
  ['sip:bob@host;user=phone?Require=replaces&Replaces=12345%40client%3Bto-tag%3D755%3Bfrom-tag%3D314&Subject=x', NAMED],
  ['<sip:bob@host?Replaces=12345@client;to-tag=755;from-tag=314'.slice(1), NAMED],
  ['sip:who?@host?Replaces=12345%40client%3Bto-tag%3D755%3Bfrom-tag%3D314', NAMED],
  ['sip:bob@host?Replaces=12345%40client%3Bto-tag%3D755%3Bfrom-tag%3D314%3BEarly-Only', { ...NAMED, earlyOnly: true }],
  // Tags and Call-IDs are told apart by case; other parameters say nothing.
  [
    'sip:bob@host?Replaces=aBc%3Bto-tag%3DxY%3Bfrom-tag%3DYx%3Bx%3D1',
    { callId: 'aBc', toTag: 'xY', fromTag: 'Yx', earlyOnly: false },
  ],
])('%s is read', (uri, expected) => {
  expect(replacesOf(uri)).toEqual(expected);
});

test.each([
  'sip:bob@host',
  'sip:bob@host?Subject=Replaces',
  'sip:bob@host?xReplaces=a%3Bto-tag%3D1%3Bfrom-tag%3D2',
  'sip:bob@host?Replaces=',
  'sip:bob@host?Replaces=a',
  'sip:bob@host?Replaces=a%3Bto-tag%3D1',
  'sip:bob@host?Replaces=a%3Bto-tag%3D1%3Bfrom-tag',
  'sip:bob@host?Replaces=%3Bto-tag%3D1%3Bfrom-tag%3D2',
  'sip:bob@host?Replaces=a%3Bto-tag%3D%221%3Bfrom-tag%3D2',
  'sip:bob@host?Replaces=a%zz%3Bto-tag%3D1%3Bfrom-tag%3D2',
  'sip:bob@host?Replaces=a%E0%3Bto-tag%3D1%3Bfrom-tag%3D2',
  // Escaped once more it is the name of another call.
  'sip:bob@host?Replaces=a%253Bto-tag%253D1%253Bfrom-tag%253D2',
  // Two of them are malformed (RFC 3891 §3).
  'sip:bob@host?Replaces=a%3Bto-tag%3D1%3Bfrom-tag%3D2&Replaces=b%3Bto-tag%3D1%3Bfrom-tag%3D2',
])('%s names no dialog', (uri) => {
  expect(replacesOf(uri)).toBeUndefined();
});
