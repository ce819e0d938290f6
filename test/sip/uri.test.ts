/** URIs and name-addr (RFC 3261 §19.1, §20.10), and what is written of them. */
import { describe, expect, test } from 'bun:test';
import {
  escapeUser,
  formatHostPort,
  isSameAddress,
  parseHostPort,
  parseNameAddress,
  parseParameters,
  parseUri,
  plainHost,
  quote,
  requestUri,
  tagOf,
  unquote,
} from '../../src/sip/message/uri.ts';
import fc from '../support/fast-check.ts';

describe('a URI', () => {
  const read = (text: string) => {
    const uri = parseUri(text);
    return uri && [uri.scheme, uri.user, uri.host, uri.port, Object.fromEntries(uri.parameters)];
  };

  test.each<[string, ...unknown[]]>([
    ['sip:example.com', 'sip', '', 'example.com', undefined, {}],
    ['SIPS:a@example.com:5061', 'sips', 'a', 'example.com', 5061, {}],
    ['sip:a:secret@h', 'sip', 'a', 'h', undefined, {}],
    ['sip:%61%40b:x@h', 'sip', 'a@b', 'h', undefined, {}],
    ['sip:+1-555;phone-context=x@h', 'sip', '+1-555;phone-context=x', 'h', undefined, {}],
    ['sip:a@b@h', 'sip', 'a@b', 'h', undefined, {}],
    ['sip:a@h;Transport=TCP;lr;x=a-b;lr=no', 'sip', 'a', 'h', undefined, { transport: 'TCP', lr: '', x: 'a-b' }],
    ['sip:a@h:5070;lr?Subject=x&Priority=y', 'sip', 'a', 'h', 5070, { lr: '' }],
    ['sip:h?Subject=x', 'sip', '', 'h', undefined, {}],
    ['sip:a@[2001:db8::1]:5070', 'sip', 'a', '2001:db8::1', 5070, {}],
    ['sip:[::1]', 'sip', '', '::1', undefined, {}],
    ['tel:+1555;ext=7', 'tel', '+1555', '', undefined, { ext: '7' }],
    ['TEL:110', 'tel', '110', '', undefined, {}],
  ])('%s is read', (text, ...expected) => {
    expect<unknown>(read(text)).toEqual(expected);
  });

  test.each([
    ...['', 'sip', 'sip:', ':a', 'sp:a@h', 'http://h', 'mailto:a@h', 'sipp:a@h', 'sip:@h', 'sip::x@h', 'sip:a@', 'sip:%zz@h'],
    ...['sip:a b@h', 'sip:a@h\t', 'sip:<a@h', 'sip:a@"h"', 'sip:a@h h', 'sip:a@h:', 'sip:a@h:0', 'sip:a@h:65536', 'sip:a@h:1x'],
    ...[
      'sip:a@[::1',
      'sip:a@[1234]',
      'sip:a@[::g]',
      'sip:a@[::1]5060',
      'sip:a@ü',
      'sip:a@h;',
      'sip:a@h;;lr',
      'sip:a@h;=x',
      'tel:',
      'tel:;x',
    ],
  ])('%s is none', (text) => {
    expect(parseUri(text)).toBeUndefined();
  });

  test('as a Request-URI has no headers, and what is compared without case in lower case', () => {
    expect(requestUri('SIP:Alice:Secret@HOST.Example:5070;Transport=TCP?Subject=x')).toBe(
      'sip:Alice:Secret@host.example:5070;Transport=TCP',
    );
    expect(requestUri('sips:Host?x=y')).toBe('sips:host');
    expect(requestUri('sip:a@[2001:DB8::1]:5060;lr')).toBe('sip:a@[2001:db8::1]:5060;lr');
    expect(['tel:+1555', 'sip:a@b@c', 'sip:a@h:x', ''].map(requestUri)).toEqual([undefined, undefined, undefined, undefined]);
  });

  test('names the same address where scheme, user, host and port are alike (§19.1.4)', () => {
    const one = 'sip:Alice@Example.com:5060;transport=udp';
    for (const same of ['SIP:Alice@example.COM:5060', 'sip:%41lice:pw@example.com:5060;lr'])
      expect(isSameAddress(one, same)).toBe(true);
    for (const other of [
      'sips:Alice@example.com:5060',
      'sip:alice@example.com:5060',
      'sip:Alice@example.org:5060',
      'sip:Alice@example.com',
      'none',
      '',
    ])
      expect([other, isSameAddress(one, other), isSameAddress(other, one)]).toEqual([other, false, false]);
    expect(isSameAddress('none', 'none')).toBe(false);
  });

  test('has a user of any text, escaped and read again', () => {
    expect(escapeUser("+1-555 a;b=c&d+e$f,g/h?i!j~k*l'm(n)")).toBe("+1-555%20a;b=c&d+e$f,g/h?i!j~k*l'm(n)");
    expect(escapeUser('50%@[:]"<>\\^`{|}#')).toBe('50%25%40%5B%3A%5D%22%3C%3E%5C%5E%60%7B%7C%7D%23');
    expect(escapeUser('é📞')).toBe('%C3%A9%F0%9F%93%9E');
    expect(escapeUser('a\ud83d')).toBe('a%EF%BF%BD');
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }), (user) => {
        expect(parseUri(`sip:${escapeUser(user)}@h`)?.user).toBe(user.toWellFormed());
      }),
    );
  });

  test('has the host that sources of messages have, and others as they are written', () => {
    expect(plainHost('2001:DB8:0:0::1')).toBe('2001:db8::1');
    expect(plainHost('::ffff:203.0.113.2')).toBe('203.0.113.2');
    for (const host of ['203.0.113.2', 'Host.Example', '1:2', 'a:b:c', '']) expect(plainHost(host)).toBe(host);
    expect([
      formatHostPort('h', undefined),
      formatHostPort('h', 5060),
      formatHostPort('::1', undefined),
      formatHostPort('::1', 1),
    ]).toEqual([...['h', 'h:5060', '[::1]', '[::1]:1']]);
    expect(parseHostPort('h:65535')).toEqual({ host: 'h', port: 65_535 });
    for (const bad of ['', ':5060', 'h:5060:1', '[::1]:', '[]:5', 'h:123456'])
      expect([bad, parseHostPort(bad)]).toEqual([bad, undefined]);
  });
});

describe('a name-addr', () => {
  const read = (text: string) => {
    const address = parseNameAddress(text);
    return address && [address.display, address.uri, Object.fromEntries(address.parameters)];
  };

  test.each<[string, ...unknown[]]>([
    ['<sip:a@h>', '', 'sip:a@h', {}],
    [' \t< sip:a@h;lr > ; tag=x ', '', 'sip:a@h;lr', { tag: 'x' }],
    ['Alice  <sip:a@h>', 'Alice', 'sip:a@h', {}],
    ['"A \\"B\\" <C>;D"  <sip:a@h>;Tag=x', 'A "B" <C>;D', 'sip:a@h', { tag: 'x' }],
    ['""<sip:a@h>', '', 'sip:a@h', {}],
    // Without brackets the parameters are those of the header.
    ['sip:a@h;tag=x;lr', '', 'sip:a@h', { tag: 'x', lr: '' }],
    ['sip:a@h ; tag = x ', '', 'sip:a@h', { tag: 'x' }],
    ['sip:a@h;+sip.instance="<urn:uuid:1>"', '', 'sip:a@h', { '+sip.instance': '<urn:uuid:1>' }],
    ['<sip:a@h>;+sip.instance="<urn:uuid:1>";q=1', '', 'sip:a@h', { '+sip.instance': '<urn:uuid:1>', q: '1' }],
    ['<sip:a@h>;a="x\\"y;z";a=second', '', 'sip:a@h', { a: 'x"y;z' }],
  ])('%s is read', (text, ...expected) => {
    expect<unknown>(read(text)).toEqual(expected);
  });

  test.each([
    '',
    ' ',
    '<>',
    '<sip:a@h',
    '"open <sip:a@h>',
    '"A" x <sip:a@h>',
    '"A"',
    '<sip:a@h>x',
    '<sip:a@h>;',
    '<sip:a@h>;="x"',
    '<sip:a@h>;a="x',
    'sip:a@h, sip:b@h',
    ';tag=x',
  ])('%s is none', (text) => {
    expect(parseNameAddress(text)).toBeUndefined();
  });

  test('has a tag, or none where that is empty or nothing can be read', () => {
    expect([tagOf('<sip:a@h>;TAG=x'), tagOf('sip:a@h;tag=x')]).toEqual(['x', 'x']);
    for (const none of ['<sip:a@h>', '<sip:a@h;tag=x>', '<sip:a@h>;tag', '<sip:a@h>;tag=', '<open;tag=x', undefined])
      expect([none, tagOf(none)]).toEqual([none, undefined]);
  });
});

test('A quoted text is read as it was before it was quoted', () => {
  fc.assert(fc.property(fc.string({ maxLength: 20 }), (text) => unquote(quote(text)) === text));
  expect(quote('a "b" \\')).toBe('"a \\"b\\" \\\\"');
  for (const plain of ['', '"', 'a"', '"a', 'a']) expect(unquote(plain)).toBe(plain);
  expect([unquote('""'), unquote('"a"')]).toEqual(['', 'a']);
});

test('Parameters are read by name, the first of each, and refused where one has no name or a quote is open', () => {
  const read = (text: string) => {
    const found = parseParameters(text);
    return found && Object.fromEntries(found);
  };
  expect(read('')).toEqual({});
  expect(read('; A = 1 ;b;c="x;y\\"z";a=2;d=')).toEqual({ a: '1', b: '', c: 'x;y"z', d: '' });
  for (const bad of ['a=1', ';', ';;a', ';=1', ';a="open', ';a="\\"', 'x;a']) expect([bad, read(bad)]).toEqual([bad, undefined]);
});
