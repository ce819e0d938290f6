/** What name servers say of names, at real sockets. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { createSocket } from 'node:dgram';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NameClient } from '../../src/outbound/dns/client.ts';
import { answerTo, type Family, question } from '../../src/outbound/dns/message.ts';
import { NameServers } from '../../src/outbound/dns/name-servers.ts';
import { Names } from '../../src/outbound/dns/names.ts';
import { addressRecord, aliasRecord, NameServerPeer, reply } from '../support/name-server-peer.ts';
import { refusedPort } from '../support/refused-port.ts';

const A = 1;
const addresses = (count: number) =>
  Buffer.concat(Array.from({ length: count }, (_, at) => addressRecord(`10.0.${at >> 8}.${at & 0xff}`)));

let peer: NameServerPeer;
let folder: string;
const client = () => new NameClient(() => [peer]);
const codeOf = (found: Promise<unknown>) => found.catch((error) => error.code);

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sidetone-names-'));
  peer = await NameServerPeer.open();
});

afterAll(() => {
  peer.close();
  rmSync(folder, { recursive: true });
});

describe('the addresses of a name', () => {
  test('are those in the answer, behind aliases too, of the IP version that is asked for', async () => {
    peer.answers = (asked) =>
      asked.type === A
        ? reply(asked, { records: [aliasRecord('b.test'), addressRecord('192.0.2.1'), addressRecord('192.0.2.2')] })
        : reply(asked, { records: [addressRecord('192.0.2.3'), addressRecord('2001:db8:0:0:1:0:0:1')] });
    expect(await client().addresses('a.test', 4)).toEqual(['192.0.2.1', '192.0.2.2']);
    expect(await client().addresses('a.test', 6)).toEqual(['2001:db8::1:0:0:1']);
  });

  test('are 64 at most, also where its answer does not go into a datagram', async () => {
    peer.answers = (asked) =>
      asked.overTcp ? reply(asked, { records: [addresses(4_000)], count: 4_000 }) : reply(asked, { isCut: true });
    expect(await client().addresses('a.test', 4)).toEqual(Array.from({ length: 64 }, (_, at) => `10.0.0.${at}`));
  });

  test('are none where name servers say so, or cannot say', async () => {
    peer.answers = (asked) => reply(asked, { code: 3 });
    expect(await codeOf(client().addresses('a.test', 4))).toBe('ENOTFOUND');
    peer.answers = (asked) => reply(asked, { records: [aliasRecord('a.test')] });
    expect(await codeOf(client().addresses('a.test', 4))).toBe('ENOTFOUND');
    peer.answers = (asked) => reply(asked, { code: 2 });
    expect(await codeOf(client().addresses('a.test', 4))).toBe('ESERVFAIL');
    expect(await codeOf(new NameClient(() => []).addresses('a.test', 4))).toBe('ECONNREFUSED');
    for (const name of ['', '.', 'a..test', `${'a'.repeat(64)}.test`, 'a b.test', 'a.'.repeat(130)])
      expect([name, await codeOf(client().addresses(name, 4))]).toEqual([name, 'ENOTFOUND']);
  });

  test('are asked for at the next name server, where nobody listens at one or it fails', async () => {
    const away = await refusedPort();
    const failing = await NameServerPeer.open();
    failing.answers = (asked) => reply(asked, { code: 2 });
    peer.answers = (asked) => reply(asked, { records: [addressRecord('192.0.2.1')] });
    const servers = [{ host: '127.0.0.1', port: away.port }, failing, peer];
    expect(await new NameClient(() => servers).addresses('a.test', 4)).toEqual(['192.0.2.1']);
    away.close();
    failing.close();
  });

  test('are asked for again where an answer is lost', async () => {
    let times = 0;
    peer.answers = (asked) => (++times === 1 ? undefined : reply(asked, { records: [addressRecord('192.0.2.1')] }));
    expect(await client().addresses('a.test', 4)).toEqual(['192.0.2.1']);
    expect(times).toBe(2);
  });

  test('are not those that somebody else says', async () => {
    const stranger = createSocket('udp4');
    await new Promise<void>((resolve) => stranger.bind(0, '127.0.0.2', resolve));
    const forged = { records: [addressRecord('192.0.2.66')] };
    peer.answers = async (asked) => {
      const [port, others] = [asked.port, question(0, 'b.test', 4)];
      await new Promise((resolve) => stranger.send(reply(asked, forged), port, '127.0.0.1', resolve));
      // Of another number, of another question, a question, and what ends within its first record.
      const another = Buffer.from(reply(asked, forged));
      another.writeUInt16BE(another.readUInt16BE(0) ^ 1, 0);
      others.copy(others, 0);
      others.writeUInt16BE(asked.bytes.readUInt16BE(0), 0);
      const wrong = [another, reply({ ...asked, bytes: others }, forged), asked.bytes, reply(asked, forged).subarray(0, -1)];
      for (const each of wrong) peer.send(each, port);
      return reply(asked, { records: [addressRecord('192.0.2.1')] });
    };
    expect(await client().addresses('a.test', 4)).toEqual(['192.0.2.1']);
    stranger.close();
  });
});

test('No answer that is cut off or altered is more than no answer', () => {
  const asked = question(7, 'a.test', 4);
  const whole = reply({ bytes: asked }, { records: [aliasRecord('b.test'), addressRecord('192.0.2.1')] });
  expect(answerTo(asked, whole, 4)?.addresses).toEqual(['192.0.2.1']);
  for (let length = 0; length < whole.length; length++) expect(answerTo(asked, whole.subarray(0, length), 4)).toBeUndefined();
  for (const family of [4, 6] satisfies Family[])
    for (let at = 0; at < whole.length; at++)
      for (const value of [0, 1, 0x3f, 0x7f, 0xc0, 0xff]) {
        const altered = Buffer.from(whole);
        altered[at] = value;
        expect(answerTo(asked, altered, family)?.addresses.length ?? 0).toBeLessThan(3);
      }
});

describe('a name', () => {
  const known = new Map([
    ['short.test', '192.0.2.1'],
    ['a.b.test', '192.0.2.2'],
    ['nats.one.test', '192.0.2.3'],
    ['nats.two.test', '192.0.2.4'],
    ['a.b.two.test', '192.0.2.5'],
  ]);
  const named = async (resolv: string, hosts = '') => {
    writeFileSync(join(folder, 'resolv.conf'), resolv);
    writeFileSync(join(folder, 'hosts'), hosts);
    const asked: string[] = [];
    peer.answers = (question) => {
      const address = question.type === A ? known.get(question.name) : undefined;
      if (question.type === A) asked.push(question.name);
      return reply(question, address === undefined ? { code: 3 } : { records: [addressRecord(address)] });
    };
    const resolvConf = new NameServers({ path: join(folder, 'resolv.conf'), now: () => performance.now(), ask: () => {} });
    const names = new Names({ hosts: join(folder, 'hosts'), resolvConf, servers: () => [peer] });
    const find = async (name: string) =>
      (await names.find(name, [4, 6]).catch((error) => [{ address: error.code }])).map(({ address }) => address);
    return { find, asked };
  };

  test('is asked for with the suffixes of resolv.conf: after itself where it has dots enough, before it where not', async () => {
    const { find, asked } = await named('domain zero.test\nsearch one.test two.test .\n');
    expect([await find('nats'), await find('a.b')]).toEqual([['192.0.2.3'], ['192.0.2.5']]);
    expect(asked).toEqual(['nats.one.test', 'a.b', 'a.b.one.test', 'a.b.two.test']);
    expect([await find('nats.'), await find('none.test')]).toEqual([['ENOTFOUND'], ['ENOTFOUND']]);
    expect(asked.slice(4)).toEqual(['nats', 'none.test', 'none.test.one.test', 'none.test.two.test']);
    const dotted = await named('search two.test\noptions timeout:1 ndots:3\n');
    expect([await dotted.find('a.b'), await dotted.find('a.b.test')]).toEqual([['192.0.2.5'], ['192.0.2.2']]);
    expect(dotted.asked).toEqual(['a.b.two.test', 'a.b.test.two.test', 'a.b.test']);
  });

  test('is not asked for where it is an address, this machine or in the file of hosts', async () => {
    const hosts = '::2 Short.test\n192.0.2.9 short.test other # not.test\nfe80::1%lo zone.test\nwrong a.b.test\n';
    const { find, asked } = await named('', hosts);
    expect([await find('short.test'), await find('OTHER')]).toEqual([['192.0.2.9', '::2'], ['192.0.2.9']]);
    expect([await find('192.0.2.7'), await find('::7')]).toEqual([['192.0.2.7'], ['::7']]);
    expect([await find('localhost'), await find('a.localhost.')]).toEqual(Array(2).fill(['127.0.0.1', '::1']));
    expect(asked).toEqual([]);
    expect([await find('not.test'), await find('zone.test'), await find('a.b.test')]).toEqual([
      ['ENOTFOUND'],
      ['ENOTFOUND'],
      ['192.0.2.2'],
    ]);
  });
});
