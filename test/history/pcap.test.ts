/** The SIP of a call as a capture file. */
import { expect, test } from 'bun:test';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pcap } from '../../src/history/pcap.ts';

const entry = (direction: 'in' | 'out', peer: string, text: string, at: number) =>
  ({
    kind: 'sip',
    direction,
    transport: 'udp',
    peer,
    first_line: text.split('\r\n')[0] ?? '',
    call_id: 'x',
    cseq: '1 INVITE',
    text,
    at,
  }) as const;
const INVITE = 'INVITE sip:b@c SIP/2.0\r\nCall-ID: x\r\nCSeq: 1 INVITE\r\nContent-Length: 0\r\n\r\n';

test('each message is a packet with its time, its addresses and right checksums', () => {
  const bytes = Buffer.from(
    pcap([
      entry('in', '198.51.100.7:5080', INVITE, 1_700_000_000_123),
      entry('out', '[2001:db8::9]:5060', 'SIP/2.0 200 OK\r\n\r\n', 1_700_000_001_000),
    ]),
  );
  expect(bytes.readUInt32LE(0)).toBe(0xa1b2c3d4);
  expect(bytes.readUInt32LE(24)).toBe(1_700_000_000);
  expect(bytes.readUInt32LE(28)).toBe(123_000);
  const length = bytes.readUInt32LE(32);
  expect(length).toBe(20 + 8 + INVITE.length);
  const ip = bytes.subarray(40, 40 + length);
  expect([...ip.subarray(12, 16)]).toEqual([198, 51, 100, 7]);
  expect(ip.readUInt16BE(20)).toBe(5080);
  const sum = (part: Buffer) => {
    let total = 0;
    for (let at = 0; at < part.length; at += 2) total += ((part[at] ?? 0) << 8) | (part[at + 1] ?? 0);
    while (total > 0xffff) total = (total & 0xffff) + (total >>> 16);
    return total;
  };
  expect(sum(ip.subarray(0, 20))).toBe(0xffff);
  /** The sum over the addresses, the length, the protocol and the datagram (RFC 768, RFC 8200 §8.1). */
  const udpSum = (addresses: Buffer, datagram: Buffer) =>
    sum(Buffer.concat([addresses, Buffer.from([0, 17, datagram.length >> 8, datagram.length & 0xff]), datagram]));
  expect(udpSum(ip.subarray(12, 20), ip.subarray(20))).toBe(0xffff);
  const next = bytes.subarray(40 + length + 16);
  expect(next.readUInt8(0) >> 4).toBe(6);
  expect(udpSum(next.subarray(8, 40), next.subarray(40))).toBe(0xffff);
  // The version of the format, and what carries no link layer.
  expect([bytes.readUInt16LE(4), bytes.readUInt16LE(6), bytes.readUInt32LE(20)]).toEqual([2, 4, 101]);
});

test('a far end that was called by its name, as a Contact may have one, has an address that stands for it', () => {
  const bytes = Buffer.from(pcap([entry('out', 'sbc.carrier.example:5070', INVITE, 1_700_000_000_123)]));
  expect([...bytes.subarray(40 + 16, 40 + 20)]).toEqual([192, 0, 2, 2]);
  expect(bytes.readUInt16BE(40 + 22)).toBe(5070);
});

const hasTshark = spawnSync('tshark', ['-v']).status === 0;

test.skipIf(!hasTshark)('tshark reads the capture as SIP', () => {
  const directory = mkdtempSync(join(tmpdir(), 'sidetone-pcap-'));
  try {
    const path = join(directory, 'call.pcap');
    writeFileSync(path, pcap([entry('in', '198.51.100.7:5060', INVITE, 1_700_000_000_123)]));
    const shown = spawnSync(
      'tshark',
      ['-r', path, '-o', 'udp.check_checksum:TRUE', '-T', 'fields', '-e', 'sip.Method', '-e', 'udp.checksum.status'],
      { encoding: 'utf8' },
    );
    expect(shown.stdout.trim()).toBe('INVITE\t1');
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
