/** The addresses and ports that an application may make the platform reach. */
import { expect, test } from 'bun:test';
import { mayReach, mayUsePort, parseCidr } from '../../src/outbound/screen.ts';

/** The "bad ports" of WHATWG Fetch, where another protocol than HTTP listens. */
const BAD_PORTS =
  '1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119 123 135 137 ' +
  '139 143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 990 993 995 1719 1720 ' +
  '1723 2049 3659 4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080';

test('Every TCP port may be reached but those where another protocol listens', () => {
  const bad = Array.from({ length: 65_535 }, (_, at) => at + 1).filter((port) => !mayUsePort(port));
  expect(bad.join(' ')).toBe(BAD_PORTS);
  expect([0, -1, 65_536, 80.5].map(mayUsePort)).toEqual([false, false, false, true]);
});

const allow = (...cidrs: string[]) => cidrs.map((text) => parseCidr(text)).filter((each) => each !== undefined);

test('An address without a length is a block of one, and what is no address is no block', () => {
  const one = allow('10.0.0.5', 'fd00::5');
  expect(one.map(([, bits]) => bits)).toEqual([32, 128]);
  for (const [address, may] of [
    ['10.0.0.5', true],
    ['10.0.0.4', false],
    ['10.0.0.6', false],
    ['fd00::5', true],
    ['fd00::4', false],
    // An IPv4 address written as IPv6 is that address.
    ['::ffff:10.0.0.5', true],
    ['::ffff:10.0.0.6', false],
  ] as const)
    expect([address, mayReach(address, one)]).toEqual([address, may]);
  for (const bad of ['', 'host', '10.0.0.0/33', '10.0.0.256', 'fd00::/129', '10.0.0.5/'])
    expect([bad, parseCidr(bad)]).toEqual([bad, undefined]);
});

test('A block allows its own IP version and what lies in it, for that list alone', () => {
  const four = allow('10.0.0.0/8');
  const six = allow('fd00::/8');
  for (const address of ['10.0.0.0', '10.255.255.255'])
    expect([mayReach(address, four), mayReach(address, six)]).toEqual([true, false]);
  for (const address of ['fd00::', 'fdff:ffff::1'])
    expect([mayReach(address, four), mayReach(address, six)]).toEqual([false, true]);
  for (const address of ['9.255.255.255', '11.0.0.0', '8.8.8.8', '2606:4700::1']) expect(mayReach(address, four)).toBe(true);
  for (const none of ['', 'host', '10.0.0.1.1', '10.0.0.256']) expect([none, mayReach(none, four)]).toEqual([none, false]);
  const all = allow('0.0.0.0/0', '::/0');
  for (const address of ['127.0.0.1', '::1', '64:ff9b::7f00:1', '169.254.169.254']) expect(mayReach(address, all)).toBe(true);
});

test('Addresses of documentation, of tests and of no network are not public, next to ones that are', () => {
  for (const [address, may] of [
    ['3ffe::1', false],
    ['3ffd::1', true],
    ['3fff::1', false],
    ['3fff:0fff:ffff::1', false],
    ['3fff:1000::1', true],
    ['2000::1', true],
    ['1fff::1', false],
    ['4000::1', false],
    ['2001:db8::1', false],
    ['2002:a00:1::', false],
    ['198.18.0.1', false],
    ['198.20.0.1', true],
    ['192.0.2.1', false],
    ['203.0.113.1', false],
    ['100.63.255.255', true],
    ['100.64.0.0', false],
    ['0.0.0.0', false],
    ['255.255.255.255', false],
    ['240.0.0.1', false],
    ['::8.8.8.8', false],
    ['::ffff:8.8.8.8', true],
    ['fe80::1%eth0', false],
    ['2000::1%eth0', false],
  ] as const)
    expect([address, mayReach(address, [])]).toEqual([address, may]);
});
