/** One host on IPv6 has 2^64 addresses to send from. They count as one source where sources are limited. */
import { describe, expect, test } from 'bun:test';
import { DEVICE_REALM, type Device, NO_DEVICES } from '../../src/call/ports/devices.ts';
import { Devices } from '../../src/carrier/device/devices.ts';
import { Refusals } from '../../src/carrier/refusals.ts';
import { InboundConnections } from '../../src/carrier/socket/inbound-connections.ts';
import { hexHash } from '../../src/hash.ts';
import { WrongTokens } from '../../src/http/wrong-tokens.ts';
import { SIP_GUESSES_A_MINUTE, SIP_INBOUND_CONNECTIONS_PER_STRANGER } from '../../src/limits.ts';
import { digestSecrets } from '../../src/sip/message/digest-server.ts';
import { parseMessage } from '../../src/sip/message/parser.ts';
import { sourceOf } from '../../src/sip/source.ts';
import { answerTo } from './device-peer.ts';

const NOW = 1_800_000_000_000;
const addressOf = (number: number): string => `2001:db8:0:1::${(number + 1).toString(16)}`;

function registerOf(username: string, fields = '') {
  const text = `REGISTER sip:x SIP/2.0\r\nVia: SIP/2.0/UDP [2001:db8::1];branch=z9hG4bK1\r\nFrom: <sip:${username}@x>;tag=1\r\nTo: <sip:${username}@x>\r\nCall-ID: 1\r\nCSeq: 1 REGISTER\r\n${fields}\r\n`;
  const parsed = parseMessage(new TextEncoder().encode(text));
  if (!parsed.ok || parsed.message.kind !== 'request') throw new Error('no request');
  return parsed.message;
}

/** Each request of theirs comes a second after the one before, so that each is challenged. */
function devicesOf(usernames: readonly string[]): Devices {
  let now = NOW;
  const known = new Map(
    usernames.map((username): [string, Device] => {
      const secrets = digestSecrets(hexHash, username, DEVICE_REALM, `${username}'s secret`);
      return [username, { username, appUuid: '', secrets }];
    }),
  );
  return new Devices({
    directory: { ...NO_DEVICES, size: known.size, find: (username) => known.get(username) },
    refusals: new Refusals(),
    code: (text) => hexHash('SHA-256', text),
    now: () => (now += 1_000),
    isProxy: () => false,
    isConnected: () => false,
    onMoved: () => {},
    onRestarted: () => {},
    onBound: () => {},
  });
}

/** Gives a password of a device from an address, and tells what became of it. */
function guess(devices: Devices, username: string, host: string, password: string) {
  const source = { transport: 'udp', host, port: 5060, flow: 1 } as const;
  const asked = devices.screen(registerOf(username), source);
  if (typeof asked !== 'object' || !('challenge' in asked)) throw new Error(`${host} was not challenged`);
  const challenge = asked.challenge.map(([, value]) => `WWW-Authenticate: ${value}\r\n`).join('');
  return devices.screen(registerOf(username, answerTo(challenge, 'REGISTER', 'sip:x', username, password)), source);
}

describe('the addresses of one IPv6 /64', () => {
  test('share the guesses of a password of a device, which no other network loses by', () => {
    const devices = devicesOf(['alice', 'bob']);
    const heard = Array.from({ length: 15 }, (_, i) => guess(devices, 'alice', addressOf(i), `guess ${i}`));
    expect(heard.filter((each) => each !== 'ignore')).toHaveLength(SIP_GUESSES_A_MINUTE);
    expect(guess(devices, 'alice', addressOf(99), "alice's secret")).toBe('ignore');
    expect(guess(devices, 'bob', addressOf(99), "bob's secret")).toBe('accept');
    expect(guess(devices, 'alice', '2001:db8:0:2::1', "alice's secret")).toBe('accept');
  });

  test('share the guesses of an operator token', () => {
    const wrong = new WrongTokens();
    const waits = Array.from({ length: 15 }, (_, i) => wrong.count(addressOf(i), NOW));
    expect(waits.filter((each) => each === undefined)).toHaveLength(10);
    expect(wrong.count('2001:db8:0:2::1', NOW)).toBeUndefined();
  });

  test('share the connections of a stranger, and not those of trunks and registered phones beside it', () => {
    const connections = new InboundConnections();
    const taken = Array.from({ length: 40 }, (_, i) => {
      const isTaken = connections.admits(addressOf(i), false);
      if (isTaken) connections.opened(addressOf(i), false);
      return isTaken;
    });
    expect(taken.filter(Boolean)).toHaveLength(SIP_INBOUND_CONNECTIONS_PER_STRANGER);
    expect(connections.admits(addressOf(50), true)).toBe(true);
    // A phone of theirs registers, and its place is free for the next one.
    connections.becameKnown(addressOf(0));
    expect(connections.admits(addressOf(51), false)).toBe(true);
    connections.opened(addressOf(51), false);
    expect(connections.admits(addressOf(52), false)).toBe(false);
    connections.closed(addressOf(0), true);
    connections.closed(addressOf(1), false);
    expect(connections.admits(addressOf(52), false)).toBe(true);
  });
});

test('an IPv4 address in IPv6 clothes is a source of its own', () => {
  expect(['192.0.2.1', '::ffff:192.0.2.1', '::FFFF:192.0.2.1'].map(sourceOf)).toEqual(Array(3).fill('192.0.2.1'));
  expect(['2001:db8::1', '2001:DB8:0:0:9::'].map(sourceOf)).toEqual(Array(2).fill('2001:db8:0:0'));
  expect(sourceOf('::1')).toBe('0:0:0:0');
  // The zeros that are left out may end before the fourth group (RFC 5952 §4.2).
  expect(['2001:db8::2:3:4:5:6', '2001::2:3:4:5:6', '2001::3:3:4:5:6'].map(sourceOf)).toEqual([
    ...['2001:db8:0:2', '2001:0:0:2', '2001:0:0:3'],
  ]);
});
