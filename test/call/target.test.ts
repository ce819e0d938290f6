/** What a call may be transferred to. */
import { expect, test } from 'bun:test';
import { targetOf } from '../../src/call/ports/target.ts';

test('a target is an E.164 number or a sip: URI of 256 characters at most, without a password and headers', () => {
  const longest = `sip:${'a'.repeat(250)}@b`;
  for (const uri of [
    'sip:desk@b.example',
    'SIP:desk@b',
    `sip:${'a'.repeat(200)}@b`,
    longest,
    'sip:b:5070;transport=tcp',
    'sip:a?b@c',
    'sip:a%20b@c:65535',
    'sip:[2001:db8::1]:5060',
  ])
    expect([uri, targetOf(uri)]).toEqual([uri, { uri }]);
  expect(targetOf('+15550100')).toEqual({ number: '+15550100' });
  for (const wrong of [
    `${longest}c`,
    'sip:a:secret@b',
    'sip:a@b?x=y',
    'sips:a@b',
    'tel:+15550100',
    'sip:@b',
    'sip:a b@c',
    'sip:a@b:0',
    'sip:a@b:65536',
    'sip:a@[::::]',
    'sip:a@[1.2.3.4]',
    'sip:a%zz@b',
    'sip:50%@b',
    '15550100',
    '',
  ])
    expect([wrong, targetOf(wrong)]).toEqual([wrong, undefined]);
});
